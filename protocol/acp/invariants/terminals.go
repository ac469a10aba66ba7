package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// termLife checks how the agent uses the editor's terminals.
func termLife(w *watch) {
	w.On(func(ev *event) {
		id := ev.params.Get("terminalId")
		if id.Kind() != wire.String {
			return
		}
		w.Saw("unknown", "other-session", "after-release")
		c := ev.conn
		name := id.Str()
		t := c.terminals[name]
		switch {
		case t == nil:
			if c.initAsked > 0 && len(c.termOrder) < rememberedTerms {
				w.find("unknown", ev, name, nil, "%s names terminal %q, which terminal/create never returned.", ev.Method, name)
			}
		case t.session != ev.session:
			w.find("other-session", ev, name, []int{t.created},
				"%s uses terminal %q under another session than the one that created it.", ev.Method, name)
		case t.released > 0 && ev.verb == releaseTerminal:
			w.Saw("released-twice")
			w.find("released-twice", ev, name, []int{t.created, t.released}, "Terminal %q was released twice.", name)
		case t.released > 0:
			w.find("after-release", ev, name, []int{t.created, t.released}, "%s uses terminal %q after its release.", ev.Method,
				name)
		}
	}, terminalUses()...)
	w.On(func(ev *event) {
		if ev.turn == nil || ev.conn.closedIn > 0 {
			return // the editor is gone, and its terminals with it
		}
		for _, t := range ev.conn.termOrder {
			if t.turn != ev.turn || t.late() {
				continue
			}
			w.judge("open-at-turn-end", t.released == 0, ev, t.id, []int{t.created},
				"Terminal %q was not released when its turn ended.", t.id)
		}
	}, answered(prompt))
	w.AtEnd(func(end rules.End) {
		if end.Clean {
			for _, c := range w.state.ordered() {
				w.leaks(c)
			}
		}
	})
}

// late reports whether the editor created the terminal when its turn had ended, or had been cancelled or closed, or
// whether something else may have ended the turn. The agent may then end it before it reads the terminal's id, and
// releases the terminal later.
func (t *terminal) late() bool {
	if t.turn == nil {
		return false
	}
	if t.turn.ended > 0 && t.turn.ended < t.created || t.turn.disturbed {
		return true
	}
	stops := []*act{t.turn.cancel, t.turn.close}
	if t.turn.request != nil {
		stops = append(stops, t.turn.request.back)
	}
	return slices.ContainsFunc(stops, func(a *act) bool { return a != nil && a.seq < t.created })
}

// leaks reports terminals that the agent never released.
func (w *watch) leaks(c *conn) {
	if c.exited > 0 && (c.closedIn == 0 || c.exited < c.closedIn) {
		return // the agent was killed or died, so it could not release anything
	}
	for _, t := range c.termOrder {
		if t.turn != nil && (t.turn.ended == 0 || c.closedIn > 0 && t.turn.ended > c.closedIn) {
			continue // the turn did not end before the editor was gone
		}
		if last := t.session.last; t.late() && (last == nil || last.started < t.created) {
			continue // no later turn shows that the agent had time to release it
		}
		w.Saw("not-released")
		point, what := "not-released", "never"
		if t.killed {
			w.Saw("killed-not-released")
			point, what = "killed-not-released", "killed but never"
		}
		if t.released == 0 {
			w.Report(point, c.n, t.session.name(), t.id, []int{t.created}, "Terminal %q was %s released.", t.id, what)
		}
	}
}

// terminalRef checks that the terminals in the content of tool calls are open terminals of the session. A replay may
// show terminals that were released.
func terminalRef(w *watch) {
	terminalKept(w)
	w.inSession(func(ev *event, s *session) {
		if !s.replaying() || s.atWork() || ev.conn.initAsked == 0 || len(ev.conn.termOrder) >= rememberedTerms {
			return
		}
		for item := range ev.update.Get("content").Items() {
			if name := item.Get("terminalId").Str(); item.Get("type").Is("terminal") {
				w.judge("replayed", ev.conn.terminals[name] == nil, ev, name, nil, "The replay shows terminal %q, which the "+
					"client never created on this connection, so it cannot show the output.", name)
			}
		}
	}, toolCall, toolUpdate)
	w.inSession(func(ev *event, s *session) {
		c := ev.conn
		if s.window != nil || c.initAsked == 0 || len(c.termOrder) >= rememberedTerms {
			return
		}
		for item := range ev.update.Get("content").Items() {
			if !item.Get("type").Is("terminal") {
				continue
			}
			name := item.Get("terminalId").Str()
			if ev.tool != nil && (slices.Contains(ev.tool.terminals, name) || ev.tool.turn == nil) {
				continue // shown before, or replayed
			}
			w.Saw("unknown", "released", "other-session")
			t := c.terminals[name]
			switch {
			case t == nil:
				w.find("unknown", ev, name, nil, "A tool call shows terminal %q, which terminal/create never returned.", name)
			case t.session != s:
				w.find("other-session", ev, name, []int{t.created}, "A tool call shows terminal %q of another session.", name)
			case t.released > 0:
				w.find("released", ev, name, []int{t.created, t.released},
					"A tool call first shows terminal %q after the terminal's release.", name)
			}
		}
	}, toolCall, toolUpdate)
}

// terminalKept checks that no update removes a terminal's output from a tool call. An update replaces the whole content
// of the call. If the new content lacks the terminal, it must have the output as text. A failed call need not, if the
// editor answered terminal/output or terminal/wait_for_exit with an error in the same turn.
func terminalKept(w *watch) {
	refused := map[*turn]bool{}
	w.inTurn(func(ev *event, t *turn) {
		if ev.err.Exists() {
			rules.Remember(refused, rememberedRequests, t, true)
		}
	}, answered(terminalOutput), answered(waitForExit))
	printed := map[string]string{} // output of each terminal, as the agent last read it
	of := map[int]string{}         // terminals, by Seq of the request for their output
	w.On(func(ev *event) {
		rules.Remember(of, rememberedRequests, ev.Seq, ev.params.Get("terminalId").Str())
	}, asked(terminalOutput))
	w.On(func(ev *event) {
		name := of[ev.Ref]
		delete(of, ev.Ref)
		output := ev.result.Get("output").Str()
		if len(ev.Redacted) == 0 && bare(output) != "" && len(output) <= rememberedText {
			rules.Remember(printed, rememberedTerms, name, output)
		}
	}, answered(terminalOutput))
	w.inTurn(func(ev *event, t *turn) {
		content := ev.update.Get("content")
		if refused[t] && ev.update.Get("status").Is("failed") || ev.tool == nil || content.Kind() != wire.Array {
			return
		}
		var text strings.Builder
		var shown []string
		for item := range content.Items() {
			text.WriteString(hearing.Loose(item.Path("content.text").Str()))
			shown = append(shown, item.Get("terminalId").Str())
		}
		for _, name := range ev.tool.terminals {
			if output := printed[name]; output != "" {
				w.judge("dropped", !slices.Contains(shown, name) && !holds(text.String(), output), ev, ev.tool.id, nil,
					"The agent replaced terminal %q in the content of tool call %q by a content without its output %q.", name,
					ev.tool.id, clip(output))
			}
		}
	}, toolUpdate)
}
