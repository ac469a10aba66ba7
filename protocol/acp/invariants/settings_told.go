package invariants

import (
	"slices"
	"time"

	"github.com/acp-test/acp-test/rules"
)

// toldAtOnce is how long after a choice of the user an update may be due to it.
const toldAtOnce = 2 * time.Second

// choice is a mode or a level of thought that the user chose for a session. what is the category of the option.
type choice struct {
	what, value string
	at          time.Duration
	seq         int
}

// settingsApart checks that the mode and the level of thought that the user chooses for one session are not told in
// another that is idle. Other options, such as the model of a local server, may hold for all sessions.
func settingsApart(w *watch) {
	chosen := map[*session]choice{}
	w.On(func(ev *event) {
		c := choice{"mode", ev.params.Get("modeId").Str(), ev.At, ev.Seq}
		if ev.topic == asked(setOption) && ev.session != nil {
			c.what, c.value = "", ev.params.Get("value").Str()
			if o := findOption(ev.session.options, ev.params.Get("configId").Str()); o != nil && o.selects {
				c.what = o.category
			}
		}
		if ev.session != nil {
			rules.Remember(chosen, rememberedSessions, ev.session, c)
		}
	}, asked(setMode), asked(setOption))
	w.On(func(ev *event) {
		if c, known := chosen[ev.session]; known {
			c.at = ev.At
			chosen[ev.session] = c
		}
	}, answered(setMode), answered(setOption))
	told := func(ev *event, what, before, now string) {
		if own, known := chosen[ev.session]; before == "" || before == now || known && ev.At-own.at < toldAtOnce {
			return
		}
		var from *session
		for of, c := range chosen {
			if of.conn == ev.conn && of != ev.session && c.what == what && c.value == now && ev.At-c.at < toldAtOnce &&
				ev.session.quietSince(c.seq) && (from == nil || c.seq < chosen[from].seq) {
				from = of
			}
		}
		w.judge("broadcast", from != nil, ev, what, []int{chosen[from].seq},
			"The user chose the %s %q in session %s alone, but the agent told it in another session too.", what, now,
			from.name())
	}
	w.inSession(func(ev *event, s *session) {
		if s.modes != nil {
			told(ev, "mode", s.modes.current, ev.update.Get("currentModeId").Str())
		}
	}, modeUpdate)
	w.inSession(func(ev *event, s *session) {
		for _, o := range ev.options {
			before := findOption(s.options, o.id)
			if before != nil && slices.Contains([]string{"mode", "thought_level"}, o.category) {
				told(ev, o.category, before.current, o.current)
			}
		}
	}, optionsUpdate)
}

// quietSince reports whether, since the entry with the given Seq, the session was set up and idle.
func (s *session) quietSince(seq int) bool {
	return !s.atWork() && s.window == nil && !s.child() && max(s.created, s.named, s.restSeq) < seq &&
		(s.last == nil || s.last.ended < seq)
}
