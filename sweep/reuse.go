package sweep

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
)

// A chain is several schedules in one process of the agent, one after the
// other, each in sessions of its own: a scenario like any other, only longer.
// What a chain shows is looked for in each of its schedules alone, so that a
// finding is one of the whole chain only if it is none of a part.

// chained is how many schedules a chain has at most.
const chained = 8

// inChain are the commands of a schedule that leave nothing behind for the
// next one: what it opens, it names, and what it changes, it changes back.
var inChain = []string{"session", "prompt", "await", "release", "cancel", "cancel-request", "check", "text", "saw", "model", "group", "stall", "request", "same-history", "write-shape"}

// onceInChain are the commands that a chain says once for all its schedules.
var onceInChain = []string{"needs", "client", "files", "buffer", "env", "home", "ids", "policy", "rules", "terminal", "elicit", "mcp"}

// units puts the schedules that can share a process into chains, each at the
// place of its first, and every other into a unit of its own.
func (s *sweep) units(list []schedule) [][]schedule {
	var out [][]schedule
	open := map[string]int{} // what a chain says once: its unit
	for _, sch := range list {
		key, ok := sch.chainable()
		if !s.Reuse || !ok {
			out = append(out, []schedule{sch})
			continue
		}
		i, ok := open[key]
		if !ok || len(out[i]) == chained {
			i = len(out)
			out, open[key] = append(out, nil), i
		}
		out[i] = append(out[i], sch)
	}
	return out
}

// chainable reports whether a schedule leaves the process as it found it, and
// names what it must have in common with those it shares the process with.
func (s schedule) chainable() (key string, ok bool) {
	if s.seen.asked > 0 || len(s.seen.effects) > 0 || s.point.kind == atTerminal || s.point.with != nil {
		return "", false // answers and files belong to no session
	}
	for _, t := range s.base.spoken.Turns {
		if t.Mapping || slices.ContainsFunc(t.Replies, func(r fakellm.ReplyNode) bool { return r.Raw != "" }) {
			return "", false // its gates cannot be named anew
		}
	}
	key = s.base.id
	for l := range (&script.File{Lines: s.text().lines}).All() {
		c := command(l)
		switch {
		case chainHead(l), l.Negated:
		case slices.Contains(onceInChain, c):
			key += "\n" + l.String()
		case !slices.Contains(inChain, c):
			return "", false
		case c == "write-shape" && !l.Says("write-shape", "coalesce") && !l.Says("write-shape", "normal"):
			return "", false
		case c == "prompt" && (plainPrompt(l) == "" || strings.HasPrefix(plainPrompt(l), "'/")):
			return "", false
		}
	}
	return key, true
}

// chainHead reports whether a line belongs to the head of a scenario, of which a
// chain has its own.
func chainHead(l *script.Line) bool {
	return l.Kind != script.Command || l.Is("golden") || l.Is("tag")
}

// chain is the schedule that consists of others.
func chain(parts []schedule) schedule {
	return schedule{base: parts[0].base, parts: parts,
		point: Point{Name: "in one process", State: "in one process"}, action: Action{Name: "one after another"}}
}

// joined is the scenario of a chain, and the lines without which it would be
// another.
func (s schedule) joined() (archive, map[string]bool) {
	title := fmt.Sprintf("%d schedules of %s, one after another in one process.", len(s.parts), s.base.id)
	a := archive{lines: []*script.Line{script.NewComment(title), script.New("golden off"), script.New("tag cancel")},
		files: slices.Clone(s.base.files)}
	keep := map[string]bool{}
	var turns []fakellm.TurnNode
	once := func(l *script.Line) bool { return slices.Contains(onceInChain, command(l)) }
	for i, p := range s.parts {
		n := i + 1
		text, kept := p.text(), p.kept()
		if !slices.ContainsFunc(text.lines, func(l *script.Line) bool { return l.Says("session", "new", p.target.main) }) {
			own := script.New("session new %s", p.target.main)
			kept[own.String()] = true
			at := slices.IndexFunc(text.lines, func(l *script.Line) bool { return !chainHead(l) && !once(l) })
			text.lines = slices.Insert(text.lines, at, own)
		}
		for _, l := range text.lines {
			if !chainHead(l) && (i == 0 || !once(l)) {
				a.lines = append(a.lines, numberedLine(l, n, kept, keep))
			}
		}
		if n > 1 {
			a.lines = append(a.lines, script.New("check SESSION-020 knows-nothing-of-others.%s", n),
				script.New("! model saw text~%s", script.Quote(fmt.Sprintf(`\(schedule [1-%d]\)`, n-1))))
		}
		for _, t := range readModel(text.model).Turns {
			turns = append(turns, renamed(t, n))
		}
	}
	a.model = (&fakellm.Document{Rest: s.base.spoken.Rest, Turns: turns}).Format()
	return a, keep
}

// numberedLine is a line of the n-th schedule of a chain: what may have a name
// only once in a scenario is named after the schedule. Where the line was one to
// keep, it still is.
func numberedLine(line *script.Line, n int, kept, keep map[string]bool) *script.Line {
	l := *line
	l.Words = slices.Clone(l.Words)
	last := len(l.Words) - 1
	switch {
	case l.Is("prompt"):
		text := plainPrompt(line)
		i := slices.IndexFunc(l.Words, func(w script.Word) bool { return w.String() == text })
		l.Words[i] = script.Quote(fmt.Sprintf("%s (schedule %d)", l.Words[i].Raw(), n))
	case l.Is("check"), l.Is("release"), l.Says("await", "gate"):
		l.Words[last] = script.Text(fmt.Sprintf("%s.%d", l.Words[last].Raw(), n))
	case l.Is("model") && !l.Negated && l.Words[last].Quoted:
		key, operator, value, _ := l.Words[last].Cut("~")
		l.Words[last] = script.Join(script.Text(key+operator), script.Quote(fmt.Sprintf(`%s \(schedule %d\)`, value.Raw(), n)))
	}
	l.Blocks = nil
	for _, block := range line.Blocks {
		var lines []*script.Line
		for _, inner := range block {
			lines = append(lines, numberedLine(inner, n, kept, keep))
		}
		l.Blocks = append(l.Blocks, lines)
	}
	keep[l.String()] = keep[l.String()] || kept[line.String()]
	return &l
}

// renamed is the turn with its gates named after the n-th schedule of a chain.
func renamed(t fakellm.TurnNode, n int) fakellm.TurnNode {
	out := fakellm.TurnNode{}
	for _, r := range t.Replies {
		c := fakellm.ReplyNode{}
		for _, s := range r.Steps {
			if s.Kind == "gate" {
				s.Text = fmt.Sprintf("%s.%d", s.Text, n)
			}
			c.Steps = append(c.Steps, s)
		}
		out.Replies = append(out.Replies, c)
	}
	return out
}

// together runs a chain, and reports whether it showed nothing at all: then
// that is so for each of its schedules.
func (s *sweep) together(ctx context.Context, sch schedule, id string) (res scenarios.Result, clean bool) {
	res, began := s.runText(ctx, sch.text(), id)
	if !began || s.whole.Err() != nil {
		return res, false
	}
	switch res.Verdict {
	case scenarios.Error:
		s.mu.Lock()
		s.errors = append(s.errors, res)
		s.mu.Unlock()
		return res, false
	case scenarios.Skip, scenarios.Inconclusive:
		return res, false
	}
	unreached := slices.ContainsFunc(res.Checks, func(c scenarios.Check) bool { return c.NotReached })
	return res, !unreached && len(s.unknown(sch, res)) == 0 && !s.doubtful(sch, res)
}

// unknown are the signs of a result that its baseline does not show.
func (s *sweep) unknown(sch schedule, res scenarios.Result) []sign {
	s.mu.Lock()
	known := s.baseline[sch.base.id]
	s.mu.Unlock()
	return slices.DeleteFunc(found(res), func(g sign) bool { return known[g.rule] })
}

// doubtful reports whether a chain raised a question that its script does not
// ask.
func (s *sweep) doubtful(sch schedule, res scenarios.Result) bool {
	t, err := readTranscript(filepath.Join(s.engine.Out, filepath.FromSlash(res.ID), "transcript.jsonl"))
	return err != nil || swallowed(t) || slices.ContainsFunc(sch.parts, schedule.cuts) && clings(t)
}

// reportShared files what a chain showed and none of its schedules did alone.
func (s *sweep) reportShared(sch schedule, res scenarios.Result, alone []scenarios.Result) {
	for _, g := range s.unknown(sch, res) {
		if !slices.ContainsFunc(alone, func(r scenarios.Result) bool {
			return slices.ContainsFunc(found(r), func(o sign) bool { return o.rule == g.rule })
		}) {
			s.report(Signature{g.rule, sch.point.State, sch.action.Name}, g, sch, res)
		}
	}
}

// shared reports whether a finding shows only when schedules share a process.
func (f Finding) shared() bool { return len(f.schedule.parts) > 0 }

// fewer takes schedules out of a chain while it shows the rule.
func (x *reducer) fewer(sch schedule) schedule {
	for i := len(sch.parts) - 1; i >= 0 && len(sch.parts) > 1; i-- {
		if c := chain(slices.Delete(slices.Clone(sch.parts), i, i+1)); x.shows(x.ctx, c.text()) {
			sch = c
		}
	}
	return sch
}

// second is the text of second prompts, of a schedule and in a chain.
var second = regexp.MustCompile(`And another thing\.( \(schedule [0-9]\))?`)
