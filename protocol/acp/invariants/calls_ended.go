package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
)

// unended reports calls that have not ended although the model got their results. The calls of the last reply have no
// result yet. It skips a turn with a call that may outlive its result: a subagent (delegate), a tool of the agent's own
// (own), or a command for which outlivesResult returns true.
func (c *callWatch) unended(ev *event, x *calling) {
	c.leftOpen(ev, x)
	t, ran := ev.turn, x.ran
	if len(x.made) == 0 && len(x.ranAll) == len(t.tools) {
		ran = x.ranAll
	}
	n := len(ran)
	if x.refused || n == 0 || ev.goesOn() || n < len(t.tools) && n+len(x.called) != len(t.tools) ||
		slices.Contains(ran, "delegate") || slices.Contains(ran, "own") || x.outlivesResult(t) {
		return
	}
	c.Saw("unended")
	for _, k := range t.tools[:min(n, len(t.tools))] {
		if k.by == byCall && !k.status.final() {
			k.blamed = true
			c.find("unended", ev, k.id, []int{k.first, x.asked}, "The model has the result of %s, but tool call %q "+
				"was still %s when its turn ended with %s.", strings.Join(ran, ", "), k.id, k.status, ev.stop)
		}
	}
}

// toldOfRejection judges the result of a call that the user rejected, and records that the model got it.
func (c *callWatch) toldOfRejection(ev *event, x *calling, a fakellm.Asked) {
	parts := a.Conversation()
	if x.rejected <= x.asked || len(parts) == 0 || parts[len(parts)-1].Who != "result" {
		return
	}
	x.over = ev.Seq
	c.judge("rejection", len(x.called) == 1 && bare(parts[len(parts)-1].Text) == "", ev, "", []int{x.rejected},
		"The user rejected the model's tool call, but the agent gave the model an empty result.")
}

// leftOpen reports calls that have not ended although the user rejected them and the model got their results.
func (c *callWatch) leftOpen(ev *event, x *calling) {
	for _, k := range ev.turn.tools {
		rejected := k.asked == nil && k.denied > 0 && (k.denial == rejectedOnce || k.denial == rejectedAlways)
		if k.by == byCall && rejected && k.denied < x.over {
			open := !k.status.final()
			k.blamed = k.blamed || open
			c.judge("unended", open && !k.odd, ev, k.id, []int{k.first, k.denied, x.over}, "The user rejected tool call %q and "+
				"the model has its result, but the call was still %s when its turn ended with %s.", k.id, k.status, ev.stop)
		}
	}
}

// goesOn reports whether a state update lists background work that continues.
func (ev *event) goesOn() bool { return ev.update.Get("background").Len() > 0 }

// quick matches commands that end so soon that the model can only get their complete output.
var quick = lazy.Regexp(`^` + quickPart + `((;|&&|\|\|) *` + quickPart + `)*$`)

const quickPart = `(cat|echo|printf|pwd|ls|wc|exit|true|false|:)( (>&|[^&|;\n])*)?`

// outlivesResult reports whether a command of the turn may run on after the model got its result. It returns false if
// all commands are quick, or if each ran in a terminal of the editor and all these terminals have exited.
func (x *calling) outlivesResult(t *turn) bool {
	commands := lists.Where(x.done, func(call wish) bool { return call.tool == "run_shell" })
	if !slices.ContainsFunc(commands, func(call wish) bool { return !quick().MatchString(call.args["command"]) }) {
		return false
	}
	exited := 0
	for _, term := range t.session.conn.terminals {
		if term.turn != t {
			continue
		}
		if !term.exited {
			return true
		}
		exited++
	}
	return exited < len(commands)
}
