package sweep

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/scenarios"
)

// reduce repeats each finding, makes its schedule as short as it gets, and
// writes it down. What there is no time for stays as it was found.
func (s *sweep) reduce(ctx context.Context) []Finding {
	var list []*Finding
	for _, sig := range s.order {
		list = append(list, s.findings[sig])
	}
	slices.SortStableFunc(list, func(a, b *Finding) int {
		if d := rank(b.Class) - rank(a.Class); d != 0 {
			return d
		}
		return strings.Compare(a.Signature.String(), b.Signature.String())
	})
	numbers := map[string]int{}
	names, places := make([]string, len(list)), make([]int, len(list))
	for i, f := range list {
		numbers[f.Rule]++
		places[i] = numbers[f.Rule]
		names[i] = fmt.Sprintf("%s-%d", f.Rule, numbers[f.Rule])
	}
	var wait sync.WaitGroup
	next := make(chan int)
	done := 0
	for range cap(s.slots) * 2 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range next {
				s.settle(ctx, list[i], names[i], places[i])
				s.mu.Lock()
				done++
				n := done
				s.mu.Unlock()
				s.progress("confirm", n, len(list), names[i], list[i].Class)
			}
		}()
	}
	for i := range list {
		next <- i
	}
	close(next)
	wait.Wait()
	var out []Finding
	for _, f := range list {
		out = append(out, *f)
	}
	return out
}

// settle confirms and shrinks one finding and writes its repro.
func (s *sweep) settle(ctx context.Context, f *Finding, name string, number int) {
	if f.Action == "" {
		return // the scenario itself is the repro
	}
	sch := f.schedule
	sch.probes = s.doubts(sch, f.result)
	x := &reducer{sweep: s, ctx: ctx, rule: f.Rule, keep: sch.kept(), id: "sweep/reduced/" + slug(name)}
	a := sch.text()
	x.brief = number > thorough
	f.Hits, f.Runs = x.confirm(a, s.times())
	if f.Hits == 0 && ctx.Err() == nil {
		// A race: it shows when other things run too.
		h, n := x.confirm(a, 2*s.times())
		f.Hits, f.Runs = f.Hits+h, f.Runs+n
	}
	if f.Hits > 0 {
		// A finding that shows every other time needs several tries before a
		// shorter script may be said not to show it.
		x.sure = f.Hits == f.Runs
		x.tries = min(max(1, (2*f.Runs+f.Hits-1)/f.Hits-1), 4)
		a = x.shrink(a)
		if h, n := x.confirm(a, s.times()); h > 0 && (h == n || !x.sure) {
			f.Hits, f.Runs = h, n
		} else if n > 0 {
			a = sch.text() // as long as it was, but as sure
		}
	}
	f.Lines = scriptLines(a)
	if s.Repro == "" {
		return
	}
	file, err := writeRepro(s.Repro, name, a, f)
	if err != nil {
		s.note("%v", err)
		return
	}
	f.File = file
}

func (s *sweep) times() int {
	if s.Confirm > 0 {
		return s.Confirm
	}
	return 5
}

// scriptLines counts the lines of a script that do something.
func scriptLines(a archive) int {
	n := 0
	for _, l := range a.lines {
		if t := strings.TrimSpace(l); t != "" && !strings.HasPrefix(t, "#") {
			n++
		}
	}
	return n
}

// reducer makes one script shorter while it keeps showing one rule.
type reducer struct {
	*sweep
	ctx   context.Context
	rule  string
	keep  map[string]bool
	id    string
	tries int
	sure  bool // it shows in every run
	brief bool // the end and whole checks only
}

// longest is how many lines a repro may have.
const longest = 25

// thorough is how many findings of one rule are made as short as they get. The
// others differ by situation only, and are cut roughly.
const thorough = 2

// shows runs a script until it shows the rule, at most as often as is tried.
func (x *reducer) shows(a archive) bool {
	if _, err := scenarios.Parse(x.id, x.id, a.text()); err != nil {
		return false
	}
	if x.sure { // what always shows must not become a race
		for range 3 {
			if x.ctx.Err() != nil || !x.once(a) {
				return false
			}
		}
		return true
	}
	for range max(x.tries, 1) {
		if x.ctx.Err() != nil {
			return false
		}
		if x.once(a) {
			return true
		}
	}
	return false
}

func (x *reducer) once(a archive) bool {
	x.take()
	defer x.give()
	e := x.engine
	e.Out = "" // only its verdict matters
	sc, err := scenarios.Parse(x.id, x.id+".txtar", a.text())
	if err != nil {
		return false
	}
	res := e.Run(x.whole, sc)
	return x.whole.Err() == nil && slices.ContainsFunc(found(res), func(g sign) bool { return g.rule == x.rule })
}

func (x *reducer) confirm(a archive, n int) (hits, runs int) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wait.Add(1)
		go func() {
			defer wait.Done()
			if x.ctx.Err() != nil {
				return
			}
			hit := x.once(a)
			mu.Lock()
			defer mu.Unlock()
			runs++
			if hit {
				hits++
			}
		}()
	}
	wait.Wait()
	return hits, runs
}

// shrink takes away what can go: lines, replies and pieces of the model, files.
func (x *reducer) shrink(a archive) archive {
	limit := time.Now().Add(20 * time.Second)
	for round := 0; round < 3; round++ {
		before := string(a.text())
		passes := []func(archive) []func(archive) (archive, bool){x.tail, x.blocks, x.lines, x.turns, x.files}
		if x.brief && scriptLines(a) <= longest {
			passes = passes[:2]
		}
		for _, pass := range passes {
			for _, change := range pass(a) {
				if x.ctx.Err() != nil || time.Now().After(limit) {
					return a
				}
				if shorter, ok := change(a); ok && x.shows(shorter) {
					a = shorter
				}
			}
		}
		if string(a.text()) == before || x.brief {
			break
		}
	}
	return a
}

// tail cuts the end of the script off, the most first.
func (x *reducer) tail(a archive) []func(archive) (archive, bool) {
	var out []func(archive) (archive, bool)
	for _, keep := range []int{50, 70, 85} {
		out = append(out, func(a archive) (archive, bool) {
			at := len(a.lines) * keep / 100
			for at < len(a.lines) && command(a.lines[at]) != "check" {
				at++
			}
			return x.without(a, at, len(a.lines))
		})
	}
	return out
}

// blocks takes checks away with what belongs to them, the last first.
func (x *reducer) blocks(a archive) []func(archive) (archive, bool) {
	var out []func(archive) (archive, bool)
	for i := len(a.lines) - 1; i >= 0; i-- {
		if command(a.lines[i]) != "check" {
			continue
		}
		line := a.lines[i]
		out = append(out, func(a archive) (archive, bool) {
			from := slices.Index(a.lines, line)
			if from < 0 {
				return a, false
			}
			to := from + 1
			for to < len(a.lines) && command(a.lines[to]) != "check" {
				to++
			}
			return x.without(a, from, to)
		})
	}
	return out
}

// lines takes single lines away, the last first. A group goes as a whole.
func (x *reducer) lines(a archive) []func(archive) (archive, bool) {
	var out []func(archive) (archive, bool)
	for i := len(a.lines) - 1; i > 0; i-- {
		back := len(a.lines) - i
		out = append(out, func(b archive) (archive, bool) {
			at := len(b.lines) - back
			if at < 1 {
				return b, false
			}
			to := at + 1
			if strings.HasSuffix(strings.TrimSpace(b.lines[at]), "{") {
				for to < len(b.lines) && strings.TrimSpace(b.lines[to-1]) != "}" {
					to++
				}
			}
			return x.without(b, at, to)
		})
	}
	return out
}

// without is the archive without some lines, as far as they may go, and
// without what the model says to their prompts.
func (x *reducer) without(a archive, from, to int) (archive, bool) {
	out := archive{files: a.files, lines: slices.Clone(a.lines[:from])}
	m := readModel(a.model)
	n, gone := 0, 0
	for _, l := range a.lines[:from] {
		if command(l) == "prompt" {
			n++
		}
	}
	turns := slices.Clone(m.turns)
	group := false
	left := map[string]int{} // of lines that stand several times one has to stay
	for _, l := range a.lines {
		left[l]++
	}
	for _, l := range a.lines[from:to] {
		t := strings.TrimSpace(l)
		if left[l]--; x.keep[l] && (left[l] == 0 || t == "}" || command(l) != "await") || group && t == "}" {
			out.lines = append(out.lines, l)
			if command(l) == "prompt" {
				n++
			}
			group = strings.HasSuffix(t, "{") || group && t != "}"
			continue
		}
		gone++
		if command(l) == "prompt" && n < len(turns) {
			turns = slices.Delete(turns, n, n+1)
		}
	}
	out.lines = append(out.lines, a.lines[to:]...)
	if gone == 0 {
		return a, false
	}
	if len(turns) != len(m.turns) {
		out.model = model{rest: m.rest, turns: turns}.text()
	} else {
		out.model = a.model
	}
	return out, true
}

// turns makes the model say less.
func (x *reducer) turns(a archive) []func(archive) (archive, bool) {
	var out []func(archive) (archive, bool)
	change := func(f func(m *model) bool) {
		out = append(out, func(a archive) (archive, bool) {
			m := readModel(a.model)
			if !f(&m) {
				return a, false
			}
			b := a
			b.model = m.text()
			return b, true
		})
	}
	m := readModel(a.model)
	for t := len(m.turns) - 1; t >= 0; t-- {
		for r := len(m.turns[t].replies) - 1; r >= 0; r-- {
			change(func(m *model) bool { // a whole reply
				if t >= len(m.turns) || r >= len(m.turns[t].replies) || len(m.turns[t].replies) < 2 {
					return false
				}
				m.turns[t].replies = slices.Delete(m.turns[t].replies, r, r+1)
				return true
			})
			for i := len(m.turns[t].replies[r].steps) - 1; i >= 0; i-- {
				change(func(m *model) bool { // a step
					if t >= len(m.turns) || r >= len(m.turns[t].replies) || i >= len(m.turns[t].replies[r].steps) || len(m.turns[t].replies[r].steps) < 2 {
						return false
					}
					m.turns[t].replies[r].steps = slices.Delete(m.turns[t].replies[r].steps, i, i+1)
					return true
				})
				change(func(m *model) bool { // all but one piece of a text
					if t >= len(m.turns) || r >= len(m.turns[t].replies) || i >= len(m.turns[t].replies[r].steps) || len(m.turns[t].replies[r].steps[i].pieces) < 2 {
						return false
					}
					s := m.turns[t].replies[r].steps[i]
					m.turns[t].replies[r].steps[i] = said(s.kind, s.pieces[0])
					return true
				})
			}
		}
	}
	return out
}

// files takes files of the workspace away.
func (x *reducer) files(a archive) []func(archive) (archive, bool) {
	var out []func(archive) (archive, bool)
	for _, f := range a.files {
		out = append(out, func(a archive) (archive, bool) {
			b := a
			b.files = nil
			for _, g := range a.files {
				if g.Name != f.Name {
					b.files = append(b.files, g)
				}
			}
			return b, len(b.files) < len(a.files)
		})
	}
	return out
}
