package invariants

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// callIDs checks that a new tool call does not have the id of a call that ended in an earlier turn, or before a resume
// on another connection. It judges only turns in which the model called tools with ids that it had not given before,
// because an agent may pass on the ids of the model.
type callIDs struct {
	*watch
	places map[int]string            // by number, the place in the script of a model request
	first  map[string]*turn          // by place, the first turn whose model called tools there
	fresh  map[*turn]bool            // whether all calls of the model in an open turn have new ids
	ended  map[string]map[string]int // by session and id, the Seq of the end of each call; over all connections
}

func newCallIDs(w *watch) *callIDs {
	x := &callIDs{w, map[int]string{}, map[string]*turn{}, map[*turn]bool{}, map[string]map[string]int{}}
	w.On(x.model, modelEvent)
	w.onEnd(func(ev *event) { delete(x.fresh, ev.turn) })
	w.On(func(ev *event) { delete(x.ended, ev.Session) }, asked(loadSession), answered(newSession),
		answered(deleteSession))
	w.inTurn(x.ends, toolCall, toolUpdate)
	return x
}

// model notes whether the calls in a reply of the model have new ids. The fake model derives an id from the place in
// its script, and a script may give ids of its own.
func (x *callIDs) model(ev *event) {
	prompt, _ := ev.body.Get("prompt").Int()
	switch steps := ev.body.Get("steps"); {
	case ev.Kind == transcript.ModelRequest && prompt > 0:
		rules.Remember(x.places, rememberedRequests, ev.number(), fmt.Sprint(ev.body.Get("run").Str(), " ",
			ev.body.Get("lane").Str(), " ", prompt))
	case ev.Kind == transcript.ModelAnswer && len(made(steps)) > 0:
		t, place := x.state.turnOf(ev), x.places[ev.number()]
		if t == nil {
			return
		}
		if x.first[place] == nil {
			rules.Remember(x.first, rememberedRequests, place, t)
		}
		named := false
		for step := range steps.Items() {
			named = named || strings.Contains(step.Str(), "\nid: ")
		}
		fresh, again := x.fresh[t]
		fresh = (fresh || !again) && !named && place != "" && x.first[place] == t
		rules.Remember(x.fresh, rememberedRequests, t, fresh)
	}
}

// ends stores the id of a call that ends in a turn.
func (x *callIDs) ends(ev *event, t *turn) {
	if id := ev.update.Get("toolCallId").Str(); x.version.readStatus(ev.update.Get("status")).final() {
		if x.ended[ev.Session] == nil {
			rules.Remember(x.ended, rememberedSessions, ev.Session, map[string]int{})
		}
		if x.ended[ev.Session] != nil {
			rules.Remember(x.ended[ev.Session], rememberedTools, id, ev.Seq)
		}
	}
}

// reused judges a tool_call. It returns true if it has reported the call.
func (x *callIDs) reused(ev *event) bool {
	s, t, id := ev.session, ev.tool, ev.update.Get("toolCallId").Str()
	if s == nil || s.window != nil || ev.turn == nil || !ev.turn.alone() || !x.fresh[ev.turn] {
		return false
	}
	if t == nil {
		at := x.ended[s.id][id]
		return x.judge("earlier", at > 0 && at < s.named && s.resumed, ev, id, []int{at, s.named},
			"After session/resume a tool_call has the id %q of a tool call that had ended before.", id) != nil
	}
	earlier := t.status.final() && (t.turn == nil || t.earlierThan(ev.turn))
	return x.judge("earlier", earlier && t.by == byCall, ev, id, []int{t.first},
		"A tool_call has the id %q of a tool call of an earlier turn, which had %s.", id, ending(t.status)) != nil
}
