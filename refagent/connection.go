package refagent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// errDisconnected is the error of requests to an editor that has closed the connection.
var errDisconnected = errors.New("the editor has gone")

// connection is the JSON-RPC layer. It writes frames, matches responses to requests in both directions, and preserves
// the order of messages.
type connection struct {
	hooks  *Hooks
	habits *Habits
	dress  dress
	port   *Port
	out    *outbox
	grace  time.Duration
	closed chan struct{} // closed at the end of input

	mu      sync.Mutex
	next    int64
	pending map[string]chan incoming // the agent's open requests, by the key of their id
	open    map[string]*request      // the editor's open requests, by the key of their id
}

// request is one request of the editor.
type request struct {
	id      json.RawMessage
	method  string
	session string
	cancel  func() // called for $/cancel_request; may be nil
}

func newConnection(h *Hooks, habits *Habits, grace time.Duration) *connection {
	return &connection{hooks: h, habits: habits, dress: dress{changes: habits.Changes, spell: habits.Spell},
		out: newOutbox(), next: 1, grace: grace, closed: make(chan struct{}), pending: map[string]chan incoming{},
		open: map[string]*request{}}
}

// readLines calls handle for every line, of any length, until the input ends. Empty lines are skipped. A last line
// without a newline also counts.
func readLines(r io.Reader, handle func([]byte)) error {
	b := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := b.ReadBytes('\n')
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			handle(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading from the editor: %w", err)
		}
	}
}

// send queues one message for the editor. If there is a Send hook, it gets the message instead.
func (c *connection) send(v any, method, session string) {
	frame := encode(v)
	switch {
	case c.hooks.Send != nil:
		c.hooks.Send(c.port, Frame{Message: Decode(frame), Method: method, Session: session})
	case len(c.dress.changes) > 0:
		c.emit(Decode(frame))
	default:
		c.put(frame)
	}
}

// put queues a frame, in the JSON spelling that the habits select.
func (c *connection) put(frame []byte) {
	if c.dress.spell != nil {
		frame = c.dress.spell(frame)
	}
	c.out.put(frame)
}

// emit queues a message after the hooks. It applies the changes of the habits.
func (c *connection) emit(m Message) {
	c.dress.out(m, func(m Message) { c.put(encode(m)) })
}

func (c *connection) notify(method, session string, params any) {
	c.send(outRequest{JSONRPC: "2.0", Method: method, Params: params}, method, session)
}

// respond sends the response to a request from the editor. The request is then closed, so that it gets only one
// response.
func (c *connection) respond(r *request, result any, err *rpcError) {
	c.mu.Lock()
	if c.open[idKey(r.id)] == r {
		delete(c.open, idKey(r.id))
	}
	c.mu.Unlock()
	if err == nil && result == nil {
		result = struct{}{}
	}
	if err != nil {
		result = nil
	}
	c.send(outResponse{JSONRPC: "2.0", ID: r.id, Result: result, Error: err}, r.method, r.session)
}

// reject answers a line that is not a valid request with an error. A nil id is sent as null.
func (c *connection) reject(id json.RawMessage, err *rpcError) {
	if id == nil {
		id = json.RawMessage("null")
	}
	c.send(outResponse{JSONRPC: "2.0", ID: id, Error: err}, "", "")
}

// accept registers a request from the editor as open until respond is called.
func (c *connection) accept(m incoming) *request {
	r := &request{id: m.id, method: m.method}
	c.mu.Lock()
	c.open[idKey(m.id)] = r
	c.mu.Unlock()
	return r
}

// cancelable sets the function to call when the editor cancels r by $/cancel_request.
func (c *connection) cancelable(r *request, cancel func()) {
	c.mu.Lock()
	r.cancel = cancel
	c.mu.Unlock()
}

// cancelRequest handles $/cancel_request from the editor.
func (c *connection) cancelRequest(id json.RawMessage) {
	c.mu.Lock()
	cancel := func() {}
	if r := c.open[idKey(id)]; r != nil && r.cancel != nil {
		cancel = r.cancel
	}
	c.mu.Unlock()
	cancel()
}

// call is a request to the editor that has no response yet.
type call struct {
	c       *connection
	id      json.RawMessage
	session string
	answer  chan incoming
}

// begin sends a request and returns without waiting for the response.
func (c *connection) begin(method, session string, params any) *call {
	c.mu.Lock()
	id := c.habits.RequestIDs.id(c.next)
	c.next++
	ch := make(chan incoming, 1)
	c.pending[idKey(id)] = ch
	c.mu.Unlock()
	c.send(outRequest{JSONRPC: "2.0", ID: id, Method: method, Params: params}, method, session)
	return &call{c: c, id: id, session: session, answer: ch}
}

// await waits for the response and decodes its result. It returns an error if ctx ends or the connection closes
// first.
func (k *call) await(ctx context.Context, result any) error {
	var err error
	select {
	case m := <-k.answer:
		return decodeAnswer(m, result)
	case <-k.c.closed:
		err = errDisconnected
	case <-ctx.Done():
		err = ctx.Err()
	}
	select {
	case m := <-k.answer: // the response has arrived as well
		return decodeAnswer(m, result)
	default:
		return err
	}
}

// awaitGrace waits for the response for the grace period, because an editor whose turn was cancelled must still
// respond. After that, it cancels the request. A response that comes even later can still be awaited.
func (k *call) awaitGrace(result any) error {
	ctx, stop := context.WithTimeout(context.Background(), k.c.grace)
	defer stop()
	err := k.await(ctx, result)
	if errors.Is(err, context.DeadlineExceeded) {
		k.c.notify("$/cancel_request", k.session, object{"requestId": k.id})
	}
	return err
}

// call sends a request and waits for the response. It sends nothing if ctx has already ended.
func (c *connection) call(ctx context.Context, method, session string, params, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.callEvenSo(ctx, method, session, params, result)
}

// callEvenSo is like call, but sends the request even if ctx has already ended. If ctx ends before the response
// comes, it gives the editor the grace period to respond, and then cancels the request.
func (c *connection) callEvenSo(ctx context.Context, method, session string, params, result any) error {
	return c.begin(method, session, params).awaitEvenSo(ctx, result)
}

// awaitEvenSo is like await, but if ctx ends first, it awaits the response for the grace period.
func (k *call) awaitEvenSo(ctx context.Context, result any) error {
	err := k.await(ctx, result)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return k.awaitGrace(result)
	}
	return err
}

// answered passes a response to the request that it answers. It ignores a response to an unknown request.
func (c *connection) answered(m incoming) {
	key := idKey(m.id)
	c.mu.Lock()
	ch := c.pending[key]
	delete(c.pending, key)
	c.mu.Unlock()
	if ch != nil {
		ch <- m
	}
}

func decodeAnswer(m incoming, result any) error {
	if m.err != nil {
		return m.err
	}
	if result == nil || len(m.result) == 0 {
		return nil
	}
	if err := json.Unmarshal(m.result, result); err != nil {
		return fmt.Errorf("the editor's answer is malformed: %s", plain(err))
	}
	return nil
}
