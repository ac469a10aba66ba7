package refagent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/onsi/gomega/types"

	"github.com/acp-test/acp-test/refagent"
)

type object = map[string]any

// frame is one line of the agent.
type frame struct {
	raw string
	msg object
}

func (f frame) at(path ...string) any {
	var v any = f.msg
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func (f frame) method() string { s, _ := f.msg["method"].(string); return s }
func (f frame) tag() string    { s, _ := f.at("params", "update", "sessionUpdate").(string); return s }
func (f frame) up(key string) any {
	return f.at("params", "update", key)
}

// editor is the other end of the agent's pipes. It answers permissions and
// files by its policy and keeps every frame.
type editor struct {
	in     *io.PipeWriter
	ended  chan error
	stop   context.CancelFunc
	nextID int

	mu      sync.Mutex
	frames  []frame
	changed chan struct{}
	// answer returns what to send back; nil means nothing (held).
	answer func(f frame) any
}

type rpcFailure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type launch struct {
	env     map[string]string
	state   string
	model   *modelServer
	caps    object
	hooks   refagent.Hooks
	grace   time.Duration
	logs    io.Writer
	noSetup bool
}

func start(l launch) *editor {
	GinkgoHelper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	env := map[string]string{}
	maps.Copy(env, l.env)
	if l.model != nil {
		env[refagent.EnvBaseURL] = l.model.URL + "/v1"
	}
	if l.state == "" {
		l.state = GinkgoT().TempDir()
	}
	if l.logs == nil {
		l.logs = GinkgoWriter
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &editor{in: inW, ended: make(chan error, 1), stop: stop, changed: make(chan struct{})}
	e.answer = func(f frame) any { return e.choose("allow_once")(f) }
	go func() {
		err := refagent.Run(ctx, refagent.Options{
			In: inR, Out: outW, Log: l.logs, StateDir: l.state, AnswerGrace: l.grace, Hooks: l.hooks,
			Getenv: func(k string) string { return env[k] },
		})
		outW.Close()
		e.ended <- err
	}()
	go e.read(outR)
	DeferCleanup(func() {
		e.in.Close()
		stop()
		Eventually(e.ended, time.Minute).Should(Receive())
	})
	if !l.noSetup {
		e.ok(e.request("initialize", object{"protocolVersion": 1, "clientCapabilities": l.caps}))
	}
	return e
}

func (e *editor) read(r io.Reader) {
	_ = lines(r, func(line []byte) {
		f := frame{raw: string(line)}
		_ = json.Unmarshal(line, &f.msg)
		e.mu.Lock()
		e.frames = append(e.frames, f)
		close(e.changed)
		e.changed = make(chan struct{})
		answer := e.answer
		e.mu.Unlock()
		if id, ok := f.msg["id"]; ok && f.method() != "" {
			go e.reply(id, answer(f))
		}
	})
	e.mu.Lock()
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()
}

func lines(r io.Reader, f func([]byte)) error {
	var buf bytes.Buffer
	p := make([]byte, 64<<10)
	for {
		n, err := r.Read(p)
		buf.Write(p[:n])
		for {
			i := bytes.IndexByte(buf.Bytes(), '\n')
			if i < 0 {
				break
			}
			f(bytes.Clone(buf.Next(i + 1)[:i]))
		}
		if err != nil {
			return err
		}
	}
}

func (e *editor) reply(id, result any) {
	switch r := result.(type) {
	case nil:
	case rpcFailure:
		e.send(object{"jsonrpc": "2.0", "id": id, "error": r})
	default:
		e.send(object{"jsonrpc": "2.0", "id": id, "result": r})
	}
}

// choose answers permissions with the option of a kind, files from a map-less
// editor with an error, and the rest with -32601.
func (e *editor) choose(kind string) func(frame) any {
	return func(f frame) any {
		if f.method() != "session/request_permission" {
			return rpcFailure{-32601, "no such method"}
		}
		for _, o := range f.at("params", "options").([]any) {
			if o.(object)["kind"] == kind {
				return selected(o.(object)["optionId"].(string))
			}
		}
		return object{"outcome": object{"outcome": "cancelled"}}
	}
}

func selected(id string) object {
	return object{"outcome": object{"outcome": "selected", "optionId": id}}
}

func (e *editor) onRequest(f func(frame) any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

// write puts raw bytes on the agent's input in one write.
func (e *editor) write(raw string) { _, _ = io.WriteString(e.in, raw) }

func (e *editor) send(v any) { e.write(line(v)) }

func line(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func (e *editor) make(method string, params any) (id int, frame object) {
	e.nextID++
	return e.nextID, object{"jsonrpc": "2.0", "id": e.nextID, "method": method, "params": params}
}

// request sends a request and returns its id at once.
func (e *editor) request(method string, params any) int {
	id, f := e.make(method, params)
	e.send(f)
	return id
}

func (e *editor) notify(method string, params any) {
	e.send(object{"jsonrpc": "2.0", "method": method, "params": params})
}

func (e *editor) all() []frame {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]frame(nil), e.frames...)
}

// await waits for the first frame after `from` that fits.
func (e *editor) await(what string, from int, fits func(frame) bool) (int, frame) {
	GinkgoHelper()
	timeout := time.After(time.Minute)
	for at := from; ; {
		e.mu.Lock()
		list, changed := e.frames, e.changed
		e.mu.Unlock()
		for ; at < len(list); at++ {
			if fits(list[at]) {
				return at, list[at]
			}
		}
		select {
		case <-changed:
		case err := <-e.ended:
			e.ended <- err
			Fail(fmt.Sprintf("the agent ended (%v) before %s\n%s", err, what, e.dump()))
		case <-timeout:
			Fail(fmt.Sprintf("no %s within a minute\n%s", what, e.dump()))
		}
	}
}

func (e *editor) dump() string {
	var b strings.Builder
	for _, f := range e.all() {
		b.WriteString(f.raw + "\n")
	}
	return b.String()
}

func (e *editor) response(id int) frame {
	GinkgoHelper()
	_, f := e.await(fmt.Sprintf("response %d", id), 0, func(f frame) bool {
		return f.method() == "" && f.msg["id"] == float64(id)
	})
	return f
}

// ok returns the result of a request and fails on an error.
func (e *editor) ok(id int) object {
	GinkgoHelper()
	f := e.response(id)
	Expect(f.msg).NotTo(HaveKey("error"), f.raw)
	return f.msg["result"].(object)
}

func (e *editor) code(id int) int {
	GinkgoHelper()
	f := e.response(id)
	Expect(f.msg).To(HaveKey("error"), f.raw)
	return int(f.at("error", "code").(float64))
}

func (e *editor) update(tag string) frame {
	GinkgoHelper()
	_, f := e.await(tag, 0, func(f frame) bool { return f.tag() == tag })
	return f
}

func (e *editor) asked(method string) frame {
	GinkgoHelper()
	_, f := e.await(method, 0, func(f frame) bool { return f.method() == method })
	return f
}

func (e *editor) newSession(cwd string) string {
	GinkgoHelper()
	return e.ok(e.request("session/new", object{"cwd": cwd, "mcpServers": []any{}}))["sessionId"].(string)
}

func (e *editor) prompt(session, text string) int {
	return e.request("session/prompt", promptParams(session, text))
}

func promptParams(session, text string) object {
	return object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}}
}

func (e *editor) cancel(session string) {
	e.notify("session/cancel", object{"sessionId": session})
}

func (e *editor) stopReason(id int) string {
	GinkgoHelper()
	return e.ok(id)["stopReason"].(string)
}

// story is the content of a session as short lines, for comparing.
func (e *editor) story(from int) []string {
	var out []string
	for _, f := range e.all()[from:] {
		switch f.tag() {
		case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
			out = append(out, fmt.Sprintf("%s %v", f.tag(), f.up("content").(object)["text"]))
		case "tool_call", "tool_call_update":
			out = append(out, fmt.Sprintf("%s %v %v", f.tag(), f.up("toolCallId"), f.up("status")))
		case "plan":
			out = append(out, fmt.Sprintf("plan %d", len(f.up("entries").([]any))))
		}
	}
	return out
}

// endWith matches a list by its last element.
func endWith(want any) types.GomegaMatcher {
	return WithTransform(func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return list[len(list)-1]
	}, Equal(want))
}
