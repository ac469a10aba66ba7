package schedules

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// owes finds out which effects are of the turn of a prompt, and which of them wait for
// which of its permissions: those whose file one tool call of the whole run names and no
// other that may change it does, where the agent asks for that call once. Only of these is known what a
// refusal prevents.
func (s *follower) owes(t *transcript.Transcript) {
	type call struct{ session, id string }
	named := map[sweep.Effect]map[call]int{} // the Seq of the first entry
	asked := map[call][]int{}                // the Seqs of its permissions
	reads := map[call]bool{}                 // it says that it changes nothing
	end := t.Len()
	for e := range t.All() {
		var id string
		update := acpframe.Update(e)
		switch {
		case e.Source != transcript.Agent:
		case e.Ref == s.prompt && ends(e):
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
			if id != "" && bytes.Contains(e.Raw, []byte(path.Base(f.File))) {
				if named[f] == nil {
					named[f] = map[call]int{}
				}
				c := call{e.Session, id}
				named[f][c] = cmp.Or(named[f][c], e.Seq)
			}
		}
	}
	nth := map[int]int{} // permissions of the turn, by their Seqs
	for e := range t.Between(s.prompt, end) {
		if e.Source == transcript.Agent && e.Kind == transcript.Request && e.Session == s.session &&
			e.Method == "session/request_permission" {
			nth[e.Seq] = len(nth) + 1
		}
	}
	for _, f := range s.effects {
		maps.DeleteFunc(named[f], func(c call, _ int) bool { return reads[c] && len(asked[c]) == 0 })
		for c, first := range named[f] {
			if len(named[f]) == 1 && c.session == s.session && s.prompt < first && first < end {
				s.Made = append(s.Made, f)
			}
			if n := len(asked[c]); n == 1 && len(named[f]) == 1 && nth[asked[c][0]] > 0 {
				s.owed[nth[asked[c][0]]] = append(s.owed[nth[asked[c][0]]], f)
			}
		}
	}
}

// behindAny are the effects that wait for a permission of the turn.
func behindAny(s *sweep.Seen) (all []sweep.Effect) {
	for n := range of(s).asked {
		all = append(all, of(s).owed[n+1]...)
	}
	return all
}

// asked tells the permission of the point from others: by the file that it alone is about,
// since which is asked for first is up to the agent, else by its number.
func asked(p sweep.Point) []script.Word {
	if len(p.Files) == 0 {
		return []script.Word{script.Option("nth", p.Nth)}
	}
	return []script.Word{script.Option("about", pattern(p.Files[0])), script.Option("nth", 1)}
}

// pattern is a regular expression for the name of the file.
func pattern(e sweep.Effect) script.Word { return script.Quote(regexp.QuoteMeta(path.Base(e.File))) }
