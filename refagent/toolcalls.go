package refagent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

var errCancelled = errors.New("cancelled")

// runTools runs the tool calls of one reply in order. If the user dismisses a permission request, the later calls of
// the reply are skipped. rejected is true if the user rejected a call. An error ends the turn.
func (a *agent) runTools(s *session, t *turn, tools []tool, calls []ModelCall) (rejected bool, err error) {
	if a.habits.ExtraQuestion {
		t.barred = a.mayUseTools(s, t)
	}
	done := func(st *step) {
		result, failed := a.carryOut(s, t, st)
		var own *rpcError
		switch {
		case errors.Is(failed, errRejected):
			rejected = true
		case errors.As(failed, &own) && a.habits.ErrorsEnd && t.ctx.Err() == nil && st.work.name != askTool:
			err = own
		}
		s.write(event{Type: eventMessage, Message: &ModelMessage{Role: roleTool, CallID: st.call.ID, Text: result}})
	}
	if a.habits.AskOrder != "" || a.habits.Parallel {
		var all []*step
		for _, c := range calls {
			all = append(all, a.announceCall(s, t, tools, c, nil))
		}
		a.allowAll(s, t, all)
		if a.habits.RejectionEnds {
			skipRest(all)
		}
		if a.habits.Parallel {
			sideBySide(all, func(st *step) { a.execute(s, t, st) })
		}
		for _, st := range all {
			done(st)
		}
		return rejected, err
	}
	var skip error
	for _, c := range calls {
		if t.ctx.Err() != nil || err != nil {
			return rejected, err // the record adds the missing results
		}
		st := a.announceCall(s, t, tools, c, skip)
		a.allow(s, t, st)
		if errors.Is(st.err, errDismissed) {
			skip = errSkipped
		}
		done(st)
	}
	return rejected, err
}

var errSkipped = errors.New("not run, because the user dismissed or rejected another call")

// allowAll requests permission for all calls of a reply, in the order of the habit AskOrder.
func (a *agent) allowAll(s *session, t *turn, all []*step) {
	order := slices.Clone(all)
	if a.habits.AskOrder == "reversed" {
		slices.Reverse(order)
	}
	if a.habits.AskOrder == "together" {
		sideBySide(order, func(st *step) { a.allow(s, t, st) })
		return
	}
	dismissed := false
	for _, st := range order {
		if dismissed && st.err == nil {
			st.err = errSkipped
		}
		a.allow(s, t, st)
		dismissed = dismissed || errors.Is(st.err, errDismissed)
	}
}

// skipRest marks all calls as skipped if the user rejected one of them.
func skipRest(all []*step) {
	if !slices.ContainsFunc(all, func(st *step) bool { return errors.Is(st.err, errRejected) }) {
		return
	}
	for _, st := range all {
		st.err = cmp.Or(st.err, errSkipped)
	}
}

// sideBySide calls do for all calls concurrently and waits for the end.
func sideBySide(all []*step, do func(*step)) {
	var running sync.WaitGroup
	for _, st := range all {
		running.Go(func() { do(st) })
	}
	running.Wait()
}

// step is the state of one tool call of a reply.
type step struct {
	call    ModelCall
	work    *work
	chosen  *tool
	mode    string
	err     error // why the call must not run, or why it failed
	ran     bool
	planned bool // the call became a step of the plan instead
}

// announceCall tells the editor about a call. skip is the reason why the call must not run, or nil.
func (a *agent) announceCall(s *session, t *turn, tools []tool, c ModelCall, skip error) *step {
	w := &work{a: a, s: s, name: c.Name, args: arguments{}}
	st := &step{call: c, work: w, err: skip}
	if i := slices.IndexFunc(tools, func(t tool) bool { return t.called() == c.Name }); i >= 0 {
		st.chosen, w.name = &tools[i], tools[i].name
	}
	argErr := json.Unmarshal([]byte(c.Arguments), &w.args)
	if w.args == nil {
		w.args = arguments{}
	}
	w.args = a.inOwnWords(w.args)
	w.title = w.describe()
	st.mode = s.mode()
	if a.hooks.Mode != nil {
		st.mode = a.hooks.Mode(s.id, st.mode)
	}
	if st.mode == modePlanning && changes(w.name) {
		a.plan(s, w.title)
		st.planned = true
		return st
	}

	w.id = s.callID(c.ID)
	if st.chosen != nil && st.chosen.show != nil {
		st.chosen.show(w)
	}
	a.record(s, w.announced())
	switch {
	case skip != nil:
	case st.chosen == nil:
		st.err = fmt.Errorf("there is no tool %q", c.Name)
	case argErr != nil:
		st.err = fmt.Errorf("the arguments are not a JSON object: %s", plain(argErr))
	case st.mode == modeReadonly && changes(w.name):
		st.err = fmt.Errorf("refused: the session is in %s mode", modeReadonly)
	default:
		st.err = a.missing(st.chosen, w.args)
	}
	return st
}

// allow asks the user for permission if the call needs it.
func (a *agent) allow(s *session, t *turn, st *step) {
	switch {
	case st.planned || st.err != nil:
	case t.barred != nil:
		st.err = t.barred
	default:
		st.err = a.permit(t.ctx, s, st.work, st.mode)
	}
	if st.err == nil {
		st.err = t.ctx.Err()
	}
}

// execute runs a call if it is allowed and has not run yet.
func (a *agent) execute(s *session, t *turn, st *step) {
	if st.planned || st.err != nil || st.ran {
		return
	}
	if st.err = t.ctx.Err(); st.err != nil {
		return
	}
	st.ran = true
	st.work.progress(nil)
	a.planStep(s, st.work.title, statusInProgress)
	st.work.content = nil
	own, done := s.alone(t.ctx, st.work.id)
	st.err = st.chosen.run(own, st.work)
	if done() && st.err != nil {
		st.err = errStopped
	}
}

// carryOut runs a call and sends its final update. It returns the result for the model, and an error if the tool did
// not succeed.
func (a *agent) carryOut(s *session, t *turn, st *step) (string, error) {
	if st.planned {
		return "Deferred: this is now a step of the plan. It was not carried out.", nil
	}
	a.execute(s, t, st)
	w, err := st.work, st.err
	if t.ctx.Err() != nil && err != nil {
		err = errCancelled
	}
	if err != nil {
		failed := update{Tag: "tool_call_update", ToolCallID: w.id, Status: statusFailed,
			Content: textContent(err.Error()), RawOutput: w.rawOutput}
		if a.v2() && (err == errCancelled || err == errStopped) {
			failed.Status = statusCancelled
		}
		switch {
		case err == errCancelled && a.habits.LeavesCalls:
			s.write(event{Type: eventUpdate, Update: &failed})
		case err == errCancelled && a.habits.CompletesCalls && st.ran:
			failed.Status = statusCompleted
			fallthrough
		default:
			a.record(s, failed)
		}
		return "Error: " + err.Error(), err
	}
	a.record(s, update{Tag: "tool_call_update", ToolCallID: w.id, Status: statusCompleted,
		Content: anyContent(w.content), Locations: w.locations, RawOutput: w.rawOutput})
	a.planStep(s, w.title, statusCompleted)
	return w.result, nil
}

// mayUseTools asks the user, before the first call of a turn, whether the turn may use tools. It returns nil if it
// may, and the reason otherwise.
func (a *agent) mayUseTools(s *session, t *turn) error {
	if t.asked {
		return t.barred
	}
	t.asked = true
	w := &work{a: a, s: s, name: "confirm", title: "Use tools in this turn", id: s.callID("confirm")}
	a.record(s, update{Tag: "tool_call", ToolCallID: w.id, Title: w.title, Kind: "other", Status: statusPending})
	kind, err := a.question(t.ctx, s, w, []permissionOption{
		{"tools", "Use tools", kindAllowOnce}, {"no-tools", "Use none", kindRejectOnce}})
	status, barred := statusCompleted, error(nil)
	if err != nil || kind != kindAllowOnce {
		status, barred = statusFailed, fmt.Errorf("no tool may be used in this turn: %w", cmp.Or(err, errRejected))
	}
	if t.ctx.Err() == nil || !a.habits.LeavesCalls {
		a.record(s, update{Tag: "tool_call_update", ToolCallID: w.id, Status: status})
	}
	return barred
}
