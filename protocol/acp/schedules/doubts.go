package schedules

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/transcript"
)

// doubts are the questions a run raises that its script does not ask: whether
// a second prompt was answered without having been worked on, whether what
// needed a permission before now happened without one, whether the model is
// still being listened to.
func (s schedule) doubts() func(t *transcript.Transcript, effects []string) map[string]bool {
	two := s.action.Name == "second prompt"
	owed := s.behindAny()
	effect := len(owed) > 0 && !strings.Contains(s.action.Name, "always")
	cut := s.cuts()
	if !two && !effect && !cut {
		return nil
	}
	return func(t *transcript.Transcript, effects []string) map[string]bool {
		asked := slices.ContainsFunc(slices.Collect(t.All()), func(e transcript.Entry) bool {
			return e.Source == transcript.Agent && e.Method == "session/request_permission" && e.Kind == transcript.Request
		})
		out := map[string]bool{}
		for question, raised := range map[string]bool{
			"swallowed": two && swallowed(t), "clings": cut && clings(t),
			"unasked": effect && !asked && both(owed, readEffects(effects)),
		} {
			if raised {
				out[question] = true
			}
		}
		return out
	}
}

// cuts reports whether a schedule cancels a turn while a gate holds the model's
// reply.
func (s schedule) cuts() bool {
	return s.point.gated && s.point.open() && strings.HasPrefix(s.action.Name, "cancel")
}

// swallowed reports whether a second prompt was answered with the end of a turn
// although the model never heard of it.
func swallowed(t *transcript.Transcript) bool {
	asked := map[int]string{}
	ended, heard := map[string]bool{}, map[string]bool{}
	for e := range t.All() {
		switch {
		case e.Source == transcript.Editor && e.Method == "session/prompt" && e.Kind == transcript.Request:
			if text := second.FindString(string(e.Raw)); text != "" {
				asked[e.Seq] = text
			}
		case e.Source == transcript.Agent && e.Kind == transcript.Response && asked[e.Ref] != "":
			ended[asked[e.Ref]] = e.JSON().Path("result.stopReason").Is("end_turn")
		case e.Source == transcript.Model && e.Kind == transcript.ModelRequest:
			for _, text := range second.FindAllString(string(e.Raw), -1) {
				heard[text] = true
			}
		}
	}
	for text, end := range ended {
		if end && !heard[text] {
			return true
		}
	}
	return false
}

// clings reports whether the agent kept a reply of the model open that a gate
// held, from the cancel to the end of the run.
func clings(t *transcript.Transcript) bool {
	held := map[int64]bool{}
	for e := range t.All() {
		n, _ := e.JSON().Get("n").Int()
		switch {
		case e.Kind == transcript.Gate && gateOf(e) == hold:
			held[n] = true
		case e.Kind == transcript.ModelAborted || e.Kind == transcript.ModelDone || e.Kind == transcript.GateReleased:
			delete(held, n)
		case e.Kind == transcript.StdinClosed || e.Kind == transcript.Exited:
			return len(held) > 0
		}
	}
	return len(held) > 0
}

// gateOf is the name of a gate without the number it has in a chain.
func gateOf(e transcript.Entry) string {
	name, _, _ := strings.Cut(e.JSON().Get("gate").Str(), ".")
	return name
}
