package invariants

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// modelStop checks that a turn ends for the reason for which the model stopped. Only the last reply counts, because
// an agent may ask the model again. An agent may also run out of its own budget, so max_tokens after a whole reply is
// a lint.
func modelStop(w *watch) {
	turns, main := map[*turn]*lastReply{}, map[int64]bool{} // the latter are the requests of the conversation
	w.On(func(ev *event) {
		if t := w.state.turnOf(ev); t != nil && t.session.id == ev.Session {
			lastReplyOf(ev, t, turns, main)
		}
	}, modelEvent)
	w.On(func(ev *event) {
		if x := turns[ev.turn]; x != nil && !strings.Contains(x.said, bare(ev.text())) {
			x.told = true
		}
	}, agentChunk, thoughtChunk, noticeUpdate)
	w.onEnd(func(ev *event) { stopped(w, ev, turns) })
}

// stopped judges the end of a turn.
func stopped(w *watch, ev *event, turns map[*turn]*lastReply) {
	x, t := turns[ev.turn], ev.turn
	delete(turns, t)
	if x == nil || x.open || !t.alone() || t.joined > 0 || t.like || t.stopped() {
		return
	}
	if x.bad >= 400 && t.spoke { // of an empty turn EMPTY-TURN speaks
		w.judge("failed", ev.stop == "end_turn" && !x.told, ev, fmt.Sprint(t.started), []int{t.started, x.seq},
			"The model failed with status %d, but the turn ended with end_turn without telling the user.", x.bad)
	}
	if x.stop == "" {
		w.judge("cut", x.why == "truncate" && ev.stop == "end_turn" && !x.told, ev, fmt.Sprint(t.started),
			[]int{t.started, x.seq},
			"The model's reply broke off, but the turn ended with end_turn without telling the user.")
		return
	}
	w.Saw("other-reason", "said", "claimed")
	find := func(point, format string, args ...any) {
		w.find(point, ev, fmt.Sprint(t.started), []int{t.started, x.seq}, format, args...)
	}
	switch wanted := stopOf[x.stop]; {
	case wanted != "" && ev.stop == "end_turn":
		find("other-reason",
			"The model stopped with %q, but the turn ended with end_turn instead of %s.", x.stop, wanted)
	case x.refused && ev.stop == "end_turn":
		find("said", "The model's reply is a refusal, but the turn ended with end_turn instead of refusal.")
	case x.claims(ev.stop):
		find("claimed", "The turn ended with %s, but the model stopped with %q.", ev.stop, x.stop)
	}
}

// claims reports whether a turn ends for a reason that the model did not give. After tool calls, the token limit may
// be the agent's own.
func (x *lastReply) claims(stop string) bool {
	return x.stop == "end" && stop == "max_tokens" || stopOf[x.stop] == "" && !x.refused && stop == "refusal"
}

// lastReply is the model's last reply in a turn.
type lastReply struct {
	seq  int // of its end
	stop string
	why  string // it has no stop
	said string // the text of the reply, without white space
	open bool   // it goes on
	bad  int    // the status of a failure
	told bool   // the agent has said something of its own since
	// refused says that the reply has a refusal, marks that its format can tell a refusal from a text.
	marks, refused bool
}

// lastReplyOf notes an entry of the model's side about the last reply of a turn.
func lastReplyOf(ev *event, t *turn, turns map[*turn]*lastReply, main map[int64]bool) {
	n, _ := ev.body.Get("n").Int()
	lane := ev.body.Get("lane")
	switch {
	case ev.Kind == transcript.ModelRequest && (lane.Is(fakellm.LaneMain) || lane.Is(fakellm.LaneAfter)):
		marks := strings.HasPrefix(ev.body.Get("wire").Str(), "openai-")
		main[n], turns[t] = true, &lastReply{open: true, marks: marks}
	case ev.Kind == transcript.ModelChunk && main[n] && turns[t] != nil && len(turns[t].said) < rememberedText:
		turns[t].said += bare(fakellm.ChunkText(ev.body))
		turns[t].refused = turns[t].refused || turns[t].marks && ev.body.Get("says").Is("refusal")
	case ev.Kind == transcript.ModelDone && main[n] && turns[t] != nil:
		status, _ := ev.body.Get("status").Int()
		turns[t] = &lastReply{seq: ev.Seq, stop: ev.body.Get("stop").Str(), why: ev.body.Get("why").Str(),
			said: turns[t].said, bad: int(status), refused: turns[t].refused}
	}
}

// stopOf maps the stop reason of the last model reply to that of the turn.
var stopOf = map[string]string{"length": "max_tokens", "refusal": "refusal"}
