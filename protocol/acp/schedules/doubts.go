package schedules

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// These are the doubts that a run can raise: suspicions that its script does not check. A further run checks them.
const (
	swallows = "swallowed" // the agent answered a second prompt without asking the model about it
	clinging = "clings"    // the agent goes on reading the model's reply after a cancel
	unasked  = "unasked"   // a change that needed a permission was made without one
)

// doubts returns a function that finds the suspicions that a run of the schedule raises. It returns nil if the
// schedule can raise none.
func doubts(s sweep.Situation) func(t *transcript.Transcript, effects []sweep.Effect) map[string]bool {
	two, cut, owed := s.Act.Is("swallows"), cuts(s), behindAny(s.Seen)
	effect := len(owed) > 0 && !s.Act.Is("always")
	if !two && !effect && !cut {
		return nil
	}
	return func(t *transcript.Transcript, effects []sweep.Effect) map[string]bool {
		asked := slices.ContainsFunc(slices.Collect(t.All()), asksPermission)
		out := map[string]bool{}
		for question, raised := range map[string]bool{
			swallows: two && swallowed(t), clinging: cut && clings(t),
			unasked: effect && !asked && both(owed, effects),
		} {
			if raised {
				out[question] = true
			}
		}
		return out
	}
}

// doubtful reports whether the run of a chain raised a doubt.
func doubtful(parts []sweep.Schedule, t *transcript.Transcript) bool {
	return swallowed(t) || clings(t) && slices.ContainsFunc(parts, func(s sweep.Schedule) bool { return cuts(s.At) })
}

// cuts reports whether a schedule cancels a turn while a gate holds the model's reply.
func cuts(s sweep.Situation) bool { return s.Point.Gated && open(s.Point) && s.Act.Is("cuts") }

// swallowed reports whether the agent answered a second prompt with end_turn, although it never sent that prompt to
// the model.
func swallowed(t *transcript.Transcript) bool {
	asked := map[int]string{}
	ended, heard := map[string]bool{}, map[string]bool{}
	for e := range t.All() {
		switch {
		case e.Source == transcript.Editor && e.Method == "session/prompt" && e.Kind == transcript.Request:
			if text := furtherText().FindString(string(e.Raw)); text != "" {
				asked[e.Seq] = text
			}
		case e.Source == transcript.Agent && e.Kind == transcript.Response && asked[e.Ref] != "":
			ended[asked[e.Ref]] = e.JSON().Path("result.stopReason").Is("end_turn")
		case e.Source == transcript.Model && e.Kind == transcript.ModelRequest:
			for _, text := range furtherText().FindAllString(string(e.Raw), -1) {
				heard[text] = true
			}
		}
	}
	return lists.Any(maps.Keys(ended), func(text string) bool { return ended[text] && !heard[text] })
}

// clings reports whether, when the run ended, the agent was still reading a model reply that a gate held.
func clings(t *transcript.Transcript) bool {
	held := map[int64]bool{}
	for e := range t.All() {
		n, _ := e.JSON().Get("n").Int()
		switch {
		case e.Kind == transcript.Gate && gateOf(e) == sweep.Hold:
			held[n] = true
		case e.Kind == transcript.ModelAborted || e.Kind == transcript.ModelDone || e.Kind == transcript.GateReleased:
			delete(held, n)
		case e.Kind == transcript.StdinClosed || e.Kind == transcript.Exited:
			return len(held) > 0
		}
	}
	return len(held) > 0
}

// gateOf returns the name of a gate without its number in a chain.
func gateOf(e transcript.Entry) string {
	name, _, _ := strings.Cut(e.JSON().Get("gate").Str(), ".")
	return name
}
