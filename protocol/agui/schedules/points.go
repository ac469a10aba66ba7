package schedules

import "github.com/acp-test/acp-test/sweep"

// The kinds of points, in the order of a run.
const (
	atOnce sweep.PointKind = iota // right behind the post
	atEvent
	atGate
	atOther     // another thread streams
	atEnd       // racing the end
	atIdle      // after it
	atInterrupt // the run waits for an answer of the user
	atPending   // it called tools of the front end
)

// points lists the points of a run.
func points(s *sweep.Seen) ([]sweep.Point, int) {
	all := s.Model.Places()
	if len(all) == 0 {
		return nil, 0
	}
	l := &sweep.Lister{Seen: s}
	l.Add(sweep.Point{Name: "0 ms", State: "at once", Kind: atOnce, Hold: &all[0]})
	counts := map[string]int{}
	for i, e := range s.Frames {
		counts[e.Kind]++
		if e.Kind != "RUN_FINISHED" && e.Kind != "RUN_ERROR" { // that is the end
			l.Frame(atEvent, "event", i, counts[e.Kind])
		}
	}
	l.Gates(atGate)
	l.Add(sweep.Point{Name: "another thread streaming", State: "another thread", Kind: atOther, Hold: &all[0],
		Gated: true})
	l.Add(sweep.Point{Name: "racing the end", State: "racing the end", Kind: atEnd, Hold: &all[len(all)-1], Races: true})
	switch {
	case s.End == "interrupt": // what an answer does differs by scenario
		l.Add(sweep.Point{Name: "interrupt", State: "interrupt open", Kind: atInterrupt, Apart: true})
	case facts(s).calls > 0:
		l.Add(sweep.Point{Name: "pending calls", State: "pending calls", Kind: atPending, Apart: true})
	default:
		l.Add(sweep.Point{Name: "idle", State: "idle", Kind: atIdle})
	}
	return l.Sorted()
}
