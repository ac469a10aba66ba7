package sweep

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
)

// row is one printed line of a script: the line of a command, or the } that
// closes its block.
type row struct {
	line   *script.Line
	closes bool
}

// text returns the printed line, which is used to compare rows.
func (r row) text() string {
	if r.closes {
		return "}"
	}
	return r.line.String()
}

func (r row) opens() bool            { return !r.closes && len(r.line.Blocks) > 0 }
func (r row) is(command string) bool { return !r.closes && r.line.Is(command) }

// rowsOf returns the printed lines of a script, including those in blocks.
func rowsOf(lines []*script.Line) (rows []row) {
	for _, l := range lines {
		rows = append(rows, row{line: l})
		for _, b := range l.Blocks {
			rows = append(rows, rowsOf(b)...)
		}
		if len(l.Blocks) > 0 {
			rows = append(rows, row{l, true})
		}
	}
	return rows
}

// linesOf converts rows back to the lines of a script. Rows whose enclosing
// block was removed become top-level lines.
func linesOf(rows []row) (lines []*script.Line) {
	var block *script.Line
	for _, r := range rows {
		switch {
		case r.closes:
			block = nil
		case r.opens():
			l := *r.line
			block = l.With()
			lines = append(lines, block)
		case block != nil:
			block.With(append(block.Blocks[0], r.line)...)
		default:
			lines = append(lines, r.line)
		}
	}
	return lines
}

// hasty counts the acts that stop the agent's work after a prompt, without an
// await in between. Whether the agent has started to work by then is a matter
// of chance, and so is the effect of the act.
func hasty(a Archive) (n int) {
	fresh := false
	for _, r := range rowsOf(a.Lines) {
		switch {
		case r.is("prompt"), r.is("run"):
			fresh = true
		case r.is("await"), r.is("stall"), !r.closes && r.line.Says("needs", "await"):
			fresh = false
		case fresh && !r.closes && slices.ContainsFunc(stops, func(act []string) bool { return r.line.Says(act...) }):
			n++
		}
	}
	return n
}

// stops lists the acts that end the agent's work on a prompt.
var stops = [][]string{
	{"cancel"}, {"cancel-request"}, {"abandon"}, {"kill"}, {"session", "close"}, {"session", "delete"},
}

// tail returns changes that remove the end of the script. The change that
// removes the most comes first.
func (x *reducer) tail(Archive) []change {
	var out []change
	for _, keep := range []int{50, 70, 85} {
		out = append(out, func(a Archive) (Archive, bool) {
			rows := rowsOf(a.Lines)
			return x.without(a, nextCheck(rows, len(rows)*keep/100), len(rows))
		})
	}
	return out
}

// nextCheck returns the index of the first check at or after the row at. It
// returns len(rows) if there is none.
func nextCheck(rows []row, at int) int {
	for at < len(rows) && !rows[at].is("check") {
		at++
	}
	return at
}

// blocks returns changes that remove a check and the rows up to the next check.
// The change for the last check comes first.
func (x *reducer) blocks(a Archive) []change {
	var out []change
	for _, r := range slices.Backward(rowsOf(a.Lines)) {
		if !r.is("check") {
			continue
		}
		out = append(out, func(a Archive) (Archive, bool) {
			rows := rowsOf(a.Lines)
			from := slices.IndexFunc(rows, func(o row) bool { return o.text() == r.text() })
			if from < 0 {
				return a, false
			}
			return x.without(a, from, nextCheck(rows, from+1))
		})
	}
	return out
}

// sameAs returns the index of the first row in the series of equal rows that
// ends before the index to.
func sameAs(rows []row, to int) int {
	from := to - 1
	for from > 0 && rows[from-1].text() == rows[to-1].text() {
		from--
	}
	return from
}

// series returns two changes for each series of equal lines: one keeps a single
// line, and one keeps half of them in case one is too few.
func (x *reducer) series(a Archive) []change {
	var out []change
	rows := rowsOf(a.Lines)
	for to := len(rows); to > 0; to = sameAs(rows, to) {
		n, back := to-sameAs(rows, to), len(rows)-to
		if n <= 2 {
			continue
		}
		for _, most := range []int{1, n / 2} {
			out = append(out, func(b Archive) (Archive, bool) {
				rows := rowsOf(b.Lines)
				end := len(rows) - back
				begin := sameAs(rows, end)
				if end-begin <= most {
					return b, false
				}
				return x.without(b, begin+most, end)
			})
		}
	}
	return out
}

// lines returns changes that remove single lines, the last line first. A group
// is removed as a whole.
func (x *reducer) lines(a Archive) []change {
	var out []change
	for back := 1; back < len(rowsOf(a.Lines)); back++ {
		out = append(out, func(b Archive) (Archive, bool) {
			rows := rowsOf(b.Lines)
			at := len(rows) - back
			if at < 1 || rows[at].closes {
				return b, false
			}
			to := at + 1
			if rows[at].is("prompt") && to < len(rows) && !rows[to].closes && rows[to].line.Says("await", "turn") {
				to++
			}
			if rows[at].opens() {
				for to < len(rows) && !rows[to-1].closes {
					to++
				}
			}
			return x.without(b, at, to)
		})
	}
	return out
}

// without returns the Archive without the rows from..to and without the model's
// replies to removed prompts. It keeps rows that must stay. It returns false if
// nothing was removed.
func (x *reducer) without(a Archive, from, to int) (Archive, bool) {
	rows := rowsOf(a.Lines)
	out := slices.Clone(rows[:from])
	m := ReadModel(a.Model)
	c := cut{reducer: x, paces: to < len(rows), left: map[string]int{}}
	for _, r := range rows {
		c.left[r.text()]++
	}
	prompts := func(rows []row) int { return lists.Count(rows, func(r row) bool { return r.is("prompt") }) }
	gone, turns := 0, slices.Clone(m.Turns)
	for _, r := range rows[from:to] {
		if c.stays(r) {
			out = append(out, r)
			continue
		}
		gone++
		if n := prompts(out); r.is("prompt") && n < len(turns) {
			turns = slices.Delete(turns, n, n+1)
		}
	}
	if gone == 0 {
		return a, false
	}
	short := Archive{Files: a.Files, Lines: linesOf(append(out, rows[to:]...)), Model: a.Model}
	if len(turns) != len(m.Turns) {
		short.Model = (&fakellm.Document{Rest: m.Rest, Turns: turns}).Format()
	}
	return short, true
}

// cut decides which rows must stay although their range is removed. It gets the
// rows in order.
type cut struct {
	*reducer
	paces  bool           // the script has rows after the removed range
	left   map[string]int // text of a row -> how many such rows are left; one must stay
	group  bool           // the row that opened the current block has stayed
	spoken bool           // the prompt of a turn was removed, so the await of its end may be removed too
}

// stays reports whether a row must stay.
func (c *cut) stays(r row) bool {
	t := r.text()
	c.left[t]--
	paced := c.paces && paces(r) && !c.spoken && c.left[t] == 0
	c.spoken = r.is("prompt") && !c.keep[t]
	kept := c.keep[t] && (c.left[t] == 0 || !r.is("await"))
	listens := r.is("tag") && !c.heard
	if t == "golden off" || listens || paced || kept || c.group && r.closes {
		c.group = r.opens() || c.group && !r.closes
		return true
	}
	return false
}

// paces reports whether later lines depend on the wait or release in this row.
// Without it, the script would act too early with any agent.
func paces(r row) bool {
	return slices.ContainsFunc([]string{"await", "release", "answer", "write"}, r.is)
}

// turns returns changes that shorten the model's replies.
func (x *reducer) turns(a Archive) []change {
	var out []change
	change := func(f func(m *fakellm.Document) bool) {
		out = append(out, func(a Archive) (Archive, bool) {
			m := ReadModel(a.Model)
			if !f(m) {
				return a, false
			}
			b := a
			b.Model = m.Format()
			return b, true
		})
	}
	// An agent may choose for which tools it asks for permission. Without a tool
	// call, the script would wrongly blame an agent that has no reason to ask.
	needed := func(s fakellm.StepNode) bool { return s.Kind == "tool" && strings.HasPrefix(x.rule, "asks-") }
	// An earlier change may have removed this turn or reply.
	reply := func(m *fakellm.Document, t, r int) *fakellm.ReplyNode {
		if t >= len(m.Turns) || r >= len(m.Turns[t].Replies) {
			return &fakellm.ReplyNode{}
		}
		return &m.Turns[t].Replies[r]
	}
	for t, turn := range slices.Backward(ReadModel(a.Model).Turns) {
		for r := range slices.Backward(turn.Replies) {
			change(func(m *fakellm.Document) bool { // remove a reply
				if t >= len(m.Turns) || len(m.Turns[t].Replies) < 2 || r >= len(m.Turns[t].Replies) ||
					slices.ContainsFunc(reply(m, t, r).Steps, needed) {
					return false
				}
				m.Turns[t].Replies = slices.Delete(m.Turns[t].Replies, r, r+1)
				return true
			})
			for i := range slices.Backward(turn.Replies[r].Steps) {
				change(func(m *fakellm.Document) bool { // remove a step
					from := reply(m, t, r)
					if i >= len(from.Steps) || len(from.Steps) < 2 || needed(from.Steps[i]) {
						return false
					}
					from.Steps = slices.Delete(from.Steps, i, i+1)
					return true
				})
				change(func(m *fakellm.Document) bool { // keep only one piece of a text
					steps := reply(m, t, r).Steps
					if i >= len(steps) || len(steps[i].Pieces) < 2 {
						return false
					}
					steps[i] = fakellm.NewText(steps[i].Kind, steps[i].Pieces[0])
					return true
				})
			}
		}
	}
	return out
}

// files returns changes that remove files of the workspace.
func (x *reducer) files(a Archive) []change {
	var out []change
	for _, f := range a.Files {
		out = append(out, func(a Archive) (Archive, bool) {
			b := a
			b.Files = slices.DeleteFunc(slices.Clone(a.Files), func(g script.ArchiveFile) bool { return g.Name == f.Name })
			return b, len(b.Files) < len(a.Files)
		})
	}
	return out
}
