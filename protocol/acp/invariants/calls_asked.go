package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
)

// blind reports a permission request that shows the user neither the path nor the command of any call in the model's
// latest reply. An earlier message about the turn's calls may show it instead.
func (c *callWatch) blind(ev *event, x *calling) {
	marks := lists.Map(x.wanted, wish.mark)
	if len(marks) == 0 || slices.Contains(marks, "") || x.frames.Len() >= rememberedText {
		return
	}
	shown := func(mark string) bool { return strings.Contains(x.frames.String(), beginning(mark)) }
	c.judge("blind", !slices.ContainsFunc(marks, shown), ev, string(ev.ID), []int{x.asked}, "The agent asks for "+
		"permission, but neither the request nor an earlier message about the turn's tool calls has %q.", marks[0])
}

// asksElsewhere reports a permission request for a call of another session's model. The request has the path or command
// of that call, and none of its own session's calls. Child sessions, sessions that load, and calls that a tool_call
// announced are ignored. It returns true if it has reported the request.
func (c *callWatch) asksElsewhere(ev *event, own *calling) bool {
	marks := lists.Map(own.wanted, wish.mark)
	if !c.Has("other-session") || len(marks) == 0 || slices.Contains(marks, "") {
		return false
	}
	c.Saw("other-session")
	s, raw := ev.session, string(ev.Raw)
	known := ev.tool != nil && ev.tool.by == byCall
	if known || s == nil || s.child() || s.window != nil || slices.ContainsFunc(marks, func(mark string) bool {
		return strings.Contains(raw, beginning(mark))
	}) {
		return false
	}
	for t, x := range c.turns {
		at := slices.IndexFunc(x.wanted, func(call wish) bool {
			return call.mark() != "" && strings.Contains(raw, call.mark())
		})
		o := t.session
		if at >= 0 && o.conn == ev.conn && o.id != s.id && !o.within(s) && !s.within(o) {
			x.refused = true // the user may say no; only the other session has that answer
			c.find("other-session", ev, string(ev.ID), []int{x.asked}, "The permission request names session %s, but "+
				"the model's call with %q belongs to session %s.", s.id, x.wanted[at].mark(), o.id)
			return true
		}
	}
	return false
}

// stray is a tool call in an idle session that has the path or command of a call of another session's model.
type stray struct {
	seq           int
	session, mark string
}

// strays remembers the first tool call of an idle session that has the path or command of exactly one working turn of
// another session. If that turn does not show the call, shown reports it.
func (c *callWatch) strays(ev *event, s *session) {
	if ev.tool != nil || !s.quiet() || s.busy() || !s.known() || len(ev.Redacted) > 0 {
		return
	}
	raw, turns, mark := string(ev.Raw), 0, ""
	var of *calling
	for t, x := range c.turns {
		at := slices.IndexFunc(x.wanted, func(call wish) bool {
			return call.mark() != "" && strings.Contains(raw, call.mark())
		})
		if o := t.session; at >= 0 && o.conn == ev.conn && !o.within(s) && !s.within(o) {
			turns, of, mark = turns+1, x, x.wanted[at].mark()
		}
	}
	if turns == 1 && of.strayed.seq == 0 {
		of.strayed = stray{ev.Seq, s.id, mark}
	}
}

// beginning returns the first 24 bytes of a text, because an agent may cut off the rest in a title or a plan.
func beginning(mark string) string { return mark[:min(len(mark), 24)] }
