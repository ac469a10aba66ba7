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

// sighting is one defect that one schedule showed.
type sighting struct {
	sign
	schedule Schedule
	result   results.Result
	known    string // why it is expected
	number   int    // of the schedule, from 1, as they ended
}

// signature returns the rule, the state and the action, by which sightings are
// told apart.
func (g *sighting) signature() Signature {
	return Signature{g.rule, g.schedule.State, g.schedule.Action}
}

// cause is the key that all sightings of one finding have in common: the point
// of a rule; or a check, the kind of act before it, and the complaint.
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
			c.act = "" // which of the acts it follows nobody knows yet
		}
	}
	return c
}

// varying matches text that differs between messages with the same meaning:
// numbers, names, quotations.
var varying = lazy.Regexp(`"[^"]*"|'[^']*'|“[^”]*”|session=\S+|\S*[0-9/]\S*`)

// clusters groups sightings into findings, one for each cause. A cause that
// shows only together with a more severe cause becomes part of the finding of
// the more severe one.
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
		// The shortest schedule that is not a race represents the finding.
		slices.SortStableFunc(f.seen, func(a, b *sighting) int {
			return cmp.Or(cmp.Compare(blame(b.class), blame(a.class)), boolean(a.schedule.Races)-boolean(b.schedule.Races),
				scriptLines(a.text())-scriptLines(b.text()), strings.Compare(a.result.ID, b.result.ID))
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

// text returns the scenario of a sighting; it is empty for a baseline.
func (g *sighting) text() Archive {
	if g.schedule.Action == "" {
		return Archive{}
	}
	return g.schedule.text()
}

// represent makes a sighting the representative of the finding.
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

// runs returns the set of runs that show the finding.
func (f *Finding) runs() map[string]bool {
	return lists.Set(lists.Map(f.seen, func(g *sighting) string { return g.result.ID }))
}

// covers reports whether every run that shows the finding o also shows f. Then
// o is probably only a consequence of f. Of a known failure only a check can be a
// consequence, and only if the log shows the failure first.
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

// elsewhere returns one line about the other places where a finding was seen.
func (f Finding) elsewhere() string {
	const most = 4
	list := f.Elsewhere
	if len(list) <= most {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:most], "; "), len(list)-most)
}
