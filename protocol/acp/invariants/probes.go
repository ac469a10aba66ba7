package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// worksAgain judges that a session goes on after a cancel and after a load.
// What the fake model is told to fail is no fault of the agent, nor what the editor
// refuses it.
func worksAgain(v *version) *rule {
	r := v.ofAgent("WORKS-AGAIN",
		"A session answers the next prompt after a cancelled turn, and after it was loaded or resumed.")
	cancelled := r.Warn("after-cancel", "the prompt after a cancelled turn failed", "CANCEL-011")
	loaded := r.Warn("after-load", "the first prompt after a load or resume failed", "LOAD-007", "RESUME-004")
	return r.Watching(func(w *watch) {
		type before struct{ cancelled, restored *request }
		next := map[*session]before{}
		faults := 0
		w.On(func(ev *event) {
			refused, _ := ev.body.Get("refused").Bool() // WIRE-VALID says so
			if ev.Kind == transcript.ModelFault || refused {
				faults = ev.Seq
			}
		}, modelEvent)
		w.On(func(ev *event) {
			if ev.err.Exists() {
				faults = ev.Seq
			}
		}, editorAnswers()...)
		w.inSession(func(ev *event, s *session) {
			b := before{restored: s.restored}
			if s.last != nil && s.last.stop == "cancelled" && len(s.open) == 0 {
				b.cancelled = s.last.request
			}
			next[s] = b
		}, asked(prompt))
		w.inTurn(func(ev *event, t *turn) {
			b := next[t.session]
			delete(next, t.session)
			failed := ev.err.Exists() && ev.code() != -32000 && ev.code() != -32800 && faults < t.started && !t.concurrent &&
				t.cancel == nil && t.close == nil
			message := clip(ev.err.Get("message").Str())
			if b.cancelled != nil && w.judge(cancelled, failed, ev, "", []int{b.cancelled.seq, t.started},
				"The prompt after a cancelled turn failed with %d %q.", ev.code(), message) != nil {
				return
			}
			if b.restored != nil {
				w.judge(loaded, failed, ev, "", []int{b.restored.seq, t.started}, "The first prompt after %s failed with %d %q.",
					b.restored.method, ev.code(), message)
			}
		}, answered(prompt))
	})
}

// promptAccepted judges that content the agent must or says it does take is
// not refused as invalid.
func promptAccepted(v *version) *rule {
	r := v.ofAgent("PROMPT-ACCEPTED", "A valid prompt of content that the agent takes is not refused as invalid.")
	text := r.Fail("text", "a prompt of text was refused as invalid", "PROMPT-006")
	link := r.Fail("resource-link", "a prompt with a resource_link was refused as invalid", "PROMPT-007")
	image := r.Warn("image", "a prompt with an image was refused although images are advertised", "PROMPT-008", "INIT-022")
	audio := r.Warn("audio", "a prompt with audio was refused although audio is advertised", "PROMPT-009", "INIT-022")
	resource := r.Warn("resource",
		"a prompt with a resource was refused although embedded context is advertised", "PROMPT-010", "INIT-022")
	return r.Watching(func(w *watch) {
		kinds := map[string]int{"text": text, "resource_link": link, "image": image, "audio": audio, "resource": resource}
		points, gates := [...]string{"text", "resource_link", "image", "audio", "resource"}, v.gates("ContentBlock")
		strongest := map[*session]int{} // the least common content of the running prompt, -1 if it is not valid
		w.On(func(ev *event) {
			if ev.session != nil && ev.code() == -32602 {
				delete(strongest, ev.session) // which the agent may pass on: it is not its own opinion
			}
		}, editorAnswers()...)
		// A session that is on its way out may be gone when its prompt is looked at.
		w.On(func(ev *event) { delete(strongest, ev.session) }, asked(closeSession), asked(deleteSession))
		w.inSession(func(ev *event, s *session) {
			if !s.ready(v) || s.closed > 0 || len(s.open) > 0 {
				return
			}
			point, blocks := text, 0
			for b := range ev.params.Get("prompt").Items() {
				blocks++
				if p, ok := kinds[b.Get("type").Str()]; ok {
					point = max(point, p)
				}
			}
			allowed := ev.conn.has(rules.OfAgent, gates[points[point]])
			v.schema.CheckType("PromptRequest", ev.params, func(p schema.Problem) {
				allowed = allowed && p.Severity > schema.Lossy
			})
			if blocks > 0 && allowed && !isCommand(ev.params) {
				strongest[s] = point
			}
		}, asked(prompt))
		w.On(func(ev *event) {
			s := ev.session
			point, ok := strongest[s]
			if !ok || ev.turn == nil || ev.turn.concurrent {
				return
			}
			delete(strongest, s)
			w.judge(point, ev.code() == -32602, ev, "", []int{ev.Ref}, "A valid prompt with %s was refused with -32602 %q.",
				points[point], ev.err.Get("message").Str())
		}, answered(prompt))
	})
}

// isCommand reports whether a prompt is a slash command, whose arguments the
// agent may well refuse.
func isCommand(params wire.Value) bool {
	return strings.HasPrefix(readPrompt(params), "/")
}

// emptyTurn judges that a turn shows something. A command may have no output.
func emptyTurn(v *version) *rule {
	r := v.ofAgent("EMPTY-TURN", "A turn that ends with end_turn has shown something.")
	empty := r.Warn("empty", "a turn ended with end_turn and without any content", "PROMPT-015")
	return r.Watching(func(w *watch) {
		w.inTurn(func(ev *event, t *turn) {
			if ev.stop != "end_turn" || !t.alone() || t.cancel != nil || t.command() {
				return
			}
			w.judge(empty, !t.spoke && !t.acted, ev, "", []int{t.started},
				"The turn ended with end_turn without any text, thought, tool call or plan.")
		}, answered(prompt))
	})
}

// sessionDistinct judges that each session has an id of its own.
func sessionDistinct(v *version) *rule {
	r := v.ofAgent("SESSION-DISTINCT", "Each new session has an id that no other session has.")
	twice := r.Fail("same-id", "two sessions have the same id", "SESSION-002")
	return r.Watching(func(w *watch) {
		made := map[string]int{}
		w.On(func(ev *event) {
			if id := ev.result.Get("sessionId").Str(); id != "" {
				w.judge(twice, made[id] > 0, ev, id, []int{made[id]}, "The new session has the id %q of another one.", id)
				rules.Remember(made, rememberedSessions, id, ev.Seq)
			}
		}, answered(newSession), answered(forkSession))
	})
}
