package invariants

import (
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// systemPrompts judges what an agent makes of the system prompt of a client. An agent that
// does not advertise it may ignore it.
func systemPrompts(v *version) *rule {
	r := v.ofAgent("SYSTEM-PROMPT",
		"A system prompt that the agent cannot apply makes no session, and none is shown as words of the user.", 1, 2)
	mode := r.Fail("mode", "a session is set up with a mode of system prompt that the agent does not support", "SYS-003")
	block := r.Fail("block", "a session is set up with a system prompt that is not all text", "SYS-004")
	shown := r.Warn("replayed", "a replay shows the system prompt as words of the user", "SYS-010")
	return r.Watching(func(w *watch) {
		type given struct {
			mode, text string
			kinds      []string // of its blocks
		}
		asking, texts := map[int]given{}, map[string]string{} // by Seq of the request; by session
		w.On(func(ev *event) {
			if p := ev.params.Get("systemPrompt"); p.Kind() == wire.Object && ev.conn.has(rules.OfAgent, v.instructions) {
				g := given{mode: p.Get("mode").Str(), text: p.Path("content.0.text").Str()}
				for item := range p.Get("content").Items() {
					g.kinds = append(g.kinds, item.Get("type").Str())
				}
				rules.Remember(asking, rememberedSessions, ev.Seq, g)
				rules.Remember(texts, rememberedSessions, ev.session.name(), g.text)
			}
		}, setUps(asked)...)
		w.On(func(ev *event) {
			g, had := asking[ev.request.seq]
			if !had {
				return
			}
			delete(asking, ev.request.seq)
			overrides := ev.conn.has(rules.OfAgent, v.instructions+".mode.override")
			supported := g.mode == "append" || g.mode == "override" && overrides
			w.judge(mode, !supported && ev.succeeded(), ev, "", []int{ev.Ref},
				"The agent set up a session with a system prompt in mode %q, which it does not advertise.", g.mode)
			for _, kind := range g.kinds {
				w.judge(block, kind != "text" && ev.succeeded(), ev, "", []int{ev.Ref},
					"The agent set up a session with a system prompt that holds a block of type %q.", kind)
			}
			if ev.session != nil {
				rules.Remember(texts, rememberedSessions, ev.session.id, g.text)
			}
		}, setUps(answered)...)
		w.inSession(func(ev *event, s *session) {
			if text := texts[s.id]; text != "" && (s.window != nil || s.replay != nil) {
				w.judge(shown, ev.text() == text, ev, "", nil, "The replay shows the system prompt as a message of the user.")
			}
		}, userChunk)
	})
}
