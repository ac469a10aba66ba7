package invariants

import (
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// subject is one point of SHAPE: the schema types that belong to it, and the requirements that a problem breaks. Each
// element of narrow begins with the end of a type or path and lists the requirements that such a problem breaks.
type subject struct {
	types  []string
	narrow [][]string
	seen   []seen
}

// subjects maps each point in shape.txt to its subject.
var subjects = sync.OnceValue(func() map[string]*subject {
	all, last := map[string]*subject{}, (*subject)(nil)
	for line := range strings.Lines(file("shape.txt")) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "in":
			messages, path, _ := strings.Cut(strings.TrimSpace(line), " has ")
			for _, m := range strings.Fields(messages)[1:] {
				last.seen = append(last.seen, seen{m, path})
			}
		case line[0] == ' ':
			last.narrow = append(last.narrow, words)
		default:
			last = &subject{types: words[1:]}
			all[words[0]] = last
		}
	}
	return all
})

// narrowed returns the requirements that a problem breaks. nil stands for all requirements of the point.
func (s *subject) narrowed(p schema.Problem) []string {
	for _, n := range s.narrow {
		if n[0] == "*" || strings.HasSuffix(p.Type, n[0]) || strings.HasSuffix(p.Path, n[0]) {
			return n[1:]
		}
	}
	return nil
}

// seen names a message that counts as a check of the point if the message has a value at path. The path "" stands for
// any message.
type seen struct{ message, path string }

// has reports whether the update, the result or the requested tool call has a value at path.
func (ev *event) has(path string) bool {
	if path == "" {
		return true
	}
	of := ev.update
	if !of.Exists() {
		of = pick(ev.result.Exists(), ev.result, ev.params.Get("toolCall"))
	}
	v := of.Path(path)
	return len(v.Raw()) > len("{}") && !v.IsNull()
}

// topicOf returns the topic of an agent's message by its name: an update, a request, or an answer to the editor.
func (v *version) topicOf(message string) topic {
	if t, ok := v.updates[message]; ok {
		return t
	}
	if verb, ok := v.agent[message]; ok {
		return asked(verb)
	}
	return answered(v.editor[message])
}

// shape checks each message of the agent against the schema type of its method.
func shape(w *watch) {
	if w.version.number == 2 {
		shapeByMessage(w)
		return
	}
	type proof struct {
		path string
		saw  func()
	}
	message := w.Seeing("message")
	points, about, of := map[string]string{}, map[topic][]proof{}, subjects()
	for point, s := range of {
		for _, name := range s.types {
			points[name] = point
		}
		for _, m := range s.seen {
			t := w.version.topicOf(m.message)
			about[t] = append(about[t], proof{m.path, w.Seeing(point)})
		}
	}
	w.shapes[rules.OfAgent] = true
	w.On(func(ev *event) {
		message()
		for _, p := range about[ev.topic] {
			if !ev.err.Exists() && ev.has(p.path) {
				p.saw()
			}
		}
		for _, p := range ev.problems {
			if p.Severity > schema.Lossy && p.Severity != schema.Style || notShape(ev, p) {
				continue
			}
			point, known := points[p.Type]
			switch {
			case p.Severity == schema.Style:
				point = "style"
			case strings.HasSuffix(p.Path, ".messageId"):
				point = "message-id"
			case strings.HasSuffix(p.Path, "configOptions") && p.Type != "SessionConfigOption":
				point = "option-list"
			case !known:
				point = "message"
			}
			f := w.problem(point, ev, p)
			if ids := of[point].narrowed(p); ids != nil {
				w.Narrow(f, ids...)
			} else if point == "style" && ev.topic == answered(loadSession) {
				w.Narrow(f, "LOAD-006")
			}
		}
	}, agentMessages()...)
}

// problem reports a schema problem with a message, once for all items of a list.
func (w *watch) problem(point string, ev *event, p schema.Problem) *rules.Finding {
	f := w.find(point, ev, ev.Method+" "+plainPath(p.Path), nil, "In %s, %s %s.", frameName(ev), p.Path, p.Message)
	if f != nil && p.Severity <= schema.Lossy {
		f.Damage = p.Severity.String()
	}
	return f
}

// shapeByMessage is the shape rule for version 2. It has one point for each kind of message.
func shapeByMessage(w *watch) {
	w.shapes[rules.OfAgent] = true
	points := map[topic]string{answered(initialize): "initialize", answered(prompt): "prompt",
		asked(permission): "permission"}
	w.On(func(ev *event) {
		point, special := points[ev.topic]
		if isUpdate(ev.topic) {
			point = "update"
			old := slices.Contains([]string{"tool_call", "plan", "current_mode_update"}, ev.tag())
			w.judge("first-version", old, ev, ev.tag(), nil,
				"The agent sent the update %s of version 1, which version 2 does not have.", ev.tag())
			if old {
				return
			}
		} else if !special {
			point = "broken"
		}
		w.Saw(point, "lossy", "unknown")
		if point == "prompt" && ev.succeeded() {
			w.judge("stop-reason", ev.result.Get("stopReason").Exists(), ev, "", nil,
				"The response to the prompt has a stopReason; in version 2, state_update has it.")
		}
		for _, p := range ev.problems {
			switch {
			case p.Severity == schema.Fatal:
				w.find(point, ev, p.Path, nil, "%s does not fit %s: %s.", p.Path, p.Type, p.Message)
			case p.Severity == schema.Lossy:
				w.find("lossy", ev, p.Path, nil,
					"%s does not fit %s, so readers drop the value: %s.", p.Path, p.Type, p.Message)
			case p.Path == "id" && ev.Kind == transcript.Request: // ONE-RESPONSE says it
			case point != "prompt" || p.Path != "result.stopReason":
				w.find("unknown", ev, p.Path, nil, "%s %s.", p.Path, p.Message)
			}
		}
	}, agentMessages()...)
}

// notShape reports whether another rule reports a problem. ERR-FORM reports errors, ROOT-KEYS reports _meta and unknown
// kinds of updates, and ONE-RESPONSE reports null ids.
func notShape(ev *event, p schema.Problem) bool {
	return p.Type == "Error" || p.Type == "ErrorCode" || p.Path == "id" ||
		isMeta(p) || unknownTag(ev, p) || p.Path == "method" || terminalLogin(ev, p)
}

func isMeta(p schema.Problem) bool {
	return strings.HasSuffix(p.Path, "._meta") && p.Severity <= schema.Lossy
}

func unknownTag(ev *event, p schema.Problem) bool {
	return p.Type == "SessionUpdate" && strings.HasSuffix(p.Path, ".sessionUpdate") &&
		ev.update.Get("sessionUpdate").Kind() == wire.String
}

// frameName returns the name of a message for use in a sentence.
func frameName(ev *event) string {
	switch {
	case ev.update.Exists():
		if tag := ev.tag(); tag != "" {
			return "session/update " + clip(tag)
		}
	case ev.result.Exists() || ev.err.Exists():
		return "the response to " + ev.Method
	}
	return ev.Method
}

var positions = lazy.Regexp(`(^|\.)[0-9]+\b`)

// plainPath replaces list positions in a path with #, so that the same problem in each item of a list is one finding.
func plainPath(path string) string {
	return positions().ReplaceAllString("."+path, "$1#")
}
