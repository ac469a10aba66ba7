package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// userEcho judges that a live prompt is not echoed.
func userEcho(v *version) *rule {
	r := v.ofAgent("USER-ECHO", "A live prompt is not sent back as user_message_chunk.")
	echo := r.Lint("echo", "the text of a prompt came back while the prompt was open", "PROMPT-020")
	return r.Watching(func(w *watch) {
		w.inTurn(func(ev *event, t *turn) {
			if ev.session.window != nil {
				return
			}
			if text := ev.text(); strings.TrimSpace(text) != "" && strings.Contains(t.text, text) {
				w.find(echo, ev, "", []int{t.started},
					"The agent sent the user's prompt back as user_message_chunk; clients show it twice.")
			}
		}, userChunk)
		w.On(func(*event) { w.Saw(echo) }, answered(prompt))
	})
}

// msgRuns judges that the chunks of a message stand together.
func msgRuns(v *version) *rule {
	r := v.ofAgent("MSG-RUNS", "Chunks with one messageId stand together, and no later message has that id.")
	returns := r.Warn("id-returns",
		"the id of a message came back after another message had begun", "MSG-002", "MSG-004", "LOAD-008")
	next := r.Fail("next-turn", "messages of two turns have the same id", "MSG-004")
	kinds := r.Lint("two-kinds", "messages of two kinds have the same id", "MSG-004")
	mixed := r.Lint("mixed", "some chunks of a turn have a messageId and others have none", "MSG-006")
	const rememberedIDs = 1 << 12
	return r.Watching(func(w *watch) {
		type ids struct {
			seen          [3]map[string]int
			turn          *turn
			with, without int
			turns         map[string]*turn // of the messages of the agent, by id
		}
		all := map[*session]*ids{}
		reset := func(ev *event) { delete(all, ev.session) }
		w.On(reset, asked(loadSession), answered(loadSession), asked(resumeSession))
		w.inSession(func(ev *event, s *session) {
			m := rules.Entry(all, s)
			kind := int(ev.topic - userChunk)
			id := ev.update.Get("messageId")
			if ev.turn != nil && ev.turn.mixed {
				return
			}
			if t := ev.turn; t != m.turn {
				m.turn, m.with, m.without = t, 0, 0
			}
			here, elsewhere := &m.with, m.without
			if id.Kind() != wire.String {
				here, elsewhere = &m.without, m.with
			}
			if *here = ev.Seq; elsewhere > 0 && m.turn != nil {
				w.find(mixed, ev, "", []int{elsewhere}, "Some chunks of the turn have a messageId and others have none.")
			}
			if id.Kind() != wire.String {
				return
			}
			w.Saw(returns)
			if t := ev.turn; kind > 0 && t != nil {
				before := m.turns[id.Str()]
				w.judge(next, before != nil && before != t, ev, "", nil,
					"The message has the messageId %q of a message of an earlier turn, of which it then is a part.", id.Str())
				if m.turns == nil || len(m.turns) >= rememberedIDs {
					m.turns = map[string]*turn{}
				}
				m.turns[id.Str()] = t
			}
			if id.Is(s.messages[kind]) && m.seen[kind] != nil {
				return // the message goes on
			}
			text := id.Str()
			if at := m.seen[kind][text]; at > 0 {
				w.find(returns, ev, text, []int{at}, "The messageId %q came back after another message had begun.", text)
			}
			for other := range m.seen {
				if at := m.seen[other][text]; at > 0 && other != kind {
					w.find(kinds, ev, text, []int{at}, "The messageId %q names messages of two kinds.", text)
				}
			}
			if m.seen[kind] == nil || len(m.seen[kind]) >= rememberedIDs {
				m.seen[kind] = map[string]int{}
			}
			m.seen[kind][text] = ev.Seq
		}, messages()...)
	})
}
