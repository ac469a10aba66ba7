package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// modelText judges that what the model says in a turn comes to the editor in that turn, whole,
// once and in its order. How an agent cuts and spaces a text is its own affair, and so is what
// it adds.
func modelText(w *watch) {
	turns := map[*turn]*hearing.Turn{}
	w.On(func(*event) {
		for _, h := range turns {
			h.Unclear = true // whose text is whose
		}
	}, asked(prompt))
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelRequest {
			if t := w.state.onlyTurn(); t != nil && t.session.id == ev.Session && turns[t] == nil {
				turns[t] = &hearing.Turn{}
			}
		}
		for t, h := range turns {
			listen(h, ev, t)
		}
	}, modelEvent)
	w.On(func(ev *event) {
		if h := turns[ev.turn]; h != nil {
			shown(h, ev)
		}
	}, contentUpdates()...)
	w.On(func(ev *event) {
		h, t := turns[ev.turn], ev.turn
		delete(turns, t)
		if h == nil || !h.Clear() || !t.alone() || t.mixed || t.command() {
			return
		}
		if t.cancel != nil && ev.stop == "cancelled" {
			text := h.OwnWords(t.text)
			w.judge("own", text != "", ev, "", []int{t.cancel.seq},
				"After the cancel came the message %q (without white space), which the model never said.", clip(text))
		}
		if t.cancel != nil || ev.stop != "end_turn" {
			return
		}
		w.Saw("missing", "order", "twice", "kind")
		points := [...]string{hearing.Missing: "missing", hearing.Disordered: "order", hearing.Doubled: "twice",
			hearing.Other: "kind"}
		h.Judge(func(what hearing.Fault, request int, format string, args ...any) {
			w.find(points[what], ev, "", []int{request}, format, args...)
		})
	}, answered(prompt))
}

// onlyTurn is the turn that is open, if there is one only, over all connections.
func (w *world) onlyTurn() *turn {
	var only *turn
	for _, c := range w.conns {
		for _, r := range c.open {
			if r.by != rules.OfClient || r.verb != prompt {
				continue
			}
			if only != nil {
				return nil
			}
			only = r.turn
		}
	}
	return only
}

// listen takes in what the model's side did during the turn.
func listen(h *hearing.Turn, ev *event, t *turn) {
	if ev.Kind != transcript.ModelRequest {
		h.Say(ev.Entry, ev.body)
		return
	}
	// The request of a turn that was cancelled may come when the next one runs.
	if !asks(ev, t) {
		h.Unclear = true
	}
	if ev.Session == t.session.id && ev.body.Get("lane").Is("main") {
		h.Ask(ev.Entry, ev.body)
	}
}

// asks reports whether a request holds the beginning of a turn's prompt as what the user said
// last, if the log has that.
func asks(ev *event, t *turn) bool {
	const enough = 40
	said, text := ev.body.Get("user"), bare(t.text)
	return !said.Exists() || strings.Contains(bare(said.Str()), text[:min(len(text), enough)])
}

// shown takes in what the editor got.
func shown(h *hearing.Turn, ev *event) {
	if !h.Remembers(ev.Entry) {
		return
	}
	h.Unclear = h.Unclear || len(ev.Redacted) > 0
	switch ev.topic {
	case agentChunk:
		h.Show(ev.text(), ev.turn.cancel != nil)
		return
	case thoughtChunk:
		h.Think(ev.text())
		return
	}
	h.Mention(ev.text() + ev.update.Get("title").Str())
	for item := range ev.update.Get("content").Items() {
		h.Mention(item.Get("content").Get("text").Str())
	}
}
