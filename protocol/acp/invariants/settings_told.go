package invariants

import (
	"slices"
	"time"

	"github.com/acp-test/acp-test/rules"
)

// toldAtOnce is how long after a choice of the user an update may be due to it.
const toldAtOnce = 2 * time.Second

// choice is a mode or an option value that the user chose for a session. what is the category of the option, or mode.
type choice struct {
	what, value string
	at          time.Duration // of the request, then of its answer
	seq         int
	open        bool // the agent has not answered
}

// choices has the latest choice for each session.
type choices struct {
	*watch
	of map[*session]choice
}

// settingsApart checks that the mode and the level of thought that the user chooses for one session are not told in
// another that is idle. Other options, such as the model of a local server, may hold for all sessions.
func settingsApart(w *watch) {
	c := choices{w, map[*session]choice{}}
	w.On(c.chose, asked(setMode), asked(setOption))
	w.On(func(ev *event) {
		switch x, known := c.of[ev.session]; {
		case !known || x.seq != ev.Ref:
		case ev.err.Exists():
			delete(c.of, ev.session)
		default:
			x.at, x.open = ev.At, false
			c.of[ev.session] = x
		}
	}, answered(setMode), answered(setOption))
	w.inSession(func(ev *event, s *session) {
		if s.modes != nil {
			c.told(ev, "mode", s.modes.current, ev.update.Get("currentModeId").Str())
		}
	}, modeUpdate)
	w.inSession(func(ev *event, s *session) {
		for _, o := range ev.options {
			before := findOption(s.options, o.id)
			if before != nil && slices.Contains([]string{"mode", "thought_level"}, o.category) {
				c.told(ev, o.category, before.current, o.current)
			}
		}
	}, optionsUpdate)
}

// chose stores the mode or value that a request of the user sets in a session.
func (c choices) chose(ev *event) {
	if ev.session == nil {
		return
	}
	x := choice{"mode", ev.params.Get("modeId").Str(), ev.At, ev.Seq, true}
	if ev.topic == asked(setOption) {
		x.what, x.value = "", ev.params.Get("value").Str()
		if o := findOption(ev.session.options, ev.params.Get("configId").Str()); o != nil && o.selects {
			x.what = o.category
		}
	}
	rules.Remember(c.of, rememberedSessions, ev.session, x)
}

// told judges an update that gives a mode or level of thought a new value.
func (c choices) told(ev *event, what, before, now string) {
	if own, known := c.of[ev.session]; before == "" || before == now || known && (own.open || ev.At-own.at < toldAtOnce) {
		return
	}
	var from *session
	for of, x := range c.of {
		if of.conn == ev.conn && of != ev.session && x.what == what && x.value == now && ev.At-x.at < toldAtOnce &&
			ev.session.quietSince(x.seq) && (from == nil || x.seq < c.of[from].seq) {
			from = of
		}
	}
	c.judge("broadcast", from != nil, ev, what, []int{c.of[from].seq},
		"The user chose the %s %q in session %s alone, but the agent told it in another session too.", what, now,
		from.name())
}

// quietSince reports whether, since the entry with the given Seq, the session was set up and idle.
func (s *session) quietSince(seq int) bool {
	return !s.atWork() && s.window == nil && !s.child() && max(s.created, s.named, s.restSeq) < seq &&
		(s.last == nil || s.last.ended < seq)
}
