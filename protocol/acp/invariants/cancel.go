package invariants

import (
	"fmt"
	"slices"
	"time"

	"github.com/acp-test/acp-test/rules"
)

// slowCancel is how long a cancelled turn may take to end before the rule warns. It is our convention: the
// specification sets no limit.
const slowCancel = 5 * time.Second

// cancelReason judges the stop reason of a cancelled turn. A reason other than cancelled is a fault if work of the
// turn was open from the moment the editor had written the cancel until the response. Two things prove this: a model
// reply held at a gate (even if the agent then hangs up), or an agent's request that the editor has not answered.
// Without proof, the cancel and the response may have crossed.
func cancelReason(w *watch) {
	v := w.version
	goesOn(w)
	var suspects []suspect
	settle := func(is func(suspect) bool, report func(suspect)) {
		for _, s := range suspects {
			if is(s) {
				report(s)
			}
		}
		suspects = slices.DeleteFunc(suspects, is)
	}
	accuse := func(s suspect) { w.Report(s.point, s.conn, s.session, s.object, s.entries, "%s", s.message) }
	confirm := func(ev *event) { settle(func(s suspect) bool { return s.conn == ev.Conn }, accuse) }
	acquit := func(ev *event) {
		settle(func(s suspect) bool { return s.conn == ev.Conn && s.act.seq == ev.Ref }, func(s suspect) {
			w.Report("unproven", s.conn, s.session, s.object, s.entries,
				"The agent responded before the client had finished writing the cancel, which the agent may not "+
					"have read.")
		})
	}

	w.On(acquit, writeEnded)
	w.On(confirm, append(append(editorRequests(), editorAnswers()...), cancelTold, editorTakesBack, editorOtherTold,
		editorNoise)...)
	errs := func(ev *event, a *act, point string, word string) {
		if t := ev.turn; !t.tookBack(ev) {
			w.find(point, ev, fmt.Sprint(t.started), []int{t.started, a.seq},
				"The agent answered the prompt that %s had stopped with error %d %q instead of cancelled.", word,
				ev.code(), ev.err.Get("message").Str())
		}
	}
	queues := queueing(w)
	w.On(func(ev *event) {
		t := ev.turn
		a, closing := t.stopper()
		if a == nil || t.exempt(ev, a, queues(ev.conn)) || !t.session.ready(v) {
			return
		}
		point, fault, word := "other-reason", "error", "session/cancel"
		if closing {
			point, fault, word = "close-other-reason", "close-error", "session/close"
		}
		if ev.err.Exists() && w.state.failedBefore(t, a) > 0 {
			return // the model's failure had ended the turn
		}
		w.Saw(point, fault)
		object := fmt.Sprint(t.started)
		if ev.err.Exists() {
			errs(ev, a, fault, word)
			return
		}
		if ev.stop == "cancelled" {
			took := ev.At - max(a.at, ev.conn.answeredAt)
			w.judge("slow", took > slowCancel && !ev.conn.asks(t.session), ev, object, []int{a.seq},
				"The turn ended %s after %s.", took.Round(time.Millisecond), word)
			return
		}
		proof, at := w.state.openWork(t, a, ev.stop)
		if proof == "" {
			w.find("unproven", ev, object, []int{t.started, a.seq},
				"After %s the turn ended with %q instead of cancelled. Cancel and response may have crossed: %s.",
				word, ev.stop, w.state.unproved(t))
			return
		}
		suspects = append(suspects, suspect{
			conn: ev.Conn, session: ev.Session, act: a, object: object,
			point: point, entries: []int{t.started, at, a.seq, ev.Seq},
			message: fmt.Sprintf("After %s the turn ended with %q instead of cancelled, although %s.", word, ev.stop, proof),
		})
		if a.ended > 0 { // the write is known to have ended, so nothing can excuse the agent
			confirm(ev)
		}
	}, answered(prompt))
	w.AtEnd(func(end rules.End) {
		settle(func(suspect) bool { return true }, accuse)
		w.unanswered(end, rules.OfClient, func(r *request, a absence) { w.silentCancel(r, a) })
	})
}

// silentCancel reports a cancelled prompt that got no answer.
func (w *watch) silentCancel(r *request, gone absence) {
	a, _ := r.turn.stopper()
	if r.verb != prompt || a == nil || a.failed || r.turn.concurrent {
		return
	}
	point, entries, but := "no-response", []int{r.seq, a.seq}, ""
	if method, at := r.turn.awaits(func(*request) bool { return true }); method != "" {
		point, entries = "editor-owes-answer", []int{r.seq, at, a.seq}
		but = ", but the editor has not answered the agent's " + method + " either"
	}
	w.Report(point, r.conn.n, r.session.id, fmt.Sprint(r.seq), entries,
		"The cancelled prompt got no response %s%s.", gone.how, but)
}

// queueing returns a function that reports whether an agent queues prompts: it promises that, or it has carried out a
// prompt that came while the model replied to another.
func queueing(w *watch) func(*conn) bool {
	seen := map[*conn]bool{}
	w.inTurn(func(ev *event, t *turn) {
		first := t.session.last
		own := first != nil && first.ended > t.started && w.state.models.asked[t.session.id] > first.ended
		seen[ev.conn] = seen[ev.conn] || t.amid && ev.stop == "end_turn" && own
	}, answered(prompt))
	return func(c *conn) bool { return seen[c] || w.Config().Busy == "queue" }
}

// exempt reports whether the answer to a prompt proves nothing about frame a, which stopped the turn. An agent may
// refuse a prompt to a busy session. But if it queues prompts, and has answered the prompt before this one with
// cancelled, it has read the prompt and then the cancel or close, and must not answer with an error.
func (t *turn) exempt(ev *event, a *act, queues bool) bool {
	if !t.concurrent {
		return a.failed || t.mayBeLate(ev)
	}
	first := t.session.last
	dropped := first != nil && first.stop == "cancelled" && first.started < t.started &&
		first.ended > max(a.seq, t.started)
	return !queues || !dropped || !ev.err.Exists() || a.failed || t.disturbed || t.request.back != nil ||
		t.mayBeLate(ev)
}

// mayBeLate reports whether the agent may have refused the prompt because it handled the close of the session first. An
// agent may handle requests in any order.
func (t *turn) mayBeLate(ev *event) bool {
	return t.close != nil && !t.spoke && !t.acted && slices.Contains([]int{-32002, -32602}, int(ev.code()))
}

// suspect is a violation that is excused if the editor finished writing the cancel only after the agent's response.
// The editor writes one frame at a time, so its next frame proves that it had written the cancel.
type suspect struct {
	point           string
	conn            int
	session, object string
	act             *act
	entries         []int
	message         string
}

// stopper returns the editor's frame that told the agent to stop the turn, or nil. closing says that this frame closed
// the session.
func (t *turn) stopper() (a *act, closing bool) {
	if t == nil {
		return nil, false
	}
	if t.cancel != nil && (t.close == nil || t.cancel.seq < t.close.seq) {
		return t.cancel, false
	}
	return t.close, t.close != nil
}

// openWork returns a proof that the turn had open work when the editor finished writing frame a. The work is still
// open, or the agent gave it up after a. at is the Seq of the entry that opened the work. Without such work, proof is
// "" and at is 0.
func (w *world) openWork(t *turn, a *act, stop string) (proof string, at int) {
	known := max(a.ended, a.seq)
	if held := w.models.heldFor(t.session, t, known); held != nil {
		return fmt.Sprintf("the model's reply was held at gate %q %s", held.gate,
			pick(held.left > 0, "until the agent dropped the model request", "all the while")), held.held
	}
	if method, at := t.awaits(func(r *request) bool { return r.seq < known && r.back == nil }); method != "" {
		return fmt.Sprintf("the agent's %s was still waiting for the editor's answer", method), at
	}
	if r := t.heard; r != nil && r.verb == permission {
		return "the agent's permission request was open until the editor answered cancelled", r.seq
	}
	asked := w.models.asked[t.session.id]
	if r := t.heard; r != nil && asked > t.heardAt && (t.joined == 0 || asked < t.joined) {
		return fmt.Sprintf(
			"the editor answered the agent's %s after that, and the agent asked the model again", r.method), r.seq
	}
	for _, tool := range t.tools {
		if stop == "end_turn" && asked > t.started && tool.allowed > 0 && tool.status == completed &&
			!w.models.told(t.session.id, tool.first) {
			return fmt.Sprintf(
				"the model waited for the result of tool call %q, which was allowed and completed", tool.id), tool.seq
		}
	}
	if hung := w.gaveUp(t, known); hung > 0 {
		return "an MCP call that its server never answers was open, and the agent then asked the model again", hung
	}
	if term := t.terminal(known); term != nil {
		return fmt.Sprintf("the terminal %q of an unfinished tool call was still running", term.id), term.created
	}
	return "", 0
}

// gaveUp returns the Seq of a model reply with an MCP call that the canary never answers, if the call was open at the
// entry at. Only the agent can end such a call. It did so after that entry, because it then gave the model a result. If
// there is no such call, gaveUp returns 0.
func (w *world) gaveUp(t *turn, at int) int {
	hung := w.models.hangs[t.session.id]
	ended := func(k *tool) bool { return k.first < at && k.seq > at && k.status.final() }
	if hung < t.started || hung > at || w.models.asked[t.session.id] < at || !slices.ContainsFunc(t.tools, ended) {
		return 0
	}
	return hung
}

// terminal returns a running terminal of an unfinished tool call that was created before an entry, or nil.
func (t *turn) terminal(before int) *terminal {
	for _, tool := range t.tools {
		for _, id := range tool.terminals {
			if term := t.session.conn.terminals[id]; term != nil && !tool.status.final() && term.runs(t) &&
				term.created < before {
				return term
			}
		}
	}
	return nil
}

// runs reports whether the terminal belongs to the turn in, and its command has not ended.
func (t *terminal) runs(in *turn) bool {
	return t.turn == in && !t.exited && !t.killed && t.released == 0
}

// tookBack reports whether the prompt's answer has the error code that $/cancel_request demands.
func (t *turn) tookBack(ev *event) bool { return t.request.back != nil && ev.code() == -32800 }

// failedBefore returns the Seq of a model failure that may explain the agent's error, or 0. It also returns 0 if the
// turn had open work when the editor finished writing frame a: then the failure had not ended the turn.
func (w *world) failedBefore(t *turn, a *act) int {
	if proof, _ := w.openWork(t, a, ""); proof != "" {
		return 0
	}
	return w.models.failedIn(t)
}

// unproved explains, for each kind of work in a turn, why the log does not prove that this work was open.
func (w *world) unproved(t *turn) string {
	reply := "the log shows no model request in this turn"
	if asked := w.models.asked[t.session.id]; asked > t.started {
		reply = "the model's last reply had ended"
		if s := w.models.streams[w.models.latest[t.session.id]]; s != nil {
			reply = "the model's reply was under way, but no gate held it"
		}
	}
	request := "no request of the turn waited for the editor"
	if r := t.heard; r != nil {
		request = fmt.Sprintf(
			"the editor answered the agent's %s after that, but the log does not show the effect", r.method)
	}
	call := "no tool call was unfinished"
	for _, tool := range t.tools {
		if !tool.status.final() {
			call = fmt.Sprintf("tool call %q had not ended, but the log does not show what it waits for", tool.id)
		}
	}
	return reply + "; " + request + "; " + call
}

// awaits looks for the turn's first open request of the agent that satisfies meant and whose answer the agent surely
// waits for. It returns the method and the Seq of the request, or "" and 0.
func (t *turn) awaits(meant func(*request) bool) (method string, at int) {
	for _, r := range t.session.conn.open {
		if r.by == rules.OfAgent && r.turn == t && meant(r) && r.awaited(t) && (at == 0 || r.seq < at) {
			method, at = r.method, r.seq
		}
	}
	return method, at
}

// awaited reports whether the agent surely waits for the answer to its request. An agent need not wait for a clean-up,
// for an extension method, or for a command that may outlive the turn.
func (r *request) awaited(t *turn) bool {
	switch r.verb {
	case killTerminal, releaseTerminal, otherOfAgent:
		return false
	case waitForExit, terminalOutput:
		return slices.ContainsFunc(t.tools, func(tool *tool) bool { return !tool.status.final() })
	}
	return true
}

// excused reports whether the editor did something that allows the turn to end as cancelled.
func (t *turn) excused() bool {
	c := t.session.conn
	return t.stopped() || t.close != nil || t.request == nil || t.request.back != nil || t.disturbed ||
		c.closedIn > 0 || c.signalled > 0
}

// cancelCause checks that a turn which ends as cancelled was cancelled.
func cancelCause(w *watch) {
	type told struct {
		session *session
		seq     int
	}
	last := map[*conn]told{}
	idle := map[*session]int{} // Seq of a session/cancel after the last turn and before the next
	refused, rejected := map[*turn]int{}, map[*turn]bool{}
	// By the schema (RequestPermissionOutcome), the outcome cancelled tells the agent that the turn was cancelled
	// before the user answered.
	excused := map[*turn]bool{}
	w.On(func(ev *event) {
		last[ev.conn] = told{ev.session, ev.Seq}
		if ev.session != nil && ev.turn == nil {
			idle[ev.session] = ev.Seq
		}
	}, cancelTold)
	w.On(func(ev *event) {
		if other := last[ev.conn]; other.session != nil {
			w.withdraws(ev, other.session, other.seq)
		}
	}, agentTakesBack)
	w.On(func(ev *event) {
		switch t := ev.request.turn; {
		case t == nil:
		case denial(ev) == dismissed, ev.code() == -32800:
			excused[t] = true
		case !allows(ev):
			how := denial(ev)
			refused[t], rejected[t] = ev.Seq, how == rejectedOnce || how == rejectedAlways
		}
	}, answered(permission))
	w.onEnd(func(ev *event) {
		t := ev.turn
		if t == nil {
			return
		}
		before, refusal, said, cancelled := idle[t.session], refused[t], rejected[t], excused[t]
		delete(refused, t)
		delete(rejected, t)
		delete(excused, t)
		delete(idle, t.session)
		w.Saw("not-cancelled", "earlier-cancel", "other-session", "rejected")
		if ev.stop != "cancelled" || cancelled || t.excused() {
			return
		}
		object := fmt.Sprint(t.started)
		other := last[ev.conn]
		switch {
		case refusal > 0 && said:
			w.find("rejected", ev, object, []int{t.started, refusal},
				"The turn ended with cancelled after the user had rejected a call, but nobody had cancelled the turn.")
		case refusal > 0:
			w.find("denied-permission", ev, object, []int{t.started, refusal},
				"The turn ended with cancelled after a permission was not granted, but nobody had cancelled it.")
		case before > 0 && before < t.started:
			w.find("earlier-cancel", ev, object, []int{before, t.started},
				"The turn ended with cancelled because of a cancel sent before its prompt.")
		case other.seq > t.started && other.session != t.session:
			w.find("other-session", ev, object, []int{t.started, other.seq},
				"The turn ended cancelled, but the cancel was for another session.")
		default:
			w.find("not-cancelled", ev, object, []int{t.started}, "The turn ended cancelled, but nobody had cancelled it.")
		}
	})
}

// withdraws checks that the agent does not take back a request because of a session/cancel for another session. seq is
// the Seq of that cancel.
func (w *watch) withdraws(ev *event, other *session, seq int) {
	const soon = 5 * time.Second // later, the agent may withdraw the request because it waits in vain
	r := ev.conn.ids[rules.OfAgent][idOf(ev.params.Get("requestId"))]
	if r == nil || r.turn == nil || w.version.states {
		return
	}
	t := r.turn
	elsewhere := seq > r.seq && other.known() && !other.within(t.session)
	denied := slices.ContainsFunc(t.tools, func(k *tool) bool { return k.denied > 0 })
	w.judge("other-session", elsewhere && t.ended == 0 && !t.excused() && !denied && ev.At-r.at < soon, ev,
		fmt.Sprint(r.seq), []int{r.seq, seq},
		"The agent took back %s of a turn that nobody had cancelled; the cancel was for another session.", r.method)
}
