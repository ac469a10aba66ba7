package sweep

import (
	"context"
	"os"
	"strings"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Order are the ids of the schedules of scenarios in the order in which they run.
func Order(ctx context.Context, w *Sweeper, scs ...*scenarios.Scenario) (order []string, err error) {
	s := newSweep(ctx, w)
	list, err := s.plan(ctx, scs)
	for sch := range s.mixed(list) {
		order = append(order, sch.id())
	}
	return order, err
}

// Explored are the findings of a sweep as they are found, neither confirmed nor
// shrunk.
func Explored(ctx context.Context, w *Sweeper, scs ...*scenarios.Scenario) ([]Finding, error) {
	s := newSweep(ctx, w)
	list, err := s.plan(ctx, scs)
	s.explore(ctx, list)
	var out []Finding
	for _, f := range clusters(s.seen) {
		out = append(out, *f)
	}
	return out, err
}

// Retraced is what retrace finds sure last of a script from which lines were taken, one
// after the other.
func Retraced(script string, sure func(script string) bool, lines ...string) (short string) {
	steps := []step{{script: Split([]byte(script))}}
	for _, line := range lines {
		by := func(a Archive) (Archive, bool) {
			short := strings.Replace(string(a.Text()), line+"\n", "", 1)
			return Split([]byte(short)), short != string(a.Text())
		}
		next, _ := by(steps[len(steps)-1].script)
		steps = append(steps, step{next, by})
	}
	retrace(steps, func(a Archive) bool {
		if !sure(string(a.Text())) {
			return false
		}
		short = string(a.Text())
		return true
	})
	return short
}

// Finished is the repro that is left of a finding once it is settled; "" is none.
func Finished(f Finding) string {
	dir, err := os.MkdirTemp("", "repro-")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	x := &reducer{sweep: newSweep(context.Background(), &Sweeper{Engine: &scenarios.Engine{}, Repro: dir})}
	x.finish(&f, "R-1")
	text, _ := os.ReadFile(reproFile(dir, "R-1"))
	return string(text)
}

// Parted are the numbers of findings of some rules, those to settle first and the others; one of "" is a baseline's.
func Parted(rules ...string) [2][]int {
	var list []*Finding
	for _, rule := range rules {
		f := &Finding{Signature: Signature{Rule: rule, Action: "cancel"}}
		if rule == "" {
			f.Action = ""
		}
		list = append(list, f)
	}
	return parted(list)
}

// Causes is how many findings checks make that missed with these messages in orders of different acts.
func Causes(messages ...string) int {
	var seen []*sighting
	for i, m := range messages {
		sch := Schedule{State: DrawnState, Action: strings.Repeat("cancel ", i+1),
			Write: func(map[string]bool) (Archive, map[string]bool) { return Archive{}, nil }}
		seen = append(seen, &sighting{sign: sign{rule: "ends", class: results.Fail, message: m}, schedule: sch,
			result: results.Result{ID: m}})
	}
	return len(clusters(seen))
}

// Repro is the file that is written for a finding.
func Repro(f Finding, script string) string {
	dir, err := os.MkdirTemp("", "repro-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file, err := writeRepro(dir, "r", Split([]byte(script)), &f)
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Arranged is the order in which schedules run.
var Arranged = arranged

// Sighting is one thing that the run of a schedule showed.
type Sighting struct {
	ID, Rule, Point, Message, State, Action, Known string
	Class                                          results.Verdict
	At                                             int
}

// Clusters are the findings of what was seen.
func Clusters(seen ...Sighting) (out []Finding) {
	var list []*sighting
	for _, g := range seen {
		sch := Schedule{Scenario: "s", State: g.State, Action: g.Action,
			Write: func(map[string]bool) (Archive, map[string]bool) { return Archive{}, nil }}
		if strings.HasPrefix(g.Action, "cancel") {
			sch.Act = "cancel"
		}
		list = append(list, &sighting{sign: sign{rule: g.Rule, point: g.Point, class: g.Class, message: g.Message,
			at: g.At}, schedule: sch, known: g.Known, result: results.Result{ID: g.ID}, number: len(list) + 1})
	}
	for _, f := range clusters(list) {
		out = append(out, *f)
	}
	return out
}

// Unplayable is what becomes of a schedule that is not a scenario: its note, and the
// verdict in the map.
func Unplayable() (note string, verdict results.Verdict) {
	s := newSweep(context.Background(), &Sweeper{Engine: &scenarios.Engine{}})
	s.record(Schedule{Scenario: "s", Point: "p", Action: "a"},
		results.Result{Verdict: results.Error, Reason: "there is no such word"})
	return s.notes[0], s.cells[0].Verdict
}

// Drawn are the orders that a sweep of scenarios would draw, of which none is run.
func Drawn(ctx context.Context, w *Sweeper, scs ...*scenarios.Scenario) (out []Schedule, err error) {
	s := newSweep(ctx, w)
	list, err := s.plan(ctx, scs)
	for sch := range s.mixed(list) {
		out = append(out, sch)
	}
	return out, err
}

// Hasty counts the acts of a script behind a prompt that nothing was awaited after.
func Hasty(script string) int { return hasty(Split([]byte(script))) }
