package mockclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Request is a request of the agent. It is answered at most once, unless a caller
// of Editor.Answer answers it again.
type Request struct {
	// Entry is the request; Params its params, missing if it has none.
	Entry  transcript.Entry
	Params wire.Value

	e *Editor
	// guarded by e.mu
	answered  bool
	undecided bool // the policy has not decided yet; a cancel waits for it
	stubborn  bool // a cancel of the turn does not answer it
	timer     *time.Timer
	onCancel  func() // ends the work on the answer
}

// Reply answers with a result: any value that marshals to JSON, or raw JSON.
func (r *Request) Reply(result any) {
	r.respond(func() (any, *RPCError) { return result, nil })
}

// Fail answers with an error.
func (r *Request) Fail(code int64, format string, args ...any) {
	r.respond(func() (any, *RPCError) {
		return nil, &RPCError{Code: code, Message: fmt.Sprintf(format, args...)}
	})
}

// respond answers a request that has no answer yet. It calls body under mu, right
// before it appends the answer, so that the state that body reads cannot change
// in between.
func (r *Request) respond(body func() (any, *RPCError)) {
	_, _ = r.e.respond(r, body, false) // a dead agent needs no answer; a failed write is an entry
}

func (e *Editor) respond(r *Request, body func() (any, *RPCError), again bool) (transcript.Entry, error) {
	var failed error
	entry, err := e.agent.Send(context.Background(), "\n", func() (transcript.Entry, bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if r.answered && !again {
			return transcript.Entry{}, false
		}
		result, rpcErr := body()
		if rpcErr == nil && e.opts.Nulls != nil {
			if raw, err := encode(result); err == nil && raw != nil {
				result = e.opts.Nulls(r.Entry.Method, true, raw)
			}
		}
		raw, err := response(r.Entry.ID, result, rpcErr)
		if err != nil {
			failed = fmt.Errorf("encoding the answer: %w", err)
			if raw, err = response(r.Entry.ID, nil, &RPCError{codeInternal, failed.Error(), nil}); err != nil {
				return transcript.Entry{}, false
			}
		}
		r.answered = true
		r.stopTimer()
		delete(e.requests, r.Entry.Seq)
		return e.agent.Append(raw), true
	})
	return entry, errors.Join(failed, err)
}

func (r *Request) stopTimer() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// handle handles one request or notification of the agent, in the goroutine of
// all handlers.
func (e *Editor) handle(f transcript.Entry) {
	params := f.JSON().Get("params")
	r := &Request{Entry: f, Params: params, e: e}
	h, custom := e.opts.Handlers[f.Method]
	e.mu.Lock()
	if f.Seq <= e.handled && e.requests[f.Seq] == nil { // it was answered after Unhold queued it
		delete(e.unheld, f.Seq)
		e.mu.Unlock()
		return
	}
	e.handled = max(e.handled, f.Seq)
	if f.Kind == transcript.Notification {
		e.mu.Unlock()
		e.cancelledByAgent(params.Get("requestId"))
		return
	}
	r.answered = e.early[f.Seq]
	delete(e.early, f.Seq)
	hold := e.hold[f.Method] // called even for answered requests, because it may count
	held := hold != nil && hold(params) && !e.unheld[f.Seq]
	delete(e.unheld, f.Seq)
	permission := f.Method == "session/request_permission" && !held && !custom
	r.undecided = permission
	if !r.answered {
		e.requests[f.Seq] = r
	}
	done, refused := held || r.answered && !permission, e.refused[f.Method]
	e.mu.Unlock()
	if done {
		return
	}
	if refused {
		r.Fail(codeInternal, "the editor refuses %s", f.Method)
		return
	}
	if custom {
		h(r)
		return
	}
	if permission {
		e.permission(r)
		return
	}
	time.Sleep(e.agent.AnswerDelay())
	e.perform(r)
}

// perform carries out a request that concerns the editor's files, terminals or forms.
func (e *Editor) perform(r *Request) {
	method := r.Entry.Method
	if gate, ok := gates[method]; ok && !e.caps.On(gate) {
		r.Fail(codeMethodNotFound, "%s: the client did not advertise %s", method, gate)
		return
	}
	switch method {
	case "fs/read_text_file":
		e.readFile(r)
	case "fs/write_text_file":
		e.writeFile(r)
	case "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		e.terminal(r)
	case "elicitation/create":
		e.elicitation(r)
	default:
		r.Fail(codeMethodNotFound, "method not found: %s", wire.Clip(method, 200))
	}
}

// Settle waits until each request that the agent has made by now is handled:
// answered, or left open on purpose or while a terminal runs. By then the editor
// has written its files to the disk. Settle also returns when ctx ends.
func (e *Editor) Settle(ctx context.Context) {
	select {
	case <-e.inbox.rest():
	case <-ctx.Done():
	}
}

// Held lists the agent's requests that have no answer yet, in order of arrival.
func (e *Editor) Held() []transcript.Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := lists.Collect(maps.Values(e.requests), func(r *Request) transcript.Entry { return r.Entry })
	slices.SortFunc(held, func(a, b transcript.Entry) int { return a.Seq - b.Seq })
	for f := range e.t.From(e.handled + 1) { // entries that no handler has seen yet
		if e.asks(f) && !e.early[f.Seq] {
			held = append(held, f)
		}
	}
	return held
}

// asks reports whether an entry is a request of this editor's agent.
func (e *Editor) asks(f transcript.Entry) bool {
	return f.Source == transcript.Agent && f.Kind == transcript.Request && f.Conn == e.agent.Conn()
}

// Answer answers a request of the agent, one that is held or one that already has
// an answer. request is the Seq of its entry.
func (e *Editor) Answer(request int, result any, rpcErr *RPCError) (transcript.Entry, error) {
	f := e.t.At(request)
	if !e.asks(f) {
		return transcript.Entry{}, fmt.Errorf("answering #%d: this entry is not a request of the agent", request)
	}
	e.mu.Lock()
	r := e.requests[request]
	if request > e.handled {
		e.early[request] = true // the caller answers it before its handler runs
	}
	e.mu.Unlock()
	r = cmp.Or(r, &Request{Entry: f, e: e})
	return e.respond(r, func() (any, *RPCError) { return result, rpcErr }, true)
}

// Unhold answers a held request as the editor would have answered it without a hold. A
// request that has an answer, for example because the agent cancelled it, stays unchanged.
func (e *Editor) Unhold(request int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case request > e.handled:
		e.unheld[request] = true // handle has not reached the request yet
	case e.requests[request] != nil:
		e.unheld[request] = true
		e.inbox.put(request)
	}
}

// cancelledByAgent honours $/cancel_request: an open request is answered with
// error -32800 (ACP v1, Cancellation).
func (e *Editor) cancelledByAgent(id wire.Value) {
	if e.opts.IgnoreCancelRequest || !id.Exists() {
		return
	}
	var found *Request
	stop := func() {}
	e.mu.Lock()
	for _, r := range e.requests {
		if string(r.Entry.ID) == string(id.Raw()) && !r.stubborn {
			found = r
			if r.onCancel != nil {
				stop = r.onCancel
			}
		}
	}
	e.mu.Unlock()
	if found != nil {
		stop()
		found.Fail(codeCancelled, "the request was cancelled")
	}
}

// queue passes the Seqs of entries from the reader to the goroutine that handles
// the agent's requests. It has no bound: an agent that asks faster than the
// editor answers must not stop the reader, and the queue keeps only a number for
// each request.
type queue struct {
	mu     sync.Mutex
	cond   *sync.Cond
	seqs   []int
	closed bool
	// resting says that all Seqs taken from the queue have been handled; atRest
	// holds the channels to close then.
	resting bool
	atRest  []chan struct{}
}

func newQueue() *queue {
	q := &queue{}
	q.cond = sync.NewCond(&q.mu)
	return q
}

func (q *queue) put(seq int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seqs = append(q.seqs, seq)
	q.cond.Signal()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Broadcast()
}

// get waits for the next Seq. ok is false when the queue is closed and empty.
func (q *queue) get() (seq int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.seqs) == 0 {
		q.resting = true
		for _, c := range q.atRest {
			close(c)
		}
		q.atRest = nil
		if q.closed {
			return 0, false
		}
		q.cond.Wait()
	}
	q.resting = false
	seq = q.seqs[0]
	q.seqs = q.seqs[1:]
	return seq, true
}

// rest returns a channel that is closed when the queue is empty and the entry
// taken last is handled.
func (q *queue) rest() <-chan struct{} {
	c := make(chan struct{})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.resting && len(q.seqs) == 0 {
		close(c)
	} else {
		q.atRest = append(q.atRest, c)
	}
	return c
}
