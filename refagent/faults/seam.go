package faults

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

type (
	message = refagent.Message
	frame   = refagent.Frame
	object  = map[string]any
	hooks   = refagent.Hooks
)

// tap sits on both directions of one connection. Its functions run under one
// lock, so that a fault's own variables need none.
type tap struct {
	// in sees each message of the editor; false keeps it from the agent. A
	// line that is no JSON object is passed on without asking.
	in func(m message) bool
	// out sees each frame of the agent, which it may change; false drops it.
	out func(f frame) bool
	// received and sending are in and out where nothing is kept back.
	received func(m message)
	sending  func(f frame)
	// start runs before the first line.
	start func()

	mu sync.Mutex
	*refagent.Port
	open map[string]any // sessions with an open prompt → its id
}

// hooks installs the tap.
func (t *tap) hooks() refagent.Hooks {
	t.open = map[string]any{}
	return refagent.Hooks{
		Start: func(p *refagent.Port) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.Port = p
			if t.start != nil {
				t.start()
			}
		},
		Receive: func(p *refagent.Port, line []byte) {
			m := refagent.Decode(line)
			if m == nil {
				p.Deliver(line)
				return
			}
			t.mu.Lock()
			if t.received != nil {
				t.received(m)
			}
			pass := t.in == nil || t.in(m)
			if _, busy := t.open[sessionOf(m)]; pass && is(m, "session/prompt") && !busy {
				t.open[sessionOf(m)] = m["id"]
			}
			t.mu.Unlock()
			if pass {
				p.DeliverMessage(m)
			}
		},
		Send: func(p *refagent.Port, f frame) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.sending != nil {
				t.sending(f)
			}
			if t.out == nil || t.out(f) {
				p.Emit(f.Message)
			}
			if answers(f, "session/prompt") && key(t.open[f.Session]) == key(f.Message["id"]) {
				delete(t.open, f.Session)
			}
		},
	}
}

// later runs f under the lock after d; what it returns is handed to the agent.
func (t *tap) later(d time.Duration, f func() []message) {
	t.After(d, func() {
		t.mu.Lock()
		list := f()
		t.mu.Unlock()
		for _, m := range list {
			t.DeliverMessage(m)
		}
	})
}

// give hands messages to the agent as soon as the lock is free.
func (t *tap) give(list ...message) { t.later(0, func() []message { return list }) }

// onOut is a tap that drops frames with false, changeFrame one that changes them.
func onOut(out func(f frame) bool) func() refagent.Hooks {
	return func() refagent.Hooks { return (&tap{out: out}).hooks() }
}

func changeFrame(change func(f frame)) func() refagent.Hooks {
	return func() refagent.Hooks { return (&tap{sending: change}).hooks() }
}

// onUpdate is a tap that drops updates with false, changeUpdate one that changes
// them.
func onUpdate(keep func(u object, tag string) bool) func() refagent.Hooks {
	return onOut(func(f frame) bool {
		u, tag := f.Update()
		return u == nil || keep(u, tag)
	})
}

func changeUpdate(change func(u object, tag string)) func() refagent.Hooks {
	return changeFrame(func(f frame) {
		if u, tag := f.Update(); u != nil {
			change(u, tag)
		}
	})
}

// changeOnly is a tap that changes the updates of one kind.
func changeOnly(kind string, change func(u object)) func() refagent.Hooks {
	return changeUpdate(func(u object, tag string) {
		if tag == kind {
			change(u)
		}
	})
}

// onResult is a tap that changes the successful results of a method.
func onResult(method string, change func(result object)) func() refagent.Hooks {
	return changeFrame(func(f frame) {
		if r, ok := f.Message["result"].(object); ok && answers(f, method) {
			change(r)
		}
	})
}

// onRequest is a tap that changes the params of the agent's own requests and
// notifications of a method.
func onRequest(method string, change func(params object)) func() refagent.Hooks {
	return changeFrame(func(f frame) {
		if !f.IsResponse() && f.Method == method {
			change(f.Message.Object("params"))
		}
	})
}

// with makes a tap whose functions are set up by build.
func with(build func(t *tap)) func() refagent.Hooks {
	return func() refagent.Hooks {
		t := &tap{}
		build(t)
		return t.hooks()
	}
}

// refusing answers those of the editor's requests of a method with an error of
// which when is true.
func (t *tap) refusing(method string, code int, text string, when func(m message) bool) {
	t.in = func(m message) bool {
		refused := is(m, method) && when(m)
		if refused {
			t.Emit(refuse(m["id"], code, text))
		}
		return !refused
	}
}

func answers(f frame, method string) bool { return f.IsResponse() && f.Method == method }

func sessionOf(m message) string {
	s, _ := m.Object("params")["sessionId"].(string)
	return s
}

// stopOf is the stop reason of a prompt's answer, "" if it is none.
func stopOf(f frame) string {
	if !answers(f, "session/prompt") {
		return ""
	}
	s, _ := f.Message.Object("result")["stopReason"].(string)
	return s
}

// key makes an id, of whatever kind, a key of a map.
func key(id any) string {
	raw, _ := json.Marshal(id)
	return string(raw)
}

func is(m message, method string) bool { return m["method"] == method }

func respond(id any, result object) message {
	return message{"jsonrpc": "2.0", "id": id, "result": result}
}

func refuse(id any, code int, text string) message {
	return message{"jsonrpc": "2.0", "id": id, "error": object{"code": code, "message": text}}
}

func notify(method string, params object) message {
	return message{"jsonrpc": "2.0", "method": method, "params": params}
}

func updateOf(session string, u object) message {
	return notify("session/update", object{"sessionId": session, "update": u})
}

func chunk(session, text string) message {
	return updateOf(session,
		object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": text}})
}

func cancelOf(session string) message {
	return notify("session/cancel", object{"sessionId": session})
}

// clone copies a message deeply.
func clone(m message) message {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return refagent.Decode(raw)
}

// objects are those of a list; with a kind, those of that type.
func objects(list any, kind string) iter.Seq[object] {
	all, _ := list.([]any)
	return func(yield func(object) bool) {
		for _, one := range all {
			if o, ok := one.(object); ok && (kind == "" || o["type"] == kind) && !yield(o) {
				return
			}
		}
	}
}

// textOf is the text of a chunk.
func textOf(u object) (content object, text string) {
	content, _ = u["content"].(object)
	text, _ = content["text"].(string)
	return content, text
}

func final(status any) bool { return status == "completed" || status == "failed" }

func isContent(tag string) bool {
	return strings.HasSuffix(tag, "_chunk") || slices.Contains([]string{"tool_call", "tool_call_update", "plan"}, tag)
}

// onRequestOf is a tap on the editor's messages of a method, onAnswerTo one on the
// agent's answers to them.
func onRequestOf(method string, see func(t *tap, m message)) func() refagent.Hooks {
	return with(func(t *tap) {
		t.received = func(m message) {
			if is(m, method) {
				see(t, m)
			}
		}
	})
}

func onAnswerTo(method string, see func(t *tap, f frame)) func() refagent.Hooks {
	return with(func(t *tap) {
		t.sending = func(f frame) {
			if answers(f, method) {
				see(t, f)
			}
		}
	})
}
