// Package schedules tells a sweep of AG-UI runs where a front end can act, which acts it can perform there, and which
// events must follow.
package schedules

import (
	_ "embed"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

//go:embed acts.txt
var table string

// V1 returns the planner of AG-UI.
func V1() *sweep.Planner {
	return acts().Plan(sweep.Planner{
		Protocol: "ag-ui", Prompt: "run", Noun: "run",
		Turns: turns, Look: look,
		Points: func(o sweep.Observed, _ []*sweep.Script, _ *rand.Rand) ([]sweep.Point, int) { return points(o.Seen) },
	}, func(b *sweep.Builder) builder { return builder{b} }, builder.lead)
}

// These are the kinds of points, in the order in which a run reaches them.
const (
	atOnce sweep.PointKind = iota // right after the post
	atEvent
	atGate
	atOther     // while another thread streams text
	atEnd       // at the same time as the end of the run
	atIdle      // after the end of the run
	atInterrupt // while the run waits for the user's answer to an interrupt
	atPending   // while calls of the front end's tools have no result
)

// points returns the points of a run. The second result is how many points were left out because they equal another
// point.
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
		if e.Kind != "RUN_FINISHED" && e.Kind != "RUN_ERROR" { // these are the end of the run
			l.Frame(atEvent, "event", i, counts[e.Kind])
		}
	}
	l.Gates(atGate)
	l.Add(sweep.Point{Name: "another thread streaming", State: "another thread", Kind: atOther, Hold: &all[0],
		Gated: true})
	l.Add(sweep.Point{Name: "racing the end", State: "racing the end", Kind: atEnd, Hold: &all[len(all)-1], Races: true})
	switch {
	case s.End == "interrupt": // the effect of an answer depends on the scenario
		l.Add(sweep.Point{Name: "interrupt", State: "interrupt open", Kind: atInterrupt, Apart: true})
	case facts(s).calls > 0:
		l.Add(sweep.Point{Name: "pending calls", State: "pending calls", Kind: atPending, Apart: true})
	default:
		l.Add(sweep.Point{Name: "idle", State: "idle", Kind: atIdle})
	}
	return l.Sorted()
}

// turns finds the runs that can be swept. All earlier runs must have ended, and the script must not act during the
// run. The notes name the runs that cannot be swept.
func turns(s *sweep.Script) (notes []string) {
	open, nth, begun := 0, 0, map[string]bool{}
	for i, l := range s.Lines {
		switch {
		case s.Looks(l):
		case l.Is("both"), l.Is("beside"):
			return append(notes, s.Unswept(l, "script after", "the line runs two blocks at the same time"))
		case l.Is("kill"), l.Is("signal"), l.Is("post"):
			return notes // later lines are about the end of the agent, or send raw posts
		case l.Is("thread"):
			begun[l.Words[0].Raw()] = true
		case l.Is("run"):
			t := sweep.Turn{Line: i, Nth: nth, Session: "main"}
			words := l.Words
			if len(words) > 0 && begun[words[0].Raw()] && !words[0].Quoted {
				t.Session, words = words[0].Raw(), words[1:]
			}
			t.Opened = begun[t.Session]
			begun[t.Session] = true
			open++
			if !speaks(words) {
				continue // the run continues the model's previous turn
			}
			t.Text, t.Rest = words[0], words[1:]
			nth++
			if why := stands(s, t, open-1); why != "" {
				notes = append(notes, s.Unswept(l, "run on", why))
			} else {
				s.Turns = append(s.Turns, t)
			}
		case l.Is("resume"):
			open++
		default:
			for l := range (&script.File{Lines: s.Lines[i : i+1]}).All() {
				if ends(l) {
					open = max(open-1, 0)
				}
			}
		}
	}
	return notes
}

// speaks reports whether the words of a run line begin with a text of the user. The model script finds its turn by
// this text.
func speaks(words []script.Word) bool {
	return len(words) > 0 && (words[0].Quoted || strings.HasPrefix(words[0].Raw(), "@"))
}

// ended has the names of the patterns for the end of a run.
var ended = []string{"turn", "finished", "error", "interrupt", "cancelled", "refused", "no-stream", "truncated",
	"hung-up", "unreachable"}

// ends reports whether a line waits for the end of a run.
func ends(l *script.Line) bool {
	return l.Is("await") && len(l.Words) > 0 && slices.Contains(ended, l.Words[0].Raw())
}

// stands returns the reason why a run cannot be swept, or "". open is the number of other open runs.
func stands(s *sweep.Script, t sweep.Turn, open int) string {
	switch {
	case open > 0:
		return "another run is open"
	case s.Silent(t.Nth):
		return "the model gives no reply that a gate can hold"
	}
	for _, l := range s.Lines[t.Line+1:] {
		awaits := []*script.Line{l}
		if l.Is("group") {
			awaits = l.Blocks[0]
		}
		switch {
		case s.Looks(l), l.Is("release"):
		case slices.ContainsFunc(awaits, func(l *script.Line) bool { return !l.Is("await") }):
			return "the script acts in it"
		case slices.ContainsFunc(awaits, ends):
			return ""
		}
	}
	return "the script does not wait for its end"
}
