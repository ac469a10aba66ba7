package invariants

import (
	"hash/maphash"
	"slices"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// toolClosed reports tool calls that are unfinished when their turn ends. Calls that continued in the background get
// another point, so the report is made at the end of the transcript.
func toolClosed(w *watch) {
	const candidates = 1 << 12
	type left struct {
		tool    *tool
		session *session
		status  status
		ended   int
		stop    string
	}
	var all []left
	w.onEnd(func(ev *event) {
		t := ev.turn
		if t == nil || ev.goesOn() {
			return
		}
		for _, tool := range t.tools {
			if tool.by != byCall {
				continue
			}
			w.Saw(pick(ev.stop == "end_turn", "open-at-end-turn", "open-at-other-end"))
			if !tool.status.final() && len(all) < candidates {
				all = append(all, left{tool, t.session, tool.status, ev.Seq, pick(ev.err.Exists(), "an error", ev.stop)})
			}
		}
	})
	w.AtEnd(func(rules.End) {
		for _, l := range all {
			conn, session, id := l.session.conn.n, l.session.id, l.tool.id
			entries := []int{l.tool.first, l.ended}
			switch {
			case l.tool.blamed:
			case l.tool.seq > l.ended:
				w.Report("background", conn, session, id, append(entries, l.tool.seq),
					"Tool call %q continued as background work after its turn had ended.", id)
			case l.stop == "end_turn":
				w.Report("open-at-end-turn", conn, session, id, entries,
					"Tool call %q was still %s when its turn ended with end_turn.", id, l.status)
			default:
				w.Report("open-at-other-end", conn, session, id, entries, "Tool call %q was left %s when its turn ended with %s.",
					id, l.status, l.stop)
			}
		}
	})
}

// toolAnnounced checks that the agent announces a tool call before other messages name it.
func toolAnnounced(w *watch) {
	// A resumed session may continue calls of an earlier process. If the world has forgotten calls, the rule cannot
	// tell whether a call was announced.
	blind := func(s *session) bool { return s == nil || s.resumed || s.evicted }
	w.On(func(ev *event) {
		id := ev.update.Get("toolCallId")
		if ev.session == nil || id.Kind() != wire.String {
			return
		}
		w.Saw("unannounced", "elsewhere")
		t := ev.tool
		switch {
		case t == nil && (blind(ev.session) || elsewhere(w, ev, id)):
		case t == nil:
			w.find("unannounced", ev, id.Str(), nil, "The tool_call_update of %q has no tool_call before it.", id.Str())
		case t.by == byUpdate:
			w.find("unannounced", ev, t.id, []int{t.first}, "The tool_call_update of %q has no tool_call before it.", t.id)
		case t.by == byPermission:
			w.find("only-in-permission", ev, t.id, []int{t.first},
				"Tool call %q was announced by a permission request only, not by a tool_call.", t.id)
		}
	}, toolUpdate)
	w.On(func(ev *event) {
		id := ev.params.Path(w.version.call).Get("toolCallId")
		unknown := id.Kind() == wire.String && ev.tool == nil && !blind(ev.session)
		w.judge("permission-first", unknown && !elsewhere(w, ev, id), ev, id.Str(), nil,
			"The permission request is about tool call %q, which no tool_call has announced.", id.Str())
	}, asked(permission))
	w.On(func(ev *event) {
		id := ev.params.Get("toolCallId")
		if id.Kind() != wire.String {
			return
		}
		w.judge("elicitation-first", ev.session != nil && ev.session.tool(id) == nil && !blind(ev.session), ev, id.Str(), nil,
			"The elicitation is about tool call %q, which no tool_call has announced.", id.Str())
	}, asked(elicit))
}

// elsewhere reports whether an idle session names a tool call that runs in another session. If so, it also reports a
// finding.
func elsewhere(w *watch, ev *event, id wire.Value) bool {
	s := ev.session
	if s.atWork() || s.child() || s.window != nil {
		return false
	}
	for _, o := range ev.conn.sessions {
		if t := o.announced(id); t != nil && t.by == byCall && !t.status.final() && o.atWork() && !o.within(s) {
			t.blamed = true
			w.find("elsewhere", ev, t.id, []int{t.first}, "Session %s has no open turn, but names tool call %q, which "+
				"runs in session %s.", s.id, t.id, o.id)
			return true
		}
	}
	return false
}

// toolResend checks that two tool calls do not share an id.
func toolResend(w *watch) {
	ids := newCallIDs(w)
	w.On(func(ev *event) {
		w.Saw("ended", "another")
		t, input := ev.tool, inputOf(ev.update)
		switch {
		case t != nil && (t.by != byCall || blurred(ev)):
		case t != nil && t.status.final() && t.input != 0 && input != 0 && input != t.input:
			w.find("another", ev, t.id, []int{t.first}, "A tool_call with other input has the id %q of a tool call that had %s.",
				t.id, ending(t.status))
		case ids.reused(ev) || t == nil:
		case t.status.final():
			w.find("ended", ev, t.id, []int{t.first}, "A second tool_call has the id %q of a tool call that had %s.", t.id,
				ending(t.status))
		case t.turn != ev.turn:
			w.find("ended", ev, t.id, []int{t.first}, "A tool_call has the id %q of a tool call of another turn.", t.id)
		default:
			w.find("running", ev, t.id, []int{t.first},
				"A second tool_call has the id %q of a tool call that still runs: send tool_call_update instead.", t.id)
		}
	}, toolCall)
}

// inputHash gives the hashes of tools their seed.
var inputHash = maphash.MakeSeed()

// inputOf returns a hash of the input of the tool call that an update is about, or 0 if the update has no input.
func inputOf(update wire.Value) uint64 {
	input := update.Get("rawInput")
	if input.Kind() != wire.Object || input.Len() == 0 {
		return 0
	}
	return maphash.Bytes(inputHash, input.Raw())
}

// blurred reports whether an update of a tool call may be part of a replay: the client requested a load during the
// call's turn, or the turn ended while the load was running.
func blurred(ev *event) bool {
	s := ev.session
	return ev.turn != nil && ev.turn.mixed || s != nil && s.replaying() && s.last != nil && s.last.mixed
}

func ending(s status) string { return pick(s == calledOff, "been cancelled", s.String()) }

// afterEnd checks that a tool call does not change after its end.
func afterEnd(w *watch) {
	w.On(func(ev *event) {
		t, next := ev.tool, w.version.readStatus(ev.update.Get("status"))
		if t == nil || !t.status.final() || next != unsaid && next != t.status || blurred(ev) || ev.turn == nil {
			return
		}
		changes := slices.ContainsFunc([]string{"content", "title", "rawInput", "kind"}, func(key string) bool {
			return ev.update.Get(key).Exists()
		})
		w.judge("after-end", changes, ev, t.id, []int{t.first},
			"The agent changed tool call %q after the call had ended as %s.", t.id, t.status)
	}, toolUpdate)
}

// reportReplayedEnd reports a call whose status changed after a replay had shown the call as ended. The load ran during
// the call's turn. It returns true if it has reported the call.
func (w *watch) reportReplayedEnd(ev *event, next status) bool {
	t := ev.tool
	if !t.replayed || !t.status.final() || next == t.status || ev.turn == nil || !ev.turn.mixed ||
		ev.session.replaying() || w.version.states {
		return false
	}
	w.find("replayed-end", ev, t.id, []int{t.seq}, "The replay showed tool call %q as %s, but afterwards the agent "+
		"changed its status to %s. A replay must show a running call as running.", t.id, t.status, next)
	return true
}

// earlierThan reports whether the call belongs to another turn than current, and that turn has ended.
func (t *tool) earlierThan(current *turn) bool {
	return t.turn != nil && t.turn.ended > 0 && current != nil && current != t.turn
}

// statusForward checks that the status of a tool call never goes back.
func statusForward(w *watch) {
	afterEnd(w)
	w.On(func(ev *event) {
		t, next := ev.tool, w.version.readStatus(ev.update.Get("status"))
		if t == nil || next == unsaid || next == unknownStatus || t.status == unsaid || w.reportReplayedEnd(ev, next) ||
			blurred(ev) {
			return
		}
		w.Saw("back", "ended-restarts")
		switch {
		case t.status.final() && !next.final() && t.earlierThan(ev.turn) && !w.version.states:
			t.blamed = true
			w.find("ended-restarts", ev, t.id, []int{t.first}, "Tool call %q of an earlier turn had %s, but its status is now "+
				"%s. A new call needs a new toolCallId.", t.id, ending(t.status), next)
		case next < t.status && next != completed || t.status.final() && next.final() && next != t.status:
			w.find("back", ev, t.id, []int{t.first}, "The status of tool call %q went from %s to %s.", t.id, t.status, next)
		case t.status == pending && next == completed && ev.turn != nil:
			w.find("no-in-progress", ev, t.id, []int{t.first},
				"Tool call %q went from pending to completed without in_progress.", t.id)
		case next == completed:
			w.Saw("no-in-progress")
		}
	}, toolUpdate)
}
