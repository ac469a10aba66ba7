package invariants

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// modelStop checks that a turn ends for the same reason as the model's last reply. Earlier replies do not count,
// because an agent may ask the model again. A turn that ends with max_tokens after a complete reply breaks only a
// lint: the agent may have used up a budget that it set itself. A turn must not fail after a complete reply, unless the
// editor refused a request of the agent: a tool that fails is shown as failed, and the turn goes on.
func modelStop(w *watch) {
	turns, main := map[*turn]*lastReply{}, map[int64]bool{} // main has the numbers of the requests of the conversation
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
	w.On(func(ev *event) {
		for _, x := range turns {
			x.balked = x.balked || ev.err.Exists()
		}
	}, span(permission, otherOfAgent, answered)...)
	w.onEnd(func(ev *event) { stopped(w, ev, turns) })
}

// stopped checks the stop reason at the end of a turn.
func stopped(w *watch, ev *event, turns map[*turn]*lastReply) {
	x, t := turns[ev.turn], ev.turn
	delete(turns, t)
	if x == nil || x.open || !t.alone() || t.joined > 0 || t.like || t.stopped() || ev.conn.closedIn > 0 {
		return
	}
	x.hidden(w, ev)
	if x.stop == "" {
		w.judge("cut", x.why == "truncate" && ev.stop == "end_turn" && !x.told, ev, fmt.Sprint(t.started),
			[]int{t.started, x.seq},
			"The model's reply broke off, but the turn ended with end_turn without telling the user.")
		return
	}
	w.Saw("other-reason", "said", "claimed", "error", "nothing", "error-after-calls")
	find := func(point, format string, args ...any) {
		w.find(point, ev, fmt.Sprint(t.started), []int{t.started, x.seq}, format, args...)
	}
	if ev.stop == "error" || ev.err.Exists() {
		x.failedAfter(ev.code(), find)
		return
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

// hidden checks that a turn whose last model request failed does not end as if nothing had failed. EMPTY-TURN judges an
// empty turn that ends with end_turn.
func (x *lastReply) hidden(w *watch, ev *event) {
	const limit = "max_turn_requests"
	if t := ev.turn; x.bad >= 400 && (t.spoke || ev.stop == limit) {
		w.judge("failed", (ev.stop == "end_turn" || ev.stop == limit) && !x.told, ev, fmt.Sprint(t.started),
			[]int{t.started, x.seq}, "The model failed with status %d, but the turn ended with %s without telling the "+
				"user.", x.bad, ev.stop)
	}
}

// failedAfter reports that a turn failed after a complete reply, or after one that a limit or a refusal ended. An agent
// may call a cut or refused reply without text a failure of the model. If the editor or the model failed in the turn,
// the agent may have failed with them. A context that is full may end a turn with -32800 too.
func (x *lastReply) failedAfter(code int64, find func(point, format string, args ...any)) {
	switch {
	case x.balked:
	case x.stop == string(fakellm.StopEnd) && x.said != "":
		find("error", "The model's last reply was complete, but the turn failed with an error.")
	case x.stop == string(fakellm.StopEnd) && x.after && !x.calls:
		find("nothing", "After its tool calls the model had nothing to add, but the turn failed with an error instead of "+
			"ending with end_turn.")
	case stopOf[x.stop] != "" && x.spoke && !x.calls && !(x.stop == "length" && code == -32800):
		find("error", "The model stopped with %q, but the turn failed with an error instead of ending with %s.", x.stop,
			stopOf[x.stop])
	case x.stop == string(fakellm.StopTool):
		find("error-after-calls", "The model's last reply was complete and called tools, but the turn failed with an error "+
			"instead of telling the model that a call failed.")
	}
}

// claims reports whether the turn's stop reason is a limit or a refusal that the model did not give. After tool calls,
// max_tokens is allowed: it may come from the agent's own budget.
func (x *lastReply) claims(stop string) bool {
	return x.stop == "end" && stop == "max_tokens" || stopOf[x.stop] == "" && !x.refused && stop == "refusal"
}

// lastReply is the model's last reply in a turn.
type lastReply struct {
	seq          int // Seq of the reply's end
	stop         string
	why          string // why the reply has no stop reason
	said         string // the text of the reply, without white space
	open         bool   // the reply has not ended
	bad          int    // HTTP status of the reply, an error from 400 on
	told         bool   // after the reply, the agent sent a text that is not the model's
	spoke, calls bool   // the reply has text; it has tool calls
	after        bool   // the reply before it has tool calls; empty replies between them do not count
	// refused says that the reply is a refusal. marks says that the model's API can mark a reply as a refusal.
	marks, refused bool
	balked         bool // in the turn, the editor answered a request with an error, or the model sent something broken
}

// next returns the reply that follows x in a turn. x is nil if the reply is the first one.
func (x *lastReply) next(marks bool) *lastReply {
	y := &lastReply{open: true, marks: marks}
	if x != nil {
		y.balked, y.after = x.balked, x.calls || x.after && x.said == ""
	}
	return y
}

// lastReplyOf updates the last reply of a turn from an entry of the model's side.
func lastReplyOf(ev *event, t *turn, turns map[*turn]*lastReply, main map[int64]bool) {
	n, _ := ev.body.Get("n").Int()
	switch {
	case ev.Kind == transcript.ModelRequest && (ev.converses() || ev.body.Get("lane").Is(fakellm.LaneAfter)):
		marks := strings.HasPrefix(ev.body.Get("wire").Str(), "openai-")
		main[n], turns[t] = true, turns[t].next(marks)
	case ev.Kind == transcript.ModelChunk && main[n] && turns[t] != nil:
		if len(turns[t].said) < rememberedText {
			turns[t].said += bare(fakellm.ChunkText(ev.body))
		}
		says := ev.body.Get("says")
		turns[t].refused = turns[t].refused || turns[t].marks && says.Is("refusal")
		turns[t].spoke, turns[t].calls = turns[t].spoke || says.Is("text"), turns[t].calls || says.Is("tool")
	case ev.Kind == transcript.ModelFault && main[n] && turns[t] != nil:
		turns[t].balked = true
	case ev.Kind == transcript.ModelDone && main[n] && turns[t] != nil:
		status, _ := ev.body.Get("status").Int()
		x := turns[t]
		x.seq, x.stop, x.why = ev.Seq, ev.body.Get("stop").Str(), ev.body.Get("why").Str()
		x.open, x.bad, x.told = false, int(status), false
	}
}

// stopOf maps the stop reason of the last model reply to the stop reason that the turn must have.
var stopOf = map[string]string{"length": "max_tokens", "refusal": "refusal"}
