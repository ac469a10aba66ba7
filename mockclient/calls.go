package mockclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// IDs returns the id of a connection's n-th request. n counts from 0.
type IDs func(n int) wire.ID

// CountingIDs returns the integers from a number on, which may be negative.
func CountingIDs(from int64) IDs {
	return func(n int) wire.ID { return wire.ID(strconv.FormatInt(from+int64(n), 10)) }
}

// StringIDs returns strings of the prefix and a number, counted from 1, such as "a-1" for the prefix "a-".
func StringIDs(prefix string) IDs {
	return func(n int) wire.ID {
		return wire.ID(wire.AppendString(nil, prefix+strconv.Itoa(n+1)))
	}
}

// ListedIDs returns the listed ids, followed by the integers from 1000 on, which JavaScript agents represent
// exactly.
func ListedIDs(ids ...wire.ID) IDs {
	rest := CountingIDs(1000)
	return func(n int) wire.ID {
		if n < len(ids) {
			return ids[n]
		}
		return rest(n - len(ids))
	}
}

// Call is a request of the editor and, once received, the agent's response.
type Call struct {
	// Entry is the request's transcript entry. Its Seq is 0 if the request was not sent.
	Entry transcript.Entry

	e    *Editor
	done chan struct{}
	resp transcript.Entry
	err  error

	writing bool // the write of the request has not ended; guarded by the editor's mu
}

func (c *Call) finish(resp transcript.Entry, err error) {
	c.resp, c.err = resp, err
	close(c.done)
}

// Done returns a channel that is closed when the response is in the transcript, or when it is certain that none will
// come.
func (c *Call) Done() <-chan struct{} { return c.done }

// Response returns the response. ok is false if it has not been received.
func (c *Call) Response() (transcript.Entry, bool) {
	select {
	case <-c.done:
		return c.resp, c.resp.Seq != 0
	default:
		return transcript.Entry{}, false
	}
}

// Wait waits for the response and returns it. It returns an *RPCError if the agent answered with an error, and
// ErrExited if the agent exited without answering. If the request could not be written, it returns the write error.
// If ctx ends first, it returns the cause of ctx.
func (c *Call) Wait(ctx context.Context) (transcript.Entry, error) {
	select {
	case <-c.done:
	default:
		select {
		case <-c.done:
		case <-ctx.Done():
			return transcript.Entry{}, fmt.Errorf("waiting for the answer to %s: %w", c.Entry.Method, context.Cause(ctx))
		}
	}
	if c.err != nil {
		return c.resp, fmt.Errorf("%s: %w", c.Entry.Method, c.err)
	}
	if rpc := errorOf(c.resp); rpc != nil {
		return c.resp, fmt.Errorf("%s: %w", c.Entry.Method, rpc)
	}
	return c.resp, nil
}

// errorOf returns the error of a response, or nil if the response has no error.
func errorOf(resp transcript.Entry) *RPCError {
	v := resp.JSON().Get("error")
	if v.Kind() != wire.Object {
		return nil
	}
	code, _ := v.Get("code").Int()
	rpc := &RPCError{Code: code, Message: v.Get("message").Str()}
	if d := v.Get("data"); d.Exists() {
		rpc.Data = string(d.Raw())
	}
	return rpc
}

// Cancel sends $/cancel_request for this request. The agent must still respond, with a result or with error -32800.
func (c *Call) Cancel() (transcript.Entry, error) {
	return c.e.Notify("$/cancel_request", map[string]any{"requestId": rawJSON(c.Entry.ID)})
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// Call sends a request. It returns when the request is written or the agent has ended. If the request could not be
// sent, the Call is done at once, and Wait returns the error. params may be a value that marshals to JSON, raw JSON
// as []byte, or nil for no params.
func (e *Editor) Call(method string, params any) *Call {
	return e.CallContext(context.Background(), method, params)
}

// CallContext is like Call, but stops waiting for a blocked write when ctx ends. The write continues in the
// background, and the response may still come.
func (e *Editor) CallContext(ctx context.Context, method string, params any) *Call {
	c := &Call{e: e, done: make(chan struct{})}
	raw, err := encode(params)
	if err != nil {
		c.Entry.Method = method
		c.finish(transcript.Entry{}, fmt.Errorf("encoding params: %w", err))
		return c
	}
	var release []*Request
	entry, err := e.agent.Send(ctx, "\n", func() (transcript.Entry, bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		f := e.agent.Append(e.message(e.id(), method, raw))
		c.Entry, c.writing = f, true
		release = e.sent(f, c)
		return f, true
	})
	if entry.Seq == 0 {
		c.Entry.Method = method
	}
	e.written(c, entry, err)
	e.answerCancelled(release)
	return c
}

// id returns the id for the next request. No open request of the editor has the same id. If TheirIDs is set, the
// result is the id of the agent's oldest open request, if there is one. The caller holds mu.
func (e *Editor) id() wire.ID {
	taken := func(id wire.ID) bool {
		ours := func(p *pending) bool { return p.call != nil && p.call.Entry.ID == id }
		return e.opts.TheirIDs && lists.Any(maps.Values(e.pending), ours)
	}
	for _, seq := range slices.Sorted(maps.Keys(e.requests)) { // usually empty
		if id := e.requests[seq].Entry.ID; e.opts.TheirIDs && id != "null" && !taken(id) {
			return id
		}
	}
	for {
		e.nextID++
		if id := e.ids(e.nextID - 1); !taken(id) {
			return id
		}
	}
}

// written is called when the write of a request has ended with err. If the request could not be written, the call ends
// with err, even if the agent has ended since. If only the wait for the write ended, the write may still succeed, and
// the call goes on. A call that already has a response is left unchanged.
func (e *Editor) written(c *Call, entry transcript.Entry, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if entry.Seq == 0 {
		c.finish(transcript.Entry{}, err)
		return
	}
	c.writing = false
	if _, open := e.pending[entry.Seq]; !open {
		return
	}
	var broken *transport.WriteError
	switch {
	case errors.As(err, &broken):
	case e.over:
		err = ErrExited
	default:
		return
	}
	delete(e.pending, entry.Seq)
	if w, ok := e.sessions[entry.Session]; ok {
		delete(w.prompts, entry.Seq)
		delete(w.cancelled, entry.Seq)
	}
	c.finish(transcript.Entry{}, err)
}

// Notify sends a notification. It returns the notification's entry even if the write failed.
func (e *Editor) Notify(method string, params any) (transcript.Entry, error) {
	return e.NotifyContext(context.Background(), method, params)
}

// NotifyContext is like Notify, but stops waiting for a blocked write when ctx
// ends.
func (e *Editor) NotifyContext(ctx context.Context, method string, params any) (transcript.Entry, error) {
	raw, err := encode(params)
	if err != nil {
		return transcript.Entry{}, fmt.Errorf("encoding params of %s: %w", method, err)
	}
	return e.sendLine(ctx, e.message("", method, raw), "\n")
}

// Send sends a line unchanged, with a newline added. It can send lines that no editor would send. If the line is a
// request, the response only appears in the transcript.
func (e *Editor) Send(raw []byte) (transcript.Entry, error) {
	return e.sendLine(context.Background(), append([]byte{}, raw...), "\n")
}

// SendBytes sends bytes unchanged, without a newline. The transcript gets one entry for the bytes, even if they are
// only part of a line.
func (e *Editor) SendBytes(raw []byte) (transcript.Entry, error) {
	return e.sendLine(context.Background(), append([]byte{}, raw...), "")
}

func (e *Editor) sendLine(ctx context.Context, raw []byte, tail string) (transcript.Entry, error) {
	var release []*Request
	entry, err := e.agent.Send(ctx, tail, func() (transcript.Entry, bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		f := e.agent.Append(raw)
		release = e.sent(f, nil)
		return f, true
	})
	e.answerCancelled(release)
	if err != nil {
		return entry, fmt.Errorf("sending: %w", err)
	}
	return entry, nil
}

// RPCError is the error object of a JSON-RPC response.
type RPCError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Error codes in this editor's responses (JSON-RPC 2.0, and the ACP v1 schema's ErrorCode).
const (
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeCancelled      = -32800
	codeNotFound       = -32002
)

// encode renders v as one line of JSON. A []byte or json.RawMessage must already be JSON. If v is nil, encode returns
// nil.
func encode(v any) ([]byte, error) {
	var raw []byte
	switch v := v.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		raw = v
	case []byte:
		raw = v
	case wire.Value:
		raw = v.Raw()
	default:
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false) // so that grep finds the original text
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
		return bytes.TrimRight(buf.Bytes(), "\n"), nil
	}
	if len(raw) == 0 {
		return nil, errors.New("no JSON given")
	}
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw, nil
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// message renders a request, or a notification if id is empty.
func (e *Editor) message(id wire.ID, method string, params []byte) []byte {
	b := append(make([]byte, 0, len(params)+len(method)+64), `{"jsonrpc":"2.0",`...)
	if id != "" {
		b = append(append(append(b, `"id":`...), id...), ',')
	}
	b = wire.AppendString(append(b, `"method":`...), method)
	if params != nil && e.opts.Add != nil {
		params = e.opts.Add(method, false, params)
	}
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	for _, name := range slices.Sorted(maps.Keys(e.opts.Members)) {
		b = append(wire.AppendString(append(b, ','), name), ':')
		value, _ := encode(e.opts.Members[name]) // no error, because the value was read from YAML
		b = append(b, value...)
	}
	return e.encoded(append(b, '}'))
}

// response renders a response. It has the error rpcErr, or the result if rpcErr is nil.
func response(id wire.ID, result any, rpcErr *RPCError) ([]byte, error) {
	id = cmp.Or(id, "null")
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	body, err := encode(result)
	if rpcErr != nil {
		b = append(b, `,"error":`...)
		body, err = encode(rpcErr)
	} else {
		b = append(b, `,"result":`...)
	}
	if err != nil {
		return nil, err
	}
	if body == nil {
		body = []byte("null")
	}
	return append(append(b, body...), '}'), nil
}

type empty struct{}
