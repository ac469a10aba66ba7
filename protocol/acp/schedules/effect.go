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

// call is a tool call of a run.
type call struct{ session, id string }

// calls has the tool calls of a run, as the run's log shows them.
type calls struct {
	named map[sweep.Effect]map[call]int // by file and by call that names it: Seq of the first such entry
	asked map[call][]int                // Seqs of the permission requests about each call
	reads map[call]bool                 // whether the agent says that the call changes nothing
}

// owes finds which of the turn's changes to files depend on a permission. A change counts under three conditions:
// exactly one tool call of the run names the file, that call may change files, and the agent asks once about it.
// Otherwise it is unclear what a rejection prevents.
func (s *follower) owes(t *transcript.Transcript) {
	all := calls{map[sweep.Effect]map[call]int{}, map[call][]int{}, map[call]bool{}}
	end := t.Len()
	for e := range t.All() {
		if e.Source == transcript.Agent && e.Ref == s.prompt && ends(e) {
			end = e.Seq
		} else if c := all.hear(e); c.id != "" {
			all.name(c, e, s.effects)
		}
	}
	nth := map[int]int{} // permissions of the turn, by their Seqs
	for e := range t.Between(s.prompt, end) {
		if e.Session == s.session && asksPermission(e) {
			nth[e.Seq] = len(nth) + 1
		}
	}
	for _, f := range s.effects {
		named := all.named[f]
		maps.DeleteFunc(named, func(c call, _ int) bool { return all.reads[c] && len(all.asked[c]) == 0 })
		if len(named) != 1 {
			continue
		}
		for c, first := range named {
			if c.session == s.session && s.prompt < first && first < end {
				s.Made = append(s.Made, f)
			}
			if asked := all.asked[c]; len(asked) == 1 && nth[asked[0]] > 0 {
				s.owed[nth[asked[0]]] = append(s.owed[nth[asked[0]]], f)
			}
		}
	}
}

// asksPermission reports whether an entry is a permission request.
func asksPermission(e transcript.Entry) bool {
	return e.Source == transcript.Agent && e.Kind == transcript.Request && e.Method == "session/request_permission"
}

// hear records and returns the tool call that an entry is about. The zero value means no call.
func (a *calls) hear(e transcript.Entry) call {
	v, c := e.JSON(), call{session: e.Session}
	update := acpframe.Update(e)
	switch {
	case e.Source != transcript.Agent:
	case update == "tool_call" || update == "tool_call_update":
		c.id = v.Path("params.update.toolCallId").Str()
		if kind := v.Path("params.update.kind").Str(); kind != "" {
			a.reads[c] = slices.Contains([]string{"read", "search", "think"}, kind)
		}
	case asksPermission(e):
		c.id = cmp.Or(v.Path("params.toolCall.toolCallId").Str(), v.Path("params.subject.toolCall.toolCallId").Str())
		a.asked[c] = append(a.asked[c], e.Seq)
	}
	return c
}

// name records which of the files the entry e, about call c, names.
func (a *calls) name(c call, e transcript.Entry, files []sweep.Effect) {
	for _, f := range files {
		if !bytes.Contains(e.Raw, []byte(path.Base(f.File))) {
			continue
		}
		if a.named[f] == nil {
			a.named[f] = map[call]int{}
		}
		a.named[f][c] = cmp.Or(a.named[f][c], e.Seq)
	}
}

// behindAny returns the changes to files that depend on a permission of the turn.
func behindAny(s *sweep.Seen) (all []sweep.Effect) {
	for n := range of(s).asked {
		all = append(all, of(s).owed[n+1]...)
	}
	return all
}

// asked returns options that select the permission request of the point. If only this request is about a certain file,
// they name the file, because an agent may ask in any order. Otherwise they give the number of the request.
func asked(p sweep.Point) []script.Word {
	if len(p.Files) == 0 {
		return []script.Word{script.Option("nth", p.Nth)}
	}
	return []script.Word{script.Option("about", pattern(p.Files[0])), script.Option("nth", 1)}
}

// pattern returns a regular expression that matches the effect's file name.
func pattern(e sweep.Effect) script.Word { return script.Quote(regexp.QuoteMeta(path.Base(e.File))) }
