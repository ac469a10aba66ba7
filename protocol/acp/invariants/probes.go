package invariants

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// worksAgain checks that a session still works after a turn or a load. A prompt that fails because of a fault in the
// script of the fake model, or because the editor refused a request, is excused.
func worksAgain(w *watch) {
	next, seen := map[*session]before{}, watchTrouble(w)
	w.inSession(func(ev *event, s *session) {
		if ev.params.Get("prompt").Kind() == wire.Array { // the agent must refuse a prompt that is not a list
			next[s] = w.beforePrompt(ev, s)
		}
	}, asked(prompt))
	w.inTurn(func(ev *event, t *turn) {
		b := next[t.session]
		delete(next, t.session)
		failed := ev.err.Exists() && ev.code() != -32000 && ev.code() != -32800 && seen.fault < t.started && !t.concurrent &&
			t.cancel == nil && t.close == nil
		message := clip(ev.err.Get("message").Str())
		if b.cancelled != nil && w.judge("after-cancel", failed, ev, "", []int{b.cancelled.seq, t.started},
			"The prompt after a cancelled turn failed with %d %q.", ev.code(), message) != nil {
			return
		}
		if b.restored != nil {
			w.judge("after-load", failed, ev, "", []int{b.restored.seq, t.started},
				"The first prompt after %s failed with %d %q.", b.restored.method, ev.code(), message)
		} else if b.ended != nil && (seen.model || seen.request > 0) {
			w.judge("after-turn", failed && seen.request < t.started, ev, "", []int{b.ended.seq, t.started},
				"A prompt failed with %d %q before the model was asked, although its session was idle after a turn.",
				ev.code(), message)
		}
	}, answered(prompt))
}

// before has earlier requests of a session: its load or resume, and the prompt of its previous turn. cancelled is that
// prompt if the turn was cancelled. A field is nil if there is no such request.
type before struct{ cancelled, restored, ended *request }

func (w *watch) beforePrompt(ev *event, s *session) before {
	if badKey(ev.params) || !takenByAll(ev.params) {
		return before{}
	}
	b := before{restored: s.restored}
	if s.last == nil || s.atWork() {
		return b
	}
	if s.last.stop == "cancelled" {
		b.cancelled = s.last.request
	}
	if s.ready(w.version) && s.closed == 0 && plain(ev) {
		b.ended = s.last.request
	}
	return b
}

// trouble has the Seqs of the latest model request and of the latest fault that the agent did not cause. model says
// that the log contains all model requests.
type trouble struct {
	model          bool
	request, fault int
}

func watchTrouble(w *watch) *trouble {
	x := &trouble{}
	w.On(func(ev *event) {
		if with, _ := ev.body.Get("model").Bool(); with {
			x.model = true
		}
	}, workspaceEvent)
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelRequest {
			x.request = ev.Seq
		}
		refused, _ := ev.body.Get("refused").Bool() // WIRE-VALID reports the refused request
		if ev.Kind == transcript.ModelFault || refused {
			x.fault = ev.Seq
		}
	}, modelEvent)
	w.On(func(ev *event) {
		if ev.err.Exists() {
			x.fault = ev.Seq
		}
	}, editorAnswers()...)
	return x
}

// plain reports whether a prompt has only text and is not a slash command.
func plain(ev *event) bool {
	blocks := 0
	for b := range ev.params.Get("prompt").Items() {
		text := b.Get("text")
		if blocks++; !b.Get("type").Is("text") || bare(text.Str()) == "" || strings.HasPrefix(text.Str(), "/") {
			return false
		}
	}
	return blocks > 0
}

// promptAccepted checks that the agent does not reject a prompt as invalid if its content is mandatory or advertised
// by the agent.
func promptAccepted(w *watch) {
	v := w.version
	kinds, gates := []string{"text", "resource_link", "image", "audio", "resource"}, v.gates("ContentBlock")
	// taken has the kinds of media that the agent has taken in a connection, so that its model takes them.
	taken := map[*conn]map[string]bool{}
	w.On(func(ev *event) { delete(taken, ev.conn) }, append(setUps(asked), asked(setOption), asked(setMode))...)
	strongest := map[*session]string{} // rarest content type of the running prompt; no entry if the prompt is invalid
	w.On(func(ev *event) {
		if ev.session != nil && ev.code() == -32602 {
			delete(strongest, ev.session) // the agent may pass on the editor's error
		}
	}, editorAnswers()...)
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelFault {
			clear(strongest) // the error may come from the model's failure, whichever turn it hit
		}
	}, modelEvent)
	reach := newReach(w)
	// A session that is being closed or deleted may be gone when the agent handles its prompt.
	w.On(func(ev *event) { delete(strongest, ev.session) }, asked(closeSession), asked(deleteSession))
	w.inSession(func(ev *event, s *session) {
		if !s.ready(v) || s.closed > 0 || s.atWork() {
			return
		}
		rarest, known, blocks := 0, true, ev.params.Get("prompt")
		for b := range blocks.Items() {
			at := slices.Index(kinds, b.Get("type").Str())
			rarest, known = max(rarest, at), known && at >= 0 && (!isMedia(b) || genuine(b))
		}
		allowed := known && ev.conn.has(rules.OfAgent, gates[kinds[rarest]])
		v.schema.CheckType("PromptRequest", ev.params, func(p schema.Problem) {
			allowed = allowed && p.Severity > schema.Lossy
		})
		if blocks.Len() > 0 && allowed && !isCommand(ev.params) && !badKey(ev.params) {
			strongest[s], reach.before[s] = kinds[rarest], reach.requests
		}
	}, asked(prompt))
	w.On(func(ev *event) {
		s := ev.session
		kind := strongest[s]
		if kind == "" || ev.turn == nil || ev.turn.concurrent {
			return
		}
		delete(strongest, s)
		media := kind == "image" || kind == "audio"
		if media && ev.stop == "end_turn" && reach.requests > reach.before[s] {
			if taken[ev.conn] == nil {
				taken[ev.conn] = map[string]bool{}
			}
			taken[ev.conn][kind] = true
		}
		known := !media || taken[ev.conn][kind]
		if known {
			reach.judge(w, ev, kind)
		}
		w.judge(pick(known, "", "first-")+strings.ReplaceAll(kind, "_", "-"), ev.code() == -32602, ev, "", []int{ev.Ref},
			"The agent refused a valid prompt with %s: -32602 %q.", kind, ev.err.Get("message").Str())
	}, answered(prompt))
}

// isMedia reports whether a content block is a picture or a sound.
func isMedia(b wire.Value) bool { return b.Get("type").Is("image") || b.Get("type").Is("audio") }

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

// takenByAll reports whether every agent must accept all blocks of a prompt.
func takenByAll(params wire.Value) bool {
	for b := range params.Get("prompt").Items() {
		if kind := b.Get("type"); !kind.Is("text") && !kind.Is("resource_link") {
			return false
		}
	}
	return params.Get("prompt").Len() > 0
}

// badKey reports whether a prompt has an invalid idempotency key.
func badKey(params wire.Value) bool {
	key := params.Get("idempotencyKey")
	n := utf8.RuneCountInString(key.Str())
	return isSet(key) && (n == 0 || n > 255)
}

// isCommand reports whether a prompt is a slash command, whose arguments the
// agent may well refuse.
func isCommand(params wire.Value) bool {
	return strings.HasPrefix(readPrompt(params), "/")
}

// emptyTurn checks that a turn shows something. The turn of a slash command may have no output.
func emptyTurn(w *watch) {
	w.onEnd(func(ev *event) {
		t := ev.turn
		if t == nil || ev.stop != "end_turn" || !t.alone() || t.stopped() || t.command() {
			return
		}
		w.judge("empty", !t.spoke && !t.acted, ev, "", []int{t.started},
			"The turn ended with end_turn without any text, thought, tool call or plan.")
	})
}

// sessionDistinct checks that no two sessions have the same id.
func sessionDistinct(w *watch) {
	made := map[string]int{}
	w.On(func(ev *event) {
		if id := ev.result.Get("sessionId").Str(); id != "" {
			w.judge("same-id", made[id] > 0, ev, id, []int{made[id]},
				"The new session has the id %q of another session.", id)
			rules.Remember(made, rememberedSessions, id, ev.Seq)
		}
	}, answered(newSession), answered(forkSession))
}
