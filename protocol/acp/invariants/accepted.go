package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// promptAccepted checks that the agent does not reject a prompt as invalid if its content is mandatory or advertised
// by the agent.
func promptAccepted(w *watch) {
	a := acceptance{w, w.version.gates("ContentBlock"), newReach(w), map[*session]string{}, map[*conn]map[string]bool{}}
	w.On(func(ev *event) { delete(a.taken, ev.conn) }, append(setUps(asked), asked(setOption), asked(setMode))...)
	w.On(func(ev *event) {
		if ev.session != nil && ev.code() == -32602 {
			delete(a.strongest, ev.session) // the agent may pass on the editor's error
		}
	}, editorAnswers()...)
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelFault {
			clear(a.strongest) // the error may come from the model's failure, whichever turn it hit
		}
	}, modelEvent)
	// A session that is being closed or deleted may be gone when the agent handles its prompt.
	w.On(func(ev *event) { delete(a.strongest, ev.session) }, asked(closeSession), asked(deleteSession))
	w.inSession(a.prompted, asked(prompt))
	w.On(a.answered, answered(prompt))
}

// acceptance follows which prompts the agent takes.
type acceptance struct {
	*watch
	gates map[string]string // capability that a type of content needs
	reach *reach
	// strongest has the rarest content type of each running prompt. It has no entry for an invalid prompt.
	strongest map[*session]string
	// taken has the kinds of media that the agent has taken in a connection, so that its model takes them.
	taken map[*conn]map[string]bool
}

// contentKinds lists the types of content, the rarest last.
var contentKinds = []string{"text", "resource_link", "image", "audio", "resource"}

// prompted stores a prompt that the agent must accept.
func (a acceptance) prompted(ev *event, s *session) {
	if !s.ready(a.version) || s.closed > 0 || s.atWork() {
		return
	}
	rarest, known, blocks := 0, true, ev.params.Get("prompt")
	for b := range blocks.Items() {
		at := slices.Index(contentKinds, b.Get("type").Str())
		rarest, known = max(rarest, at), known && at >= 0 && (!isMedia(b.Get("type").Str()) || genuine(b))
	}
	kind := contentKinds[rarest]
	allowed := known && ev.conn.has(rules.OfAgent, a.gates[kind])
	a.version.schema.CheckType("PromptRequest", ev.params, func(p schema.Problem) {
		allowed = allowed && p.Severity > schema.Lossy
	})
	if blocks.Len() > 0 && allowed && !isCommand(ev.params) && !badKey(ev.params) {
		a.strongest[s], a.reach.before[s] = kind, a.reach.requests
	}
}

// answered judges the answer to a prompt. Whether the model takes pictures or sounds is known when it has taken some.
func (a acceptance) answered(ev *event) {
	s := ev.session
	kind := a.strongest[s]
	if kind == "" || ev.turn == nil || ev.turn.concurrent {
		return
	}
	delete(a.strongest, s)
	if isMedia(kind) && ev.stop == "end_turn" && a.reach.requests > a.reach.before[s] {
		if a.taken[ev.conn] == nil {
			a.taken[ev.conn] = map[string]bool{}
		}
		a.taken[ev.conn][kind] = true
	}
	known := !isMedia(kind) || a.taken[ev.conn][kind]
	if known {
		a.reach.judge(a.watch, ev, kind)
	}
	a.judge(pick(known, "", "first-")+strings.ReplaceAll(kind, "_", "-"), ev.code() == -32602, ev, "", []int{ev.Ref},
		"The agent refused a valid prompt with %s: -32602 %q.", kind, ev.err.Get("message").Str())
}

// isMedia reports whether a type of content is a picture or a sound.
func isMedia(kind string) bool { return kind == "image" || kind == "audio" }

// beginnings has, by type, how the base64 of a file begins, for the types that models usually take.
var beginnings = map[string]string{"image/png": "iVBORw0KGgo", "image/jpeg": "/9j/", "image/gif": "R0lGOD",
	"image/webp": "UklGR", "audio/wav": "UklGR"}

// genuine reports whether the data of a picture or sound begins as its type says. An agent may refuse other data.
func genuine(b wire.Value) bool {
	first := beginnings[b.Get("mimeType").Str()]
	return first != "" && strings.HasPrefix(b.Get("data").Str(), first)
}

// reach follows which turns reach the model.
type reach struct {
	requests int              // number of model requests
	before   map[*session]int // that number at the session's last prompt
	worked   map[*conn]bool   // a turn of the connection has reached the model and ended well
	served   map[*conn]bool   // some session of the connection has MCP servers, which may be the reason for a failure
}

func newReach(w *watch) *reach {
	r := &reach{before: map[*session]int{}, worked: map[*conn]bool{}, served: map[*conn]bool{}}
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelRequest {
			r.requests++
		}
	}, modelEvent)
	w.On(func(ev *event) {
		r.served[ev.conn] = r.served[ev.conn] || ev.params.Get("mcpServers").Len() > 0
	}, setUps(asked)...)
	w.On(func(ev *event) {
		r.worked[ev.conn] = r.worked[ev.conn] || ev.stop == "end_turn" && r.requests > r.before[ev.session]
	}, answered(prompt))
	w.On(func(ev *event) { delete(r.worked, ev.conn) }, answered(logout))
	w.On(func(ev *event) {
		if ev.err.Exists() {
			delete(r.worked, ev.conn) // the agent may pass on the editor's error
		}
	}, editorAnswers()...)
	return r
}

// judge takes the answer to a prompt whose rarest content is of the given kind.
func (r *reach) judge(w *watch, ev *event, kind string) {
	if !w.version.states && kind != "text" {
		w.judge("failed", r.failed(ev), ev, "", []int{ev.Ref},
			"The agent answered a prompt whose rarest content is %s with an internal error, %q, before it asked the model.",
			kind, ev.err.Get("message").Str())
	}
}

// failed takes the answer to a prompt. It reports whether the turn failed for a reason of the agent's own before any
// model request.
func (r *reach) failed(ev *event) bool {
	return r.requests == r.before[ev.session] && ev.code() == -32603 &&
		r.worked[ev.conn] && !r.served[ev.conn] && ev.turn.cancel == nil &&
		!ev.turn.disturbed
}
