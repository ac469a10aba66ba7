package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// replayEnds checks the replay_complete update that ends a replay. It skips older agents, which do not send that
// update.
func replayEnds(w *watch) {
	open := map[*session]*replaying{}
	w.inSession(func(ev *event, s *session) {
		open[s] = &replaying{seq: ev.Seq, history: ev.params.Get("replayFrom").Kind() == wire.Object,
			marked: map[*session]int{}}
	}, asked(resumeSession))
	w.inSession(func(ev *event, s *session) {
		p := open[s.root()]
		if p == nil || !p.history {
			w.find("stray", ev, "", nil,
				"The agent sent replay_complete for session %q, but no resume with replayFrom is open.", s.id)
			return
		}
		w.judge("stray", p.marked[s] > 0, ev, "", []int{p.seq, p.marked[s]},
			"The agent sent a second replay_complete for session %q.", s.id)
		w.judge("live", len(p.fresh) > 0, ev, "", p.fresh, "A new message came before the replay_complete.")
		p.marked[s], p.fresh = ev.Seq, nil
	}, replayDone)
	w.inSession(func(ev *event, s *session) {
		c, p := ev.conn.session(ev.update.Get("sessionId").Str()), open[s.root()]
		if p != nil && p.history && c != nil && p.marked[s] == 0 && (c.lineage.announced == 0 || !s.active) {
			p.children = append(p.children, c)
		}
	}, subagentUpdate)
	w.inSession(func(ev *event, s *session) {
		if p := open[s]; p != nil && p.history && p.marked[s] == 0 && s.replay != nil {
			p.message(w, ev, s)
		}
	}, messages()...)
	w.inSession(func(ev *event, s *session) {
		if p := open[s.root()]; p != nil && p.marked[s] > 0 && !s.active && !s.busy() {
			w.find("history-after", ev, "", []int{p.marked[s]}, "%s of the history comes after the replay_complete.", ev.tag())
		}
	}, append(messages(), toolUpdate)...)
	w.inSession(func(ev *event, s *session) {
		p := open[s]
		if delete(open, s); p != nil && p.history {
			w.Saw("history-after")
			p.end(w, ev, s)
		}
	}, answered(resumeSession))
}

// replaying is an open session/resume request and what its replay has shown so far.
type replaying struct {
	seq      int
	history  bool  // the client asked for a replay
	begun    bool  // the history has begun
	fresh    []int // Seqs of messages that do not belong to the history
	children []*session
	marked   map[*session]int // Seq of the replay_complete of each session
}

// end checks the answer to the resume. After a successful resume, replay_complete must have come for the session and
// for each announced child. After a failed resume, none may have come.
func (p *replaying) end(w *watch, ev *event, s *session) {
	w.judge("failed", !ev.succeeded() && p.marked[s] > 0, ev, "", []int{p.marked[s]},
		"The agent refused the resume after its replay_complete.")
	if !ev.succeeded() || !w.state.marks {
		return
	}
	w.judge("missing", p.marked[s] == 0, ev, "", []int{p.seq},
		"The agent answered the resume before any replay_complete.")
	for _, c := range p.children {
		w.judge("child", p.marked[c] == 0, ev, c.id, []int{p.seq},
			"The replay announces child %q, but has no replay_complete for it.", c.id)
	}
}

// message records messages that do not belong to the history. Whether such a message came too early is known only when
// replay_complete follows.
func (p *replaying) message(w *watch, ev *event, s *session) {
	shown, whole := w.state.shown[s.id]
	_, known := shown[ev.update.Get("messageId").Str()]
	if whole && p.begun && !known && s.replay.busy {
		p.fresh = append(p.fresh, ev.Seq)
	}
	// The resume may come while the agent sends a live message. So only a message of the user begins the history.
	p.begun = p.begun || known && strings.HasPrefix(ev.tag(), "user_message")
}

// retries checks the answers to a prompt that the client sends again with the same idempotency key. It skips agents
// that never send replay_complete.
func retries(w *watch) {
	type answer struct {
		id  string
		seq int
	}
	known := map[*turn]answer{}
	w.On(func(ev *event) {
		t := ev.request.first
		if t == nil {
			t = ev.turn
		}
		got := answer{ev.result.Get("messageId").Str(), ev.Seq}
		before, again := known[t]
		if again && w.state.marks {
			w.judge("other-answer", got.id != before.id, ev, "", []int{before.seq, ev.Ref},
				"The client resent a prompt with its idempotencyKey; the agent answered %q instead of %q.",
				got.id, before.id)
		}
		if !again && t != nil && ev.succeeded() {
			known[t] = got
		}
	}, answered(prompt))
}
