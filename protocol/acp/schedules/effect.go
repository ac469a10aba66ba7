package schedules

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// effect is a file that a run changed.
type effect struct {
	what string // new, changed or deleted
	file string
}

// readEffects reads effects as a sweep gives them: "new F", "changed F", "deleted F".
func readEffects(list []string) (out []effect) {
	for _, e := range list {
		what, file, _ := strings.Cut(e, " ")
		out = append(out, effect{what, file})
	}
	return out
}

// ofAgent are the effects without those that the script has itself.
func (b *base) ofAgent(effects []effect) []effect {
	return slices.DeleteFunc(effects, func(e effect) bool {
		return slices.ContainsFunc(b.Lines, func(l *script.Line) bool {
			return (l.Is("write") || l.Is("exec")) && strings.Contains(l.String(), path.Base(e.file))
		})
	})
}

// owes finds out which effects are of the turn of a prompt, and which of them wait for
// which of its permissions: those whose file one tool call of the whole run names and no
// other that may change it does, where the agent asks for that call once. Only of these is known what a
// refusal prevents.
func (s *seen) owes(t *transcript.Transcript, prompt int) {
	type call struct{ session, id string }
	named := map[effect]map[call]int{} // the Seq of the first entry
	asked := map[call][]int{}          // the Seqs of its permissions
	reads := map[call]bool{}           // it says that it changes nothing
	end := t.Len()
	for e := range t.All() {
		var id string
		update := acpframe.Update(e)
		switch {
		case e.Source != transcript.Agent:
		case e.Ref == prompt && over(e):
			end = e.Seq
		case update == "tool_call" || update == "tool_call_update":
			id = e.JSON().Path("params.update.toolCallId").Str()
			if kind := e.JSON().Path("params.update.kind").Str(); kind != "" {
				reads[call{e.Session, id}] = slices.Contains([]string{"read", "search", "think"}, kind)
			}
		case e.Kind == transcript.Request && e.Method == "session/request_permission":
			id = cmp.Or(e.JSON().Path("params.toolCall.toolCallId").Str(),
				e.JSON().Path("params.subject.toolCall.toolCallId").Str())
			c := call{e.Session, id}
			asked[c] = append(asked[c], e.Seq)
		}
		for _, f := range s.effects {
			if id != "" && bytes.Contains(e.Raw, []byte(path.Base(f.file))) {
				if named[f] == nil {
					named[f] = map[call]int{}
				}
				c := call{e.Session, id}
				named[f][c] = cmp.Or(named[f][c], e.Seq)
			}
		}
	}
	nth := map[int]int{} // permissions of the turn, by their Seqs
	for e := range t.Between(prompt, end) {
		if e.Source == transcript.Agent && e.Kind == transcript.Request && e.Session == s.session &&
			e.Method == "session/request_permission" {
			nth[e.Seq] = len(nth) + 1
		}
	}
	for _, f := range s.effects {
		maps.DeleteFunc(named[f], func(c call, _ int) bool { return reads[c] && len(asked[c]) == 0 })
		for c, first := range named[f] {
			if len(named[f]) == 1 && c.session == s.session && prompt < first && first < end {
				s.made = append(s.made, f)
			}
			if n := len(asked[c]); n == 1 && len(named[f]) == 1 && nth[asked[c][0]] > 0 {
				s.owed[nth[asked[c][0]]] = append(s.owed[nth[asked[c][0]]], f)
			}
		}
	}
}

// behindAny are the effects that wait for a permission of the turn.
func (s schedule) behindAny() (all []effect) {
	for n := range s.seen.asked {
		all = append(all, s.seen.owed[n+1]...)
	}
	return all
}

// asked is what tells the permission of the point from others: the file that it
// alone is about, since which is asked for first is up to the agent, else its number.
func (p Point) asked() []script.Word {
	if len(p.files) == 0 {
		return []script.Word{script.Option("nth", p.nth)}
	}
	return []script.Word{script.Option("about", p.files[0].pattern()), script.Option("nth", 1)}
}

// pattern is a regular expression for the name of the file.
func (e effect) pattern() script.Word { return script.Quote(regexp.QuoteMeta(path.Base(e.file))) }
