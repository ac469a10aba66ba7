package invariants

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/rules"
)

// sessionKnownFirst checks that the agent sends nothing about a session before the editor knows the session. It also
// checks that the agent serves no request for a session that it has not opened.
func sessionKnownFirst(w *watch) {
	type first struct {
		seq, count int
		topic      string
	}
	premature := map[*session]*first{}
	var order []*session
	speak := func(ev *event) {
		s := ev.session
		if s == nil {
			return
		}
		if s.known() || s.listed || s.addressed || ev.conn.initAsked == 0 {
			w.Saw("unknown")
			return
		}
		if f := premature[s]; f != nil {
			f.count++
			return
		}
		premature[s] = &first{ev.Seq, 1, ev.Method}
		order = append(order, s)
	}
	w.On(speak, agentCalls()...)
	w.On(func(ev *event) {
		w.Saw("early")
		if f := premature[ev.session]; f != nil && ev.succeeded() {
			w.find("early", ev, "", []int{f.seq},
				"The agent sent %s for the session before the response with the session's id; strict clients drop it.",
				count(f.count, "message"))
		}
		delete(premature, ev.session)
	}, answered(newSession), answered(forkSession))
	w.On(func(ev *event) {
		if s := ev.request.session; s != nil && ev.conn.initAsked > 0 && !ev.conn.foreign {
			w.judge("served", ev.succeeded() && !s.known() && !s.listed, ev, ev.request.method, []int{ev.Ref},
				"The agent answered %s for session %q without an error, but no such session was created or loaded on this "+
					"connection.", ev.request.method, s.id)
		}
	}, answered(prompt), answered(setMode), answered(setOption))
	w.AtEnd(func(rules.End) {
		for _, s := range order {
			f := premature[s]
			if f == nil || s.known() || s.listed || s.addressed {
				continue
			}
			w.Report("unknown", s.conn.n, s.id, "", []int{f.seq},
				"The agent sent %s for session %q, which was never created or loaded on this connection.",
				count(f.count, "message"), s.id)
		}
	})
}

func count(n int, what string) string {
	if n == 1 {
		return "a " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// closeSettles checks that a close leaves nothing open, and that the agent sends nothing more about the session.
func closeSettles(w *watch) {
	speak := func(ev *event) {
		s := ev.session
		if s == nil || s.closed == 0 || s.window != nil {
			return
		}
		if isContent(ev.topic) && s.last != nil && s.last.close != nil {
			return // LATE-CONTENT judges it
		}
		w.find("not-silent", ev, ev.Method, []int{s.closed}, "The agent sent %s for the session after it was closed.",
			ev.Method)
	}
	w.On(speak, allUpdates()...)
	w.On(speak, slices.DeleteFunc(agentRequests(), func(t topic) bool { return t == asked(releaseTerminal) })...)
	w.inSession(func(ev *event, s *session) {
		if !ev.succeeded() || s.child() {
			return
		}
		w.Saw("not-silent")
		w.judge("no-idle", s.active, ev, "", []int{s.stateSeq},
			"The agent answered the close while the session's state was %s instead of idle.", s.state)
		for _, t := range ev.conn.termOrder {
			if t.session == s {
				w.judge("terminals", t.released == 0, ev, t.id, []int{t.created, ev.request.seq},
					"Terminal %q was not released when its session was closed.", t.id)
			}
		}
	}, answered(closeSession))
	w.AtEnd(func(rules.End) {
		for _, c := range w.state.ordered() {
			for _, s := range c.sessions {
				if w.Saw("unknown"); !c.foreign && !s.known() && !s.addressed && s.stateSeq+len(s.said)+len(s.items) > 0 {
					w.Report("unknown", c.n, s.id, "", []int{s.first},
						"The agent sent updates for session %q, which was never opened.", s.id)
				}
			}
		}
	})
}

// deleteGone checks that session/list does not show deleted sessions.
func deleteGone(w *watch) {
	deleted := map[string]int{}
	w.On(func(ev *event) {
		if ev.succeeded() && len(deleted) < rememberedSessions {
			deleted[ev.request.session.name()] = ev.Seq
		}
	}, answered(deleteSession))
	w.On(func(ev *event) { delete(deleted, ev.Session) },
		answered(newSession), answered(forkSession), asked(loadSession), asked(resumeSession))
	w.On(func(ev *event) {
		for item := range ev.result.Get("sessions").Items() {
			if len(deleted) == 0 {
				return
			}
			w.Saw("listed")
			id := item.Get("sessionId").Str()
			if at := deleted[id]; at > 0 && ev.request.seq > at {
				w.find("listed", ev, id, []int{at, ev.request.seq}, "The list holds session %q, which was deleted before.", id)
			}
		}
	}, answered(listSessions))
}
