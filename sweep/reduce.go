package sweep

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
)

// reduce repeats each finding, shortens its schedule as far as possible, and
// writes it to a file. It handles the first finding of each rule before the
// others. If ctx ends, the remaining findings stay unchanged and get no repro.
func (s *sweep) reduce(ctx context.Context) []Finding {
	list := clusters(s.seen)
	slices.SortStableFunc(list, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(blame(b.Class), blame(a.Class)),
			strings.Compare(a.Signature.String(), b.Signature.String()))
	})
	nth := map[string]int{}
	names := make([]string, len(list))
	for i, f := range list {
		nth[f.Rule]++
		names[i] = fmt.Sprintf("%s-%d", f.Rule, nth[f.Rule])
	}
	scripts := make([]*reducer, len(list))
	var done atomic.Int64
	for _, part := range parted(list) {
		each(context.Background(), s, slices.Values(part), func(i int) {
			s.progress("confirm and shrink", int(done.Load()), len(list), names[i], list[i].Class)
			scripts[i] = s.settle(ctx, list[i], names[i])
			s.progress("confirm and shrink", int(done.Add(1)), len(list), names[i], list[i].Class)
		})
	}
	var out []Finding
	for i, f := range list {
		if x := scripts[i]; x != nil {
			if f.Runs > 0 && f.Hits == 0 && ctx.Err() == nil && f.slow() {
				s.note("%s (%s, %s of %s) appeared once, but in none of %d further runs: a single timeout rather shows that "+
					"this machine is busy; transcript: %s",
					f.Rule, f.Action, f.Point, f.Scenario, f.Runs, f.result.Artifacts["transcript"])
				continue
			}
			x.finish(f, names[i])
		}
		out = append(out, *f)
	}
	return out
}

// parted returns two lists of indexes: the first open finding of each rule, and
// all other findings.
func parted(list []*Finding) (parts [2][]int) {
	first := map[string]bool{}
	for i, f := range list {
		later := boolean(!f.open() || first[f.Rule])
		first[f.Rule] = first[f.Rule] || later == 0
		parts[later] = append(parts[later], i)
	}
	return parts
}

// settle confirms and shrinks one finding. It returns the reducer with the
// finding's script, or nil if the finding is not open.
func (s *sweep) settle(ctx context.Context, f *Finding, name string) *reducer {
	if !f.open() {
		return nil
	}
	x := &reducer{sweep: s, ctx: ctx, rule: f.Rule, id: "sweep/reduced/" + slug(name)}
	var sch Schedule
	var a Archive
	first := f.seen[0]
	for i, g := range f.seen[:min(len(f.seen), mostTried)] {
		sch = g.schedule
		sch.probes = s.doubts(sch, g.result)
		x.late, x.heard, x.step = g.late, g.heard, s.brisk(sch.Scenario)
		if !x.late { // a run that timed out says nothing about the time of other lines
			x.step = max(x.step, g.result.Duration)
		}
		a, x.keep = sch.written()
		n := min(s.times(), quick)
		if i > 0 {
			n *= 2 // a race shows more often while other runs go on
		}
		f.represent(g)
		h, runs := x.confirm(a, n)
		f.Hits, f.Runs = h, f.Runs+runs
		if h > 0 {
			f.Runs = runs
			break
		}
		if ctx.Err() != nil {
			break
		}
		if i+1 == len(f.seen) || i+1 == mostTried { // no schedule shows the finding again
			h, runs := x.confirm(a, 2*n)
			f.Hits, f.Runs = h, f.Runs+runs
		}
	}
	if f.Hits == 0 {
		f.represent(first)
		a, x.keep = first.schedule.written()
	}
	if f.Hits > 0 {
		// If a finding does not occur in every run, one failed attempt proves
		// nothing. So a shorter script gets several attempts.
		x.sure = f.Hits == f.Runs
		x.tries = min(max(1, (2*f.Runs+f.Hits-1)/f.Hits-1), 4)
		if sch.Simpler != nil {
			if sch.Scenario == SessionState {
				x.brief = &s.hasty
			}
			sch = x.plainer(sch)
			a, x.keep = sch.written()
			f.schedule, f.Action = sch, sch.Action
		}
		times := s.times()
		if x.late {
			times = min(times, quick) // each run waits until a timeout expires
		}
		a, f.Hits, f.Runs = x.shrunk(a, f.Hits, f.Runs, times)
	}
	x.script = a
	f.Lines = scriptLines(a)
	return x
}

// open reports whether a finding must be confirmed and shrunk. A finding of the
// unchanged scenario needs no repro, because that scenario is one. A known
// finding needs none either.
func (f *Finding) open() bool { return f.Action != "" && f.Known == "" }

// slow reports whether a finding is only an expired timeout, which is no
// failure of the agent.
func (f *Finding) slow() bool {
	return f.Class != results.Fail && (f.late || f.Rule == "EXIT-EOF")
}

// finish writes the repro of a finding. A race may end differently without
// other runs, and users run the repro alone. So finish first repeats a race
// while nothing else runs, and counts how many times the finding occurs.
func (x *reducer) finish(f *Finding, name string) {
	if f.Hits > 0 && f.races() {
		for range x.times() {
			if x.ctx.Err() != nil {
				break
			}
			hit, ran := x.once(x.whole, x.slots, x.script, 0)
			if ran {
				f.AloneRuns++
			}
			if hit {
				f.Alone++
			}
		}
	}
	if x.Repro == "" || f.Runs == 0 { // a finding that was not seen again gets no repro
		return
	}
	f.Command = x.command(reproFile(x.Repro, name))
	file, err := writeRepro(x.Repro, name, x.script, f)
	if err != nil {
		x.note("%v", err)
		return
	}
	f.File = file
}

// races reports whether the finding may depend on the order of simultaneous
// events.
func (f *Finding) races() bool {
	return f.Hits < f.Runs || f.schedule.Races
}

// brisk returns the step timeout while a script is shortened. It is ten times
// the duration of the scenario's baseline run, but at most the agent's step
// timeout.
func (s *sweep) brisk(id string) time.Duration {
	took := 100 * time.Millisecond
	for _, r := range s.baselines {
		if r.ID == id {
			took = max(took, r.Duration)
		}
	}
	return min(10*took, cmp.Or(max(s.engine.StepTimeout, 0), 10*time.Second))
}

func (s *sweep) times() int { return cmp.Or(max(s.Confirm, 0), 20) }

// quick is how many times a schedule runs before it is shortened. mostTried is
// the maximum number of schedules that are tried to make a finding occur again.
const quick, mostTried = 5, 4

// scriptLines counts the commands in a scenario's script.
func scriptLines(a Archive) int {
	return lists.Count(rowsOf(a.Lines), func(r row) bool { return r.line.Kind == script.Command })
}

// command returns the command line that runs a file with the settings of the
// sweep.
func (s *sweep) command(file string) string {
	if s.Command == nil {
		return "acp-test run " + file
	}
	return s.Command(file)
}

// writeRepro writes the scenario file that reproduces a finding.
func writeRepro(dir, name string, a Archive, f *Finding) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the folder for repros: %w", err)
	}
	var head []*script.Line
	comment := func(format string, args ...any) {
		head = append(head, script.NewComment(fmt.Sprintf(format, args...)))
	}
	comment("%s: %s, %s.", f.Rule, f.Action, f.Point)
	comment("Expect a %s of %s, in %s: %s", f.Class, f.Rule, f.often(), sentence(f.Message))
	comment("Found by a sweep of %s. Run it: %s", f.Scenario, f.Command)
	if f.Hits < f.Runs || f.Alone < f.AloneRuns {
		comment("It is a race: run it with --repeat 100, and with a higher --jobs if it does not show.")
	}
	if f.shared() {
		comment("Only sessions that share a process show it. Each session alone shows nothing.")
	}
	head = append(head, &script.Line{Kind: script.Blank})
	lines := a.Lines
	if len(lines) > 0 && lines[0].Kind == script.Comment {
		lines = lines[1:]
	}
	a.Lines = append(head, lines...)
	file := reproFile(dir, name)
	if err := os.WriteFile(file, a.Text(), 0o644); err != nil {
		return "", fmt.Errorf("writing a repro: %w", err)
	}
	return file, nil
}

// reproFile returns the path of the repro with this name.
func reproFile(dir, name string) string { return filepath.Join(dir, name+".txtar") }

// often describes how many times a finding occurred again.
func (f *Finding) often() string {
	if f.AloneRuns > 0 {
		return fmt.Sprintf("%d of %d runs next to others and %d of %d alone", f.Hits, f.Runs, f.Alone, f.AloneRuns)
	}
	return fmt.Sprintf("%d of %d runs", f.Hits, f.Runs)
}

// sentence returns a message as one line that ends with a period. It cuts a
// long message.
func sentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 200
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "…") {
		s += "."
	}
	return s
}
