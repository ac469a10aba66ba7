package refagent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
)

// terminal is a command that the agent runs itself and shows to the user, in version 2.
type terminal struct {
	id       string
	s        *session
	stop     context.CancelFunc
	withdraw func() // makes terminal/cancel ignore the terminal
	done     chan struct{}
}

// Write sends a piece of the command's output to the editor.
func (t *terminal) Write(p []byte) (int, error) {
	t.s.notify(object{"sessionUpdate": "terminal_output_chunk", "terminalId": t.id,
		"data": base64.StdEncoding.EncodeToString(p)})
	return len(p), nil
}

// begin creates a terminal and announces it to the editor. The user can stop it: the returned context then ends.
func (w *work) begin(ctx context.Context) (*terminal, context.Context) {
	t := &terminal{id: "term-" + w.id, s: w.s, done: make(chan struct{})}
	ctx, t.stop = context.WithCancel(ctx)
	t.withdraw = w.s.stoppable("terminal "+t.id, t.stop)
	w.s.notify(object{"sessionUpdate": "terminal_update", "terminalId": t.id,
		"command": w.args.str("command"), "cwd": w.s.cwd, "capabilities": object{"cancel": object{}}})
	w.progress([]toolContent{{Type: "terminal", TerminalID: t.id}})
	return t, ctx
}

// ended reports to the editor how a command ended, and returns the status. A stopped command counts as killed.
func (t *terminal) ended(status exitStatus, err error) exitStatus {
	t.withdraw()
	if err != nil {
		killed := "killed"
		status = exitStatus{Signal: &killed}
	}
	t.stop()
	t.s.notify(object{"sessionUpdate": "terminal_update", "terminalId": t.id, "exitStatus": status,
		"capabilities": nil})
	return status
}

// inOwnTerminal runs a command in a terminal that the agent shows to the user.
func (w *work) inOwnTerminal(ctx context.Context) (status exitStatus, output string, err error) {
	t, own := w.begin(ctx)
	defer close(t.done)
	status, output, err = w.inProcess(own, t)
	status = t.ended(status, err)
	if ctx.Err() == nil && errors.Is(err, errCancelled) {
		err = nil // the user stopped only the command
	}
	return status, output, err
}

// startCommand starts a command in the background. The tool call ends at once, and the command continues.
func startCommand(_ context.Context, w *work) error {
	t, own := w.begin(w.a.ctx)
	s := w.s
	s.mu.Lock()
	s.background, s.hadBackground = append(s.background, t), true
	s.enter(s.state, nil)
	s.mu.Unlock()
	w.a.spawn(func() {
		defer close(t.done)
		status, _, err := w.inProcess(own, t)
		t.ended(status, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.background = slices.DeleteFunc(s.background, func(other *terminal) bool { return other == t })
		s.enter(s.state, nil)
	})
	w.result = "The command runs in the background, in " + t.id + "."
	return nil
}

// stopBackground stops the session's background commands and waits until they have ended.
func (s *session) stopBackground() {
	list := locked(s, func() []*terminal { return slices.Clone(s.background) })
	for _, t := range list {
		t.stop()
	}
	for _, t := range list {
		<-t.done
	}
}

// errStopped means that the user cancelled only this tool call.
var errStopped = errors.New("the user cancelled this call")

// holder returns the session in a request that cancels an item. It returns an error for an unknown session.
func (a *agent) holder(params json.RawMessage) (*session, *rpcError) {
	s, err := a.known(params)
	if err != nil && a.habits.ItemsFirst {
		err = badParams("there is nothing to cancel")
	}
	return s, err
}

// stopItem returns the handler of tool_call/cancel or terminal/cancel. The member key of the params is the id of the
// item to stop. A second cancel of the item gets an error.
func (a *agent) stopItem(kind, key string) func(r *request, s *session, params json.RawMessage) *rpcError {
	return func(r *request, s *session, params json.RawMessage) *rpcError {
		id, err := member(params, key)
		if err != nil {
			return err
		}
		item := kind + " " + id
		s.mu.Lock()
		stop := s.items[item]
		delete(s.items, item)
		s.mu.Unlock()
		if stop == nil {
			return badParams("%s %q cannot be cancelled", kind, id)
		}
		a.conn.respond(r, nil, nil)
		stop()
		return nil
	}
}

// stoppable allows the editor to stop an item until withdraw is called. item is the item's kind and id. stop stops
// the item.
func (s *session) stoppable(item string, stop func()) (withdraw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[item] = stop
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.items, item)
	}
}

// alone returns a context for a tool call, which also ends if the user cancels only this call. done must be called at
// the end of the call. It reports whether the user cancelled the call.
func (s *session) alone(ctx context.Context, id string) (own context.Context, done func() bool) {
	if !s.a.v2() {
		return ctx, func() bool { return false }
	}
	own, stop := context.WithCancelCause(ctx)
	withdraw := s.stoppable("tool call "+id, func() { stop(errStopped) })
	return own, func() bool {
		withdraw()
		stopped := context.Cause(own) == errStopped
		stop(nil)
		return stopped
	}
}
