package invariants

import (
	"strings"
	"unicode/utf8"

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
