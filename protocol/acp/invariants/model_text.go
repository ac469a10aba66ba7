package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// modelText checks that the model's text in a turn reaches the editor in that turn, complete, once and in order. An
// agent may cut the text anywhere, change white space between words and add text of its own.
func modelText(w *watch) {
	turns := map[*turn]*hearing.Turn{}
	w.On(func(ev *event) {
		t := w.state.turnOf(ev)
		if ev.Kind == transcript.ModelRequest && t != nil && t.session.id == ev.Session && turns[t] == nil {
			turns[t] = &hearing.Turn{}
		}
		for of, h := range turns {
			if ev.Kind != transcript.ModelRequest {
				h.Say(ev.Entry, ev.body)
			} else if t == nil || t == of {
				listen(h, ev, of)
			}
		}
	}, modelEvent)
	w.On(func(ev *event) {
		if h := turns[ev.turn]; h != nil {
			shown(h, ev)
		}
	}, contentUpdates()...)
	w.onEnd(func(ev *event) {
		h, t := turns[ev.turn], ev.turn
		delete(turns, t)
		if h != nil && h.Clear() && t.alone() && !t.mixed && !t.like && !t.command() {
			heard(w, ev, h)
		}
	})
}

// onEnd calls judge with the entry that ends a turn.
func (w *watch) onEnd(judge func(*event)) {
	if !w.version.states {
		w.On(judge, answered(prompt))
		return
	}
	w.On(func(ev *event) {
		if ev.turn != nil && ev.stop != "" {
			judge(ev)
		}
	}, stateUpdate)
}

// heard judges, at the end of a turn, how the model's text reached the editor. In a stopped turn, the beginning of the
// text is enough. In a turn that failed, the agent must have sent the text on which it made further requests.
func heard(w *watch, ev *event, h *hearing.Turn) {
	judge, t := h.Judge, ev.turn
	if t.cancel != nil && ev.stop == "cancelled" {
		text := h.OwnWords(t.text)
		w.judge("own", text != "", ev, "", []int{t.cancel.seq},
			"After the cancel the agent sent the message %q (without white space), which the model never said.",
			clip(text))
	}
	switch ev.stop {
	case "end_turn", "max_tokens", "max_turn_requests":
	case "cancelled", "refusal":
		judge = h.JudgeCut
	case "":
		if !ev.err.Exists() || t.stopped() {
			return
		}
		judge = h.JudgeFailed
	default:
		return
	}
	if t.stopped() {
		judge = h.JudgeCut
	}
	w.Saw("missing", "joined", "order", "twice", "kind")
	points := [...]string{hearing.Missing: "missing", hearing.Joined: "joined", hearing.Disordered: "order",
		hearing.Doubled: "twice", hearing.Other: "kind"}
	judge(func(what hearing.Fault, request int, format string, args ...any) {
		w.find(points[what], ev, "", []int{request}, format, args...)
	})
}

// onlyTurn returns the open turn if exactly one is open over all connections, else nil.
func (w *world) onlyTurn() *turn {
	if open := w.openTurns(); len(open) == 1 {
		return open[0]
	}
	return nil
}

// turnOfEntry caches the turn of an entry of the model's side, because several rules ask for it.
type turnOfEntry struct {
	seq  int
	turn *turn
}

// turnOf returns the open turn to which an entry of the model's side belongs, or nil if the log does not tell.
func (w *world) turnOf(ev *event) *turn {
	if w.of.seq != ev.Seq {
		w.of = turnOfEntry{ev.Seq, w.findTurn(ev)}
	}
	return w.of.turn
}

func (w *world) findTurn(ev *event) *turn {
	open := w.openTurns()
	if len(open) == 1 {
		return open[0]
	}
	of := lists.Where(open, func(t *turn) bool { return t != nil && t.session.id == ev.Session })
	if len(of) == 1 && !slices.ContainsFunc(open, func(t *turn) bool { return t.likened() }) {
		return of[0]
	}
	return nil
}

// openTurns returns the open turns of all agents that have not exited.
func (w *world) openTurns() (open []*turn) {
	for _, c := range w.conns {
		if c.exited > 0 {
			continue
		}
		if w.version.states {
			for _, s := range c.sessions {
				open = append(open, s.unended()...)
			}
			continue
		}
		for _, r := range c.open {
			if r.by == rules.OfClient && r.verb == prompt {
				open = append(open, r.turn)
			}
		}
	}
	return open
}

// liken marks the open turns that the log may confuse with t. A log finds the turn of a model entry by the prompt in
// that entry. So turns are confused if their prompts or text blocks begin alike, or if they belong to the same session.
func (w *world) liken(t *turn) {
	for _, o := range w.openTurns() {
		if o != nil && (t.session == o.session || t.begins(bare(o.text)) || o.begins(bare(t.text)) ||
			slices.ContainsFunc(t.heads, func(head string) bool { return slices.Contains(o.heads, head) })) {
			t.like, o.like = true, true
		}
	}
}

// likened reports whether entries of the model's side cannot be assigned to the turn with certainty.
func (t *turn) likened() bool { return t == nil || t.like }

// begins reports whether a text without white space contains the beginning of the turn's prompt.
func (t *turn) begins(text string) bool {
	own := bare(t.text)
	return strings.Contains(text, own[:min(len(own), headSize)])
}

// listen passes a model request to h. A request that does not contain the prompt of t makes h unclear: it may be a
// late request for a cancelled turn. listen ignores side jobs, because the user does not see their replies.
func listen(h *hearing.Turn, ev *event, t *turn) {
	if ev.aside() {
		return
	}
	if !asks(ev, t) {
		h.Unclear = true
	}
	if ev.Session == t.session.id && ev.converses() {
		h.Ask(ev.Entry, ev.body)
	}
}

// asks reports whether a model request belongs to turn t. The user's last text must contain the beginning of the
// prompt, or begin like one of the prompt's text blocks. It also returns true if the log lacks the user's text.
func asks(ev *event, t *turn) bool {
	said := ev.body.Get("user")
	text := bare(said.Str())
	return !said.Exists() || t.begins(text) ||
		text != "" && slices.Contains(t.heads, text[:min(len(text), headSize)])
}

// shown passes an update that the editor received to h.
func shown(h *hearing.Turn, ev *event) {
	h.Unclear = h.Unclear || len(ev.Redacted) > 0
	switch ev.topic {
	case agentChunk:
		show, id := h.Show, ev.update.Get("messageId").Str()
		if ev.wholeMessage() {
			show = h.ShowWhole
		}
		if content := ev.update.Get("content"); content.Exists() {
			show(ev.text(), id, ev.turn.stopped())
		}
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
