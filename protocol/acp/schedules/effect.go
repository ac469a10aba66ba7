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

// calls holds the tool calls of a run, as its log shows them.
type calls struct {
	named map[sweep.Effect]map[call]int // by the file they name: the Seq of the first entry
	asked map[call][]int                // the Seqs of their permissions
	reads map[call]bool                 // they say that they change nothing
}

// owes finds the turn's effects on files, and the permission that each depends on. An effect counts only if exactly one
// tool call of the run, of a kind that may change files, names the file, and the agent asks for that call once.
// Otherwise it is unclear what a refusal prevents.
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

// hear records and returns the tool call that a message of the agent is about; the zero value means no call.
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

// name records which of the files an entry about a call names.
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

// behindAny returns the effects that depend on one of the turn's permissions.
func behindAny(s *sweep.Seen) (all []sweep.Effect) {
	for n := range of(s).asked {
		all = append(all, of(s).owed[n+1]...)
	}
	return all
}

// asked returns the options that select the permission request of the point: the file that only this request is about,
// because an agent may ask in any order; else the request's number.
func asked(p sweep.Point) []script.Word {
	if len(p.Files) == 0 {
		return []script.Word{script.Option("nth", p.Nth)}
	}
	return []script.Word{script.Option("about", pattern(p.Files[0])), script.Option("nth", 1)}
}

// pattern returns a regular expression that matches the effect's file name.
func pattern(e sweep.Effect) script.Word { return script.Quote(regexp.QuoteMeta(path.Base(e.File))) }
