package schedules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/sweep"
)

// These are the kinds of points, in the order in which a turn reaches them.
const (
	atWrite sweep.PointKind = iota // in the same write as the prompt
	atOnce                         // right after the prompt
	atFrame
	atGate
	atPermission
	atRequest
	atTerminal // a command is running in a terminal and does not end by itself
	atTool
	atEnd // at the same time as the end of the turn
	atIdle
	atLoaded
	atSecond // while another session streams text
)

// open reports whether the turn is running at the point, and is held so that it cannot end by itself.
func open(p sweep.Point) bool { return p.Kind < atEnd && p.Hold != nil || p.Kind == atSecond }

// points returns the points of a turn, alone and next to turns of other scenarios. The second result is how many
// points were left out because they equal another point.
func points(o sweep.Observed, others []*sweep.Script, r *rand.Rand) ([]sweep.Point, int) {
	all := o.Seen.Model.Places()
	l := &lister{Lister: sweep.Lister{Seen: o.Seen}, counts: map[string]int{}}
	start, end := &all[0], &all[len(all)-1]
	l.Add(sweep.Point{Name: "with the prompt", State: "same write", Kind: atWrite, Hold: start})
	l.Add(sweep.Point{Name: "0 ms", State: "at once", Kind: atOnce, Hold: start})
	for i := range o.Seen.Frames {
		l.frame(i)
	}
	l.Gates(atGate)
	l.tools()
	l.Add(sweep.Point{Name: "racing the end", State: "racing the end", Kind: atEnd, Hold: end, Races: true})
	// The next points are tried in each scenario, because the effects of tools and the replays differ between
	// scenarios.
	l.Add(sweep.Point{Name: "idle", State: "idle", Kind: atIdle, Apart: true})
	if o.Seen.Able["load"] {
		l.Add(sweep.Point{Name: "after load", State: "loaded", Kind: atLoaded, Apart: true})
	}
	l.Add(sweep.Point{Name: "second session streaming", State: "second session", Kind: atSecond, Hold: start})
	l.Merged(atSecond, r)
	list, same := l.Sorted()
	return append(list, o.Beyond(atSecond, others, beside, r)...), same
}

// lister collects the points of a turn.
type lister struct {
	sweep.Lister
	counts map[string]int // number of frames so far, by kind
}

// frame adds the point after the i-th message of the agent or, if that message is a request, the point while the
// request is unanswered.
func (l *lister) frame(i int) {
	f := l.Seen.Frames[i]
	l.counts[f.Kind]++
	n := l.counts[f.Kind]
	until := slices.Repeat([]string{f.Kind}, n)
	switch {
	case f.Kind == permission:
		p := sweep.Point{Name: fmt.Sprintf("permission %d", n), State: "permission open", Kind: atPermission, Apart: true,
			Hold: f.Hold, Nth: n, Until: until, Files: of(l.Seen).owed[n]}
		if len(p.Files) > 0 {
			p.Until = []string{"permission about~" + pattern(p.Files[0]).String()}
		}
		l.Add(p)
	case f.Asks && n > 1:
		l.Same++
	case f.Asks:
		p := sweep.Point{Name: f.Kind, State: f.Kind + " open", Kind: atRequest, Hold: f.Hold, Until: until}
		p.Several = slices.ContainsFunc(l.Seen.Frames[i+1:], func(o sweep.Frame) bool { return o.Kind == f.Kind })
		l.Add(p)
		if f.Kind == newTerminal {
			l.Add(sweep.Point{Name: "terminal running", State: "terminal running", Kind: atTerminal, Hold: f.Hold, Until: until})
		}
	default:
		p := l.Frame(atFrame, "frame", i, n)
		if f.Kind == "tool_call_update" {
			p.Rank = 0
		}
	}
}

// tools adds the points at which a shell command is running. It adds none if the agent uses terminals, because those
// give the same points.
func (l *lister) tools() {
	if l.counts[newTerminal] > 0 {
		return
	}
	var calls []fakellm.Place
	for r, reply := range l.Seen.Model.Replies {
		for i, st := range reply.Steps {
			if st.Kind == "tool" {
				calls = append(calls, fakellm.Place{Reply: r, Step: i})
			}
		}
	}
	for i, at := range calls {
		if !strings.Contains(l.Seen.Model.Replies[at.Reply].Steps[at.Step].Text, "run_shell") {
			continue
		}
		p := sweep.Point{Name: fmt.Sprintf("tool %d.%d running", at.Reply+1, at.Step+1), State: "tool running", Kind: atTool,
			Alone: i == 0, Until: []string{"tool_call_update status=in_progress"}, Tool: &calls[i]}
		if at.Reply+1 < len(l.Seen.Model.Replies) {
			p.Hold = &fakellm.Place{Reply: at.Reply + 1}
		}
		l.Add(p)
	}
}
