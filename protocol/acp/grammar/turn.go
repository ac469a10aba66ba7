package grammar

import (
	"github.com/acp-test/acp-test/scenarios/script"
)

// freeTurn is a turn that nothing holds.
func (w *writer) freeTurn(c *convo) {
	t := &turn{convo: c, prompt: w.name("P"), state: "free"}
	w.home = c.dir == ""
	w.prompt(c, t.prompt)
	first, begun := w.before()
	last, how := w.ending(begun)
	w.turns = append(w.turns, turnOf(append(first, last...)...))
	w.ends(t)
	if how == "plain" && c.mode == "" {
		c.solid = true
	}
}

// ends waits for the end of a turn.
func (w *writer) ends(t *turn) {
	w.add("await turn any|error within=60s session=%s", t.name)
}

// heldTurn is a turn that is held in a state, in which acts are done.
func (w *writer) heldTurn(c *convo, s state) {
	t := &turn{convo: c, prompt: w.name("P"), state: s.name}
	if s.ahead != nil {
		s.ahead(w, t)
	}
	w.prompt(c, t.prompt)
	at := len(w.turns)
	w.turns = append(w.turns, turnOf())
	w.turns[at] = w.model(t, s)
	s.await(w, t)
	w.open = append(w.open, t)
	if !w.off("a") {
		n := 1
		if w.has("asides") && w.one(2) {
			n = 2 + w.r.IntN(2)
		}
		for range n {
			w.act(t)
		}
	}
	w.open = w.open[:len(w.open)-1]
	w.letGo(t)
}

// letGo lets go of all that holds a turn up, and waits for its end.
func (w *writer) letGo(t *turn) {
	if t.gone && t.over && t.prompt == "" { // its process is gone
		return
	}
	w.replies(t)
	if t.gate != "" {
		w.add("release %s", t.gate)
	}
	if t.done != "" {
		w.add("write %s ''", t.done)
	}
	if len(t.later) > 0 || t.gone {
		w.add("await response %s within=60s", t.prompt)
	} else {
		w.ends(t)
	}
	for _, name := range t.later {
		w.add("await response %s within=60s", name)
	}
	if !t.over && !t.contested && t.request == "" && !t.gone {
		t.solid = true
	}
}

// replies answers the request that holds a turn. Of a turn that was cancelled the editor has
// answered permissions itself; other requests it owes an answer all the same.
func (w *writer) replies(t *turn) {
	if t.request == "" {
		return
	}
	switch t.state {
	case "permission open":
		if !t.over {
			w.answers(t)
		}
	case "file read open":
		w.add("answer %s %s", t.request, pick(w.r, []script.Word{script.Option("error", "-32603"),
			script.Option("error", "-32002"), script.Option("result", script.Quote(`{"content": "held\n"}`))}))
	case "question open":
		if !t.over {
			w.add("answer %s %s", t.request, script.Option("result", script.Quote(`{"action": "decline"}`)))
		}
	default:
		w.add("answer %s error=-32603", t.request)
	}
}

// notOffered are answers to a permission that are none of its options.
var notOffered = []string{"cancelled", "error=-32603", "id=no-such-option"}

// answers answers the permission of a turn: by an option, or by what is none.
func (w *writer) answers(t *turn) {
	var list []weighted[string]
	for _, how := range notOffered {
		list = append(list, weighted[string]{1, how})
	}
	for _, kind := range w.Tools[t.call.tool].Choices {
		n := 3
		if !w.has("settings") && (kind == "allow_always" || kind == "reject_always") {
			n = 0
		}
		list = append(list, weighted[string]{n, kind})
	}
	how, _ := choose(w.r, list)
	if how == "allow_always" || how == "reject_always" {
		w.asked[t.call.tool] = true
	}
	w.covered(t.state, "answer "+how)
	w.add("answer %s "+how, t.request)
}
