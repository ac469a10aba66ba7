package refagent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
)

// terminal is a command that the agent runs itself and shows, in version 2.
type terminal struct {
	id   string
	s    *session
	stop context.CancelFunc
	done chan struct{}
}

// Write shows a piece of the output.
func (t *terminal) Write(p []byte) (int, error) {
	t.s.notify(map[string]any{"sessionUpdate": "terminal_output_chunk", "terminalId": t.id,
		"data": base64.StdEncoding.EncodeToString(p)})
	return len(p), nil
}

// begin shows a terminal that can be stopped.
func (w *work) begin(ctx context.Context) (*terminal, context.Context) {
	t := &terminal{id: "term-" + w.id, s: w.s, done: make(chan struct{})}
	ctx, t.stop = context.WithCancel(ctx)
	w.s.mu.Lock()
	w.s.terminals = append(w.s.terminals, t)
	w.s.mu.Unlock()
	w.s.notify(map[string]any{"sessionUpdate": "terminal_update", "terminalId": t.id,
		"command": w.args.str("command"), "cwd": w.s.cwd, "capabilities": map[string]any{"cancel": map[string]any{}}})
	w.progress([]toolContent{{Type: "terminal", TerminalID: t.id}})
	return t, ctx
}

// ended shows how a command ended. One that was stopped was killed.
func (t *terminal) ended(status exitStatus, err error) exitStatus {
	t.s.mu.Lock()
	t.s.terminals = slices.DeleteFunc(t.s.terminals, func(other *terminal) bool { return other == t })
	t.s.mu.Unlock()
	if err != nil {
		killed := "killed"
		status = exitStatus{Signal: &killed}
	}
	t.stop()
	t.s.notify(map[string]any{"sessionUpdate": "terminal_update", "terminalId": t.id, "exitStatus": status,
		"capabilities": nil})
	return status
}

// inOwnTerminal runs a command in a terminal that the agent shows.
func (w *work) inOwnTerminal(ctx context.Context) (status exitStatus, output string, err error) {
	t, own := w.begin(ctx)
	defer close(t.done)
	status, output, err = w.inProcess(own, t)
	status = t.ended(status, err)
	if ctx.Err() == nil && errors.Is(err, errCancelled) {
		err = nil // the user stopped the command, and not the call
	}
	return status, output, err
}

// startCommand runs a command in the background: the call is over, and the command goes on.
func startCommand(_ context.Context, w *work) error {
	t, own := w.begin(w.a.ctx)
	s := w.s
	s.mu.Lock()
	s.background, s.hadBackground = append(s.background, t), true
	s.enter(s.state)
	s.mu.Unlock()
	w.a.spawn(func() {
		defer close(t.done)
		status, _, err := w.inProcess(own, t)
		t.ended(status, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.background = slices.DeleteFunc(s.background, func(other *terminal) bool { return other == t })
		s.enter(s.state)
	})
	w.result = "The command runs in the background, in " + t.id + "."
	return nil
}

// stopBackground ends what runs in the background, and waits for it.
func (s *session) stopBackground() {
	s.mu.Lock()
	list := slices.Clone(s.background)
	s.mu.Unlock()
	for _, t := range list {
		t.stop()
	}
	for _, t := range list {
		<-t.done
	}
}

// errStopped is a call that the user cancelled alone.
var errStopped = errors.New("the user cancelled this call")

// holder is the session that has what is to be cancelled. Nothing is in one that is not there.
func (a *agent) holder(params json.RawMessage) (*session, *rpcError) {
	s, err := a.known(params)
	if err != nil && a.habits.ItemsFirst {
		err = badParams("there is nothing to cancel")
	}
	return s, err
}

// cancelCall is tool_call/cancel.
func (a *agent) cancelCall(r *request, params json.RawMessage) *rpcError {
	s, err := a.holder(params)
	if err != nil {
		return err
	}
	r.session = s.id
	var p struct{ ToolCallID *string }
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	if p.ToolCallID == nil {
		return badParams("toolCallId is missing")
	}
	s.mu.Lock()
	stop := s.calls[*p.ToolCallID]
	delete(s.calls, *p.ToolCallID)
	s.mu.Unlock()
	if stop == nil {
		return badParams("tool call %q cannot be cancelled", *p.ToolCallID)
	}
	a.conn.respond(r, nil, nil)
	stop()
	return nil
}

// cancelTerminal is terminal/cancel.
func (a *agent) cancelTerminal(r *request, params json.RawMessage) *rpcError {
	s, err := a.holder(params)
	if err != nil {
		return err
	}
	r.session = s.id
	var p struct{ TerminalID *string }
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	if p.TerminalID == nil {
		return badParams("terminalId is missing")
	}
	s.mu.Lock()
	at := slices.IndexFunc(s.terminals, func(t *terminal) bool { return t.id == *p.TerminalID })
	var t *terminal
	if at >= 0 {
		t = s.terminals[at]
		s.terminals = slices.Delete(s.terminals, at, at+1)
	}
	s.mu.Unlock()
	if t == nil {
		return badParams("terminal %q cannot be cancelled", *p.TerminalID)
	}
	a.conn.respond(r, nil, nil)
	t.stop()
	return nil
}

// stoppable makes the context of a call that can be cancelled alone, until the returned
// function is called. It reports whether it was.
func (s *session) stoppable(ctx context.Context, id string) (own context.Context, done func() bool) {
	if !s.a.v2() {
		return ctx, func() bool { return false }
	}
	own, stop := context.WithCancelCause(ctx)
	s.mu.Lock()
	if s.calls == nil {
		s.calls = map[string]func(){}
	}
	s.calls[id] = func() { stop(errStopped) }
	s.mu.Unlock()
	return own, func() bool {
		s.mu.Lock()
		delete(s.calls, id)
		s.mu.Unlock()
		stopped := context.Cause(own) == errStopped
		stop(nil)
		return stopped
	}
}
