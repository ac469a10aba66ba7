package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
)

// blind finds permission requests that do not tell the user what the model wants to do. The path or command of a call
// in the model's latest reply must be in the request, or in an earlier message about the calls of the turn.
func (c *callWatch) blind(ev *event, x *calling) {
	marks := lists.Map(x.wanted, wish.mark)
	if len(marks) == 0 || slices.Contains(marks, "") || x.frames.Len() >= rememberedText {
		return
	}
	shown := func(mark string) bool { return strings.Contains(x.frames.String(), beginning(mark)) }
	c.judge("blind", !slices.ContainsFunc(marks, shown), ev, string(ev.ID), []int{x.asked}, "The agent asks for "+
		"permission, but neither the request nor an earlier message about the turn's tool calls has %q.", marks[0])
}

// asksElsewhere finds permission requests in another session than the one whose model made the call: the request has
// the path or command of that call, and not those of the calls that its own session's model made. It returns true if it
// has reported the request.
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
			x.refused = true // the answer may be a no, which its own session does not show
			c.find("other-session", ev, string(ev.ID), []int{x.asked}, "The agent asks in session %s for permission for "+
				"%q, which the model wants in session %s.", s.id, x.wanted[at].mark(), o.id)
			return true
		}
	}
	return false
}

// beginning returns the part of a path or command that a title shows, since titles cut long ones.
func beginning(mark string) string { return mark[:min(len(mark), 24)] }
