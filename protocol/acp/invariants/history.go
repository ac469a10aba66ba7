package invariants

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/acp-test/acp-test/rules"
)

// loadWindow checks that session/load replays the history, and that the history is complete before the response.
func loadWindow(w *watch) {
	type replay struct{ user, agent int }
	eachReplay(w, func(r *replay, ev *event) {
		if ev.topic == userChunk {
			r.user++
		} else {
			r.agent++
		}
	}, func(r *replay, ev *event) {
		s := ev.session
		w.Saw("late-history", "request")
		because := []int{ev.request.seq}
		if turns := w.state.lives[s.id]; turns > 0 {
			w.Saw("no-history", "no-user-message")
			switch {
			case r.user+r.agent == 0:
				w.find("no-history", ev, "", because, "The session had %s in this transcript, but session/load replayed nothing.",
					count(turns, "finished turn"))
			case r.user == 0:
				w.find("no-user-message", ev, "", because,
					"session/load replayed no user_message_chunk, although the user had spoken.")
			case r.agent == 0:
				w.find("no-history", ev, "", because, "session/load replayed no messages of the agent.")
			}
		}
		for _, t := range s.order {
			if t.first >= ev.request.seq && t.by == byCall {
				// A turn that is still open may have calls that still run.
				w.judge("unfinished-tool", !t.status.final() && len(s.open) == 0, ev, t.id, []int{t.first},
					"The replay ends with tool call %q still %s.", t.id, t.status)
			}
		}
	})
	live := &liveItems{w.version, map[callOf]bool{}, map[string]string{}, map[string]int{}}
	late := func(point string, ev *event, s *session) {
		w.find(point, ev, "", []int{s.restored.seq, s.restSeq},
			"%s came after the response to session/load and before the next prompt.", describe(ev))
	}
	w.inSession(func(ev *event, s *session) {
		if s.loaded() && (ev.topic != toolUpdate || live.ends(ev)) {
			late("late-history", ev, s)
		}
	}, append(messages(), toolCall, toolUpdate)...)
	w.inSession(func(ev *event, s *session) {
		if s.loaded() && live.tells(ev) {
			late("late-plan", ev, s)
		}
	}, planUpdate)
	strayHistory(w, live)
	w.inSession(live.note, toolCall, toolUpdate, planUpdate)
	w.inSession(func(ev *event, s *session) {
		if s.window != nil && s.replaying() && len(s.open) == 0 {
			w.find("request", ev, ev.Method, []int{s.window.seq}, "The agent sent %s while it replayed history.", ev.Method)
		}
	}, agentRequests()...)
}

// loaded reports whether a load of the session has been answered and no prompt has come since then.
func (s *session) loaded() bool {
	return !s.replaying() && s.restored != nil && s.restored.verb == loadSession && len(s.open) == 0
}

// strayHistory checks in which sessions messages of the user and tool calls come during a load: in the session that is
// loaded, in its children, or in others that are loaded or work.
func strayHistory(w *watch, live *liveItems) {
	loads := map[*conn]map[int]string{} // sessions of the open loads, by Seq of the request
	w.On(func(ev *event) {
		if loads[ev.conn] == nil {
			loads[ev.conn] = map[int]string{}
		}
		loads[ev.conn][ev.Seq] = ev.Session
	}, asked(loadSession))
	w.On(func(ev *event) { delete(loads[ev.conn], ev.Ref) }, answered(loadSession))
	idle := func(s *session) bool { return s.window == nil && len(s.open) == 0 && !s.replaying() && !s.child() }
	w.inSession(func(ev *event, s *session) {
		if len(loads[ev.conn]) > 0 {
			w.judge("elsewhere", idle(s), ev, "", slices.Sorted(maps.Keys(loads[ev.conn])),
				"A message of the user came in session %s, while another session was loaded.", s.id)
		}
	}, userChunk)
	w.inSession(func(ev *event, s *session) {
		id := ev.update.Get("toolCallId").Str()
		stray := idle(s) && s.known() && !s.loaded() && !live.has(s.id, id)
		for _, at := range slices.Sorted(maps.Keys(loads[ev.conn])) {
			loaded := loads[ev.conn][at]
			w.judge("elsewhere", stray && live.has(loaded, id), ev, "", []int{at},
				"Tool call %q of session %s came in session %s, while the former was loaded.", id, loaded, s.id)
		}
	}, toolCall)
}

// eachReplay follows the loads of sessions. It calls hear for each content update during a load, and over when a load
// has succeeded. Both get a new R for each load.
func eachReplay[R any](w *watch, hear, over func(*R, *event)) {
	running := map[*session]*R{}
	load := pick(w.version.states, resumeSession, loadSession)
	w.On(func(ev *event) {
		if s := ev.session; s != nil && s.showsHistory(ev) {
			running[s] = new(R)
		}
	}, asked(load))
	w.On(func(ev *event) {
		if s := ev.session; s != nil && s.window != nil && running[s] != nil {
			hear(running[s], ev)
		}
	}, contentUpdates()...)
	w.On(func(ev *event) {
		r := running[ev.session]
		delete(running, ev.session)
		if r != nil && ev.session != nil && ev.succeeded() {
			over(r, ev)
		}
	}, answered(load))
}

// resumeSilent checks that session/resume replays no content, neither before nor after its response.
func resumeSilent(w *watch) {
	w.inSession(func(ev *event, s *session) {
		if len(s.open) > 0 {
			return
		}
		if s.window != nil && s.window.verb == resumeSession {
			w.find("history", ev, "", []int{s.window.seq}, "%s came between session/resume and its response.", describe(ev))
		} else if s.window == nil && s.restored != nil && s.restored.verb == resumeSession {
			w.find("late-history", ev, "", []int{s.restored.seq, s.restSeq},
				"%s came after the response to session/resume and before the next prompt.", describe(ev))
		}
	}, contentUpdates()...)
	w.On(func(ev *event) {
		if ev.succeeded() {
			w.Saw("history", "late-history")
		}
	}, answered(resumeSession))
}

// loadStable checks that two loads of a session replay the same history if no prompt came in between. It compares
// roles, texts and titles of tool calls. The agent may cut a text into other chunks.
func loadStable(w *watch) {
	type replay struct {
		hash  maphash.Hash
		topic topic
	}
	type past struct {
		sum uint64
		seq int
	}
	seed := maphash.MakeSeed()
	last := map[string]past{}
	w.On(func(ev *event) { delete(last, ev.Session) }, asked(prompt), asked(deleteSession))
	eachReplay(w, func(r *replay, ev *event) {
		text := ev.text()
		switch ev.topic {
		case toolUpdate, planUpdate:
			return
		case toolCall:
			text = ev.update.Get("title").Str()
		}
		if r.topic == nothing {
			r.hash.SetSeed(seed)
		}
		if r.topic != ev.topic || ev.topic == toolCall {
			r.topic = ev.topic
			r.hash.WriteByte(0)
			r.hash.WriteByte(byte(ev.topic))
		}
		r.hash.WriteString(text)
	}, func(r *replay, ev *event) {
		if r.topic == nothing {
			r.hash.SetSeed(seed)
		}
		sum := r.hash.Sum64()
		if before, ok := last[ev.Session]; ok {
			w.judge("differs", before.sum != sum, ev, "", []int{before.seq, ev.Ref},
				"Two loads of the session replayed different histories, although no prompt came between them.")
		}
		rules.Remember(last, rememberedSessions, ev.Session, past{sum, ev.Seq})
	})
}
