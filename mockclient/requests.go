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

// Request is a request from the agent. It gets only one answer, unless a caller of Editor.Answer answers it again.
type Request struct {
	// Entry is the request's transcript entry. Params is missing if the request has no params.
	Entry  transcript.Entry
	Params wire.Value

	e *Editor
	// e.mu guards the following fields.
	answered  bool
	undecided bool // the policy has not chosen an answer yet, so a cancel must wait
	stubborn  bool // a cancel of the turn does not answer the request
	timer     *time.Timer
	onCancel  func() // stops the work on the answer; may be nil
}

// Reply answers with a result: a value that marshals to JSON, or raw JSON.
func (r *Request) Reply(result any) {
	r.respond(func() (any, *RPCError) { return result, nil })
}

// Fail answers with an error. format and args form its message.
func (r *Request) Fail(code int64, format string, args ...any) {
	r.respond(func() (any, *RPCError) {
		return nil, &RPCError{Code: code, Message: fmt.Sprintf(format, args...)}
	})
}

// respond answers a request that has no answer yet. It locks mu, calls body for the answer and appends the answer to
// the transcript, so that the state that body reads cannot change before the append.
func (r *Request) respond(body func() (any, *RPCError)) {
	_, _ = r.e.respond(r, body, false) // a dead agent needs no answer; a failed write has an entry
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
		if rpcErr == nil && e.opts.Add != nil {
			if raw, err := encode(result); err == nil && raw != nil {
				result = e.opts.Add(r.Entry.Method, true, raw)
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
		return e.agent.Append(e.encoded(raw)), true
	})
	return entry, errors.Join(failed, err)
}

func (r *Request) stopTimer() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// handle handles one request or notification from the agent. It runs in the goroutine of all handlers.
func (e *Editor) handle(f transcript.Entry) {
	params := f.JSON().Get("params")
	r := &Request{Entry: f, Params: params, e: e}
	h, custom := e.opts.Handlers[f.Method]
	e.mu.Lock()
	if f.Seq <= e.handled && e.requests[f.Seq] == nil { // it was answered after Unhold had queued it
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
	hold := e.hold[f.Method] // always, because hold may count its calls
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

// perform answers a request about the editor's files, terminals or forms.
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

// Settle waits until each request that the agent has sent so far is handled. A handled request is answered, left open
// on purpose, or waiting for a terminal. All files that these requests write are then on disk. Settle also returns
// when ctx ends.
func (e *Editor) Settle(ctx context.Context) {
	e.agent.Delivered() // what the transcript shows may not be in the inbox yet
	select {
	case <-e.inbox.rest():
	case <-ctx.Done():
	}
}

// Held lists the agent's open requests in the order of arrival.
func (e *Editor) Held() []transcript.Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := lists.Collect(maps.Values(e.requests), func(r *Request) transcript.Entry { return r.Entry })
	slices.SortFunc(held, func(a, b transcript.Entry) int { return a.Seq - b.Seq })
	for f := range e.t.From(e.handled + 1) { // entries that are not handled yet
		if e.asks(f) && !e.early[f.Seq] {
			held = append(held, f)
		}
	}
	return held
}

// asks reports whether an entry is a request from this editor's agent.
func (e *Editor) asks(f transcript.Entry) bool {
	return f.Source == transcript.Agent && f.Kind == transcript.Request && f.Conn == e.agent.Conn()
}

// Answer answers a request from the agent. The request may be open or may already have an answer. request is the Seq
// of the request's entry.
func (e *Editor) Answer(request int, result any, rpcErr *RPCError) (transcript.Entry, error) {
	f := e.t.At(request)
	if !e.asks(f) {
		return transcript.Entry{}, fmt.Errorf("answering #%d: this entry is not a request of the agent", request)
	}
	e.mu.Lock()
	r := e.requests[request]
	if request > e.handled {
		e.early[request] = true // the answer precedes the request's handling
	}
	e.mu.Unlock()
	r = cmp.Or(r, &Request{Entry: f, e: e})
	return e.respond(r, func() (any, *RPCError) { return result, rpcErr }, true)
}

// Unhold makes the editor handle a request that it holds back, as if it had not been held. It does nothing if the
// request already has an answer, for example because the agent cancelled the request.
func (e *Editor) Unhold(request int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case request > e.handled:
		e.unheld[request] = true // the request is not handled yet
	case e.requests[request] != nil:
		e.unheld[request] = true
		e.inbox.put(request)
	}
}

// cancelledByAgent handles $/cancel_request: it answers the open request with this id with error -32800 (ACP v1,
// Cancellation).
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

// queue passes the Seqs of entries from the reader to the goroutine that handles the agent's requests. Its length is
// unlimited, because the reader must not block if the agent sends requests faster than the editor answers. An entry
// is only a number, so a long queue is small.
type queue struct {
	mu     sync.Mutex
	cond   *sync.Cond
	seqs   []int
	closed bool
	// resting is true if all Seqs taken from the queue have been handled. atRest contains the channels to close when
	// that becomes true.
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

// get waits for the next Seq. ok is false if the queue is closed and empty.
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

// rest returns a channel that is closed as soon as the queue is empty and the last Seq taken from it is handled.
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
