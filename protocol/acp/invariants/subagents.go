package invariants

import (
	"slices"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// subagents checks how an agent shows the child sessions to which it delegates work. Updates of two sessions may come
// in any order, but a child must be announced first.
func subagents(w *watch) {
	v := w.version
	w.announcements()
	w.childrenNamed()
	w.inSession(func(ev *event, _ *session) {
		id := ev.update.Get("sessionId").Str()
		w.childPlaces(ev, id)
		if state := ev.update.Get("state"); id != "" && state.Get("state").Is("idle") {
			w.judge("no-reason", !isSet(state.Get("stopReason")), ev, id, nil, "Child %q is idle without a stopReason.",
				id)
		}
	}, subagentUpdate)
	w.inSession(func(ev *event, s *session) {
		if !s.child() {
			return
		}
		w.Saw("after-stop", "replayed-question")
		if at, how := s.stopped(); at > 0 {
			w.find("after-stop", ev, s.id, []int{at}, "The agent sent %s for child %q after %s.", ev.Method, s.id, how)
		}
		if root := s.root(); root.window != nil {
			w.find("replayed-question", ev, s.id, []int{root.window.seq},
				"The replay repeats the request %s for child %q.", ev.Method, s.id)
		}
	}, asked(permission), asked(elicit))
	w.inSession(func(ev *event, s *session) {
		id := ev.params.Path(v.call + ".toolCallId")
		for _, other := range ev.conn.sessions {
			if other.child() && other != s {
				w.judge("elsewhere", other.calls(id) && !s.calls(id), ev, id.Str(), nil,
					"The agent asked to permit tool call %q of child %q in session %q.", id.Str(), other.id, s.id)
			}
		}
	}, asked(permission))
	w.childrenRunning()
	w.childrenAgain()
	w.childStates()
	w.On(func(ev *event) {
		for item := range ev.result.Get("sessions").Items() {
			id := item.Get("sessionId").Str()
			if s := ev.conn.sessions[id]; s.child() {
				w.find("listed", ev, id, []int{s.lineage.announced},
					"The list has session %q, which is a child of another session.", id)
			}
		}
	}, answered(listSessions))
	w.inSession(func(ev *event, s *session) {
		w.judge("obeyed", s.child() && ev.succeeded(), ev, s.id, []int{s.lineage.announced, ev.Ref},
			"The agent carried out %s for child %q.", ev.Method, s.id)
	}, answered(prompt), answered(setMode), answered(setOption))
}

// announcements checks the place of each announced child in the tree of sessions.
func (w *watch) announcements() {
	w.inSession(func(ev *event, parent *session) {
		id := ev.update.Get("sessionId").Str()
		s := ev.conn.session(id)
		if s == nil || id == "" {
			return
		}
		w.Saw("early", "moved", "taken")
		l := s.lineage
		switch {
		case l.announced == 0 && s.created+s.restSeq > 0:
			w.find("taken", ev, id, nil, "The agent announces %q as a child, but the client opened this session.", id)
		case parent.within(s):
			w.find("moved", ev, id, nil, "The agent makes session %q a child of itself or of its own child.", id)
		case l.announced == 0 && s.first > 0 && ev.conn.initAsked > 0:
			w.find("early", ev, id, []int{s.first}, "The agent used child session %q before announcing it.", id)
		case l.announced > 0 && l.parent != parent:
			w.find("moved", ev, id, []int{l.announced},
				"Session %q is a child of %q, but the agent announces it as a child of %q.", id,
				l.parent.name(), parent.id)
		}
	}, subagentUpdate)
}

// childrenNamed checks that no message names a child before its announcement.
func (w *watch) childrenNamed() {
	named := func(ev *event, id wire.Value, what string) {
		if id.Kind() != wire.String || ev.conn.initAsked == 0 {
			return
		}
		s := ev.conn.session(id.Str())
		w.judge("early", s != nil && !s.acquainted(), ev, id.Str(), nil,
			"%s names session %q, which the agent had not announced.", what, id.Str())
	}
	items := func(member, kind, what string, topics ...topic) {
		w.On(func(ev *event) {
			for item := range ev.update.Get(member).Items() {
				if item.Get("type").Is(kind) {
					named(ev, item.Get("sessionId"), what)
				}
			}
		}, topics...)
	}
	w.On(func(ev *event) {
		named(ev, ev.update.Get("senderSessionId"), "A message's sender")
		named(ev, ev.update.Get("recipientSessionId"), "A message's recipient")
	}, sessionMessage)
	items("content", "session", "The content of a tool call", toolCall, toolUpdate)
	items("background", "subagent", "The list of background work", stateUpdate)
}

// childPlaces checks the directories of a child.
func (w *watch) childPlaces(ev *event, id string) {
	dirs := []wire.Value{ev.update.Get("cwd")}
	dirs = slices.AppendSeq(dirs, ev.update.Get("additionalDirectories").Items())
	for _, dir := range dirs {
		if dir.Kind() == wire.String && id != "" {
			w.judge("cwd", !isAbsolute([]byte(dir.Str())), ev, id, nil, "The directory %q of child %q is not absolute.",
				dir.Str(), id)
		}
	}
}

// childrenRunning checks that the agent reports a working child as running.
func (w *watch) childrenRunning() {
	worked := map[*session]int{}
	var order []*session
	w.inSession(func(ev *event, s *session) {
		if s.child() && s.root().window == nil && worked[s] == 0 {
			worked[s], order = ev.Seq, append(order, s)
		}
	}, agentChunk, thoughtChunk, toolCall)
	w.AtEnd(func(end rules.End) {
		for _, s := range order {
			if w.Saw("no-state"); end.Clean && s.lineage.running == 0 {
				w.Report("no-state", s.conn.n, s.id, "", []int{s.lineage.announced, worked[s]},
					"Child %q worked, but the agent never reported it as running.", s.id)
			}
		}
	})
}

// childrenAgain checks that the agent announces a working child again after a load or resume. The announcement must
// repeat the child's capabilities.
func (w *watch) childrenAgain() {
	owed := map[*session]int{}
	w.inSession(func(ev *event, s *session) {
		for _, c := range ev.conn.sessions {
			works := c.lineage.state == "running" || c.lineage.state == "requires_action"
			if works && c.child() && c.within(s) && ev.succeeded() {
				owed[c] = ev.Seq
			}
		}
	}, answered(loadSession), answered(resumeSession))
	w.On(func(ev *event) {
		named := ev.conn.sessions[ev.update.Get("sessionId").Str()]
		if at := owed[named]; ev.topic == subagentUpdate && at > 0 {
			w.judge("not-again", named.lineage.revocable && !ev.update.Get("capabilities").Exists(), ev, named.id, []int{at},
				"The first update about child %q after the load or resume has no capabilities.", named.id)
			delete(owed, named)
		}
		if at := owed[ev.session]; at > 0 && ev.Source == transcript.Agent {
			w.find("not-again", ev, ev.session.id, []int{at},
				"Child %q continued after the load or resume, but the agent did not announce it again.", ev.session.id)
			delete(owed, ev.session)
		}
	}, agentCalls()...)
}

// childStates checks the states of children in version 2. The child's own session reports its state, and the parent's
// session repeats that state.
func (w *watch) childStates() {
	told := map[*session]bool{}
	var idle []*session
	w.inSession(func(ev *event, s *session) {
		told[s] = true
		ends := s.child() && s.root().replay == nil && ev.update.Get("state").Is("idle")
		if ends && !slices.Contains(idle, s) {
			idle = append(idle, s)
		}
	}, stateUpdate)
	w.inSession(func(ev *event, s *session) {
		if s.child() && s.root().replay == nil {
			w.judge("no-own-state", !told[s], ev, s.id, []int{s.lineage.announced},
				"Child %q works, but the agent sent no state_update for it.", s.id)
		}
	}, agentChunk, thoughtChunk)
	w.AtEnd(func(end rules.End) {
		for _, s := range idle {
			if w.Saw("not-mirrored"); end.Clean && s.state == "idle" && s.lineage.state != "idle" {
				w.Report("not-mirrored", s.conn.n, s.id, "", []int{s.stateSeq},
					"Child %q is idle, but its parent session does not report that.", s.id)
			}
		}
	})
}

// acquainted reports whether the editor may know the id of the session.
func (s *session) acquainted() bool { return s.known() || s.listed || s.addressed }

// root returns the session at the top of the tree, which a client opened.
func (s *session) root() *session {
	for range rememberedTools {
		if s.lineage.parent == nil {
			break
		}
		s = s.lineage.parent
	}
	return s
}

// calls reports whether the session has a tool call with the given id.
func (s *session) calls(id wire.Value) bool {
	_, v2 := s.items[callID(id.Str())]
	return v2 || s.announced(id) != nil
}

// clientSubagents checks a client's requests about children.
func clientSubagents(w *watch) {
	cancelled := map[*request]int{}
	stop := func(ev *event, s *session) {
		for _, p := range ev.conn.open {
			if p.verb == permission && p.session.child() && p.session.within(s) {
				cancelled[p] = ev.Seq
			}
		}
	}
	w.inSession(func(ev *event, s *session) {
		w.judge("request", s.child(), ev, ev.Method, []int{s.lineage.announced},
			"The client sent %s for %q, which is a child that the agent announced.", ev.Method, s.id)
	}, asked(prompt), asked(loadSession), asked(resumeSession), asked(forkSession), asked(closeSession),
		asked(deleteSession), asked(setMode), asked(setOption))
	w.inSession(stop, asked(closeSession))
	w.inSession(func(ev *event, s *session) {
		if s.child() {
			w.judge("cancel", !s.lineage.revocable, ev, s.id, []int{s.lineage.announced},
				"The client cancelled child %q, but the agent had not offered to cancel it.", s.id)
			w.judge("cancel-withdrawn", s.lineage.revocable && !s.lineage.cancellable, ev, s.id, []int{s.lineage.announced},
				"The client cancelled child %q after the agent had withdrawn the offer to cancel it.", s.id)
		}
		stop(ev, s)
	}, cancelTold)
	w.On(func(ev *event) {
		if at := cancelled[ev.request]; at > 0 {
			w.judge("outcome", allows(ev), ev, "", []int{at, ev.Ref},
				"The client allowed a permission request of child %q after it had cancelled the work.",
				ev.request.session.id)
			delete(cancelled, ev.request)
		}
	}, answered(permission))
}
