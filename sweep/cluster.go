package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
)

// sighting is one occurrence of a defect in a schedule.
type sighting struct {
	sign
	schedule Schedule
	result   results.Result
	known    string // reason why the defect is expected; "" if it is not
	number   int    // number of the schedule, from 1
}

// signature returns the rule, the state and the action of the sighting.
// Findings are distinguished by them.
func (g *sighting) signature() Signature {
	return Signature{g.rule, g.schedule.State, g.schedule.Action}
}

// cause is the key that all sightings of a finding share. For a rule it is the
// violated point. For a check it is the check, the kind of the act before it,
// and the message.
type cause struct {
	rule, point, act, complaint string
	baseline, shared, known     bool
}

func (g *sighting) cause() cause {
	c := cause{rule: g.rule, point: g.point, shared: len(g.schedule.parts) > 0, baseline: g.schedule.Action == "",
		known: g.known != ""}
	if g.point == "" {
		c.act, c.complaint = cmp.Or(g.schedule.Act, g.schedule.Action), varying().ReplaceAllString(g.message, "·")
		if g.schedule.State == DrawnState {
			c.act = "" // which of the acts is to blame is not known yet
		}
	}
	return c
}

// varying matches parts that differ between messages with the same meaning:
// numbers, names and quotations.
var varying = lazy.Regexp(`"[^"]*"|'[^']*'|“[^”]*”|session=\S+|\S*[0-9/]\S*`)

// clusters groups sightings into findings, one per cause. If a cause occurs
// only in runs with a more severe cause, it becomes part of that cause's
// finding.
func clusters(seen []*sighting) []*Finding {
	byCause := map[cause]*Finding{}
	var list []*Finding
	for _, g := range seen {
		k := g.cause()
		f := byCause[k]
		if f == nil {
			f = &Finding{}
			byCause[k] = f
			list = append(list, f)
		}
		f.seen = append(f.seen, g)
	}
	for _, f := range list {
		// The first sighting after sorting represents the finding: the most severe,
		// if possible not a race, with a short script that runs quickly.
		slices.SortStableFunc(f.seen, func(a, b *sighting) int {
			return cmp.Or(cmp.Compare(blame(b.class), blame(a.class)), boolean(a.schedule.Races)-boolean(b.schedule.Races),
				a.cost()-b.cost(), strings.Compare(a.result.ID, b.result.ID))
		})
		f.represent(f.seen[0])
	}
	slices.SortStableFunc(list, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(blame(b.Class), blame(a.Class)), len(b.runs())-len(a.runs()),
			boolean(a.point == "")-boolean(b.point == ""),
			strings.Compare(a.Signature.String(), b.Signature.String()))
	})
	var out []*Finding
next:
	for _, f := range list {
		for _, o := range out {
			if o.covers(f) {
				o.With = append(o.With, f.Rule)
				o.also = append(o.also, f.seen...)
				continue next
			}
		}
		out = append(out, f)
	}
	for _, f := range out {
		slices.Sort(f.With)
		f.With = slices.DeleteFunc(slices.Compact(f.With), func(rule string) bool { return rule == f.Rule })
	}
	return out
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// cost tells how long shrinking the script of a sighting takes: its lines, times
// the seconds of its run divided by patience.
func (g *sighting) cost() int {
	const patience = 4 // so that the load of the machine rarely counts
	return scriptLines(g.text()) * (1 + int(g.result.Duration.Seconds())/patience)
}

// text returns the scenario of a sighting. It is empty if the sighting is from
// a baseline.
func (g *sighting) text() Archive {
	if g.schedule.Action == "" {
		return Archive{}
	}
	return g.schedule.text()
}

// represent copies the fields of a sighting to the finding that it represents.
func (f *Finding) represent(g *sighting) {
	f.Signature, f.Class, f.Message, f.Known = g.signature(), g.class, g.message, g.known
	f.Scenario, f.Point = g.schedule.Scenario, g.schedule.Point
	f.schedule, f.result, f.point, f.late = g.schedule, g.result, g.point, g.late
	f.Seen, f.First = len(f.runs()), f.seen[0].number
	for _, o := range f.seen {
		f.First = min(f.First, o.number)
	}
	places := map[string]int{}
	for _, o := range f.seen {
		if o.schedule.Action != "" && o.signature() != f.Signature {
			places[o.schedule.Action+", "+o.schedule.State]++
		}
	}
	f.Elsewhere = slices.Sorted(maps.Keys(places))
}

// runs returns the ids of the runs that show the finding.
func (f *Finding) runs() map[string]bool {
	return lists.Set(lists.Map(f.seen, func(g *sighting) string { return g.result.ID }))
}

// covers reports whether every run that shows o also shows f, so that o is
// probably a consequence of f. If f is a known failure and o is not, o must
// also be a check, and the log must show f first.
func (f *Finding) covers(o *Finding) bool {
	known := f.Known != "" && o.Known == ""
	if f.Action == "" || f.Known == "" && o.Known != "" || known && (o.point != "" || f.Class != results.Fail) {
		return false
	}
	at := map[string]int{}
	for _, g := range f.seen {
		at[g.result.ID] = g.at
	}
	return !slices.ContainsFunc(o.seen, func(g *sighting) bool {
		first, shown := at[g.result.ID]
		return !shown || known && g.at < first
	})
}

// elsewhere lists the other places where a finding was seen, in one line.
func (f Finding) elsewhere() string {
	const most = 4
	list := f.Elsewhere
	if len(list) <= most {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:most], "; "), len(list)-most)
}
