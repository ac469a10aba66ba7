package invariants

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// The rules in this file judge the work of version 2 sessions.

// states checks the state updates of a session.
func states(w *watch) {
	w.inSession(func(ev *event, s *session) {
		if s.root().replay != nil || !s.active || !ev.update.Get("state").Is("idle") {
			return
		}
		stop := ev.update.Get("stopReason")
		w.judge("no-reason", stop.Kind() != wire.String, ev, "", []int{s.stateSeq},
			"The idle state that ends the work has no stopReason.")
		if stop.Is("error") {
			w.judge("no-error", ev.update.Get("error").Kind() != wire.Object, ev, "", nil,
				"The agent reported the stop reason \"error\" without an error.")
		}
	}, stateUpdate)
	w.inSession(func(ev *event, s *session) {
		if s.root().replay != nil || s.reported {
			return
		}
		if t := s.running(); t != nil {
			w.judge("not-running", !s.active && s.stateSeq < t.answered, ev, "", []int{t.started},
				"The agent sent %s for the prompt before it reported the state running.", ev.tag())
		}
		if s.state == "requires_action" {
			w.judge("still-waiting", true, ev, "", []int{s.stateSeq},
				"The agent sent %s although the session's state is requires_action.", ev.tag())
		}
	}, agentChunk, thoughtChunk)
	w.On(func(ev *event) {
		step, _ := ev.body.Get("step").Int()
		if ev.Kind != transcript.ModelRequest || !ev.converses() || step < 2 {
			return
		}
		var last *turn // the latest prompt of the session on any connection
		quiet := false
		for _, c := range w.state.conns {
			s := c.sessions[ev.Session]
			if s == nil || len(s.prompts) == 0 {
				continue
			}
			if t := s.prompts[len(s.prompts)-1]; last == nil || t.started > last.started {
				last, quiet = t, !s.reported && !c.delegates(s)
			}
		}
		if quiet {
			w.worksOn(ev, last)
		}
	}, modelEvent)
}

// worksOn checks that the agent sends no model request for a session's latest prompt after the turn has ended. The
// caller excludes sessions with background work or children, because these may wake the agent again.
func (w *watch) worksOn(ev *event, last *turn) {
	w.judge("works-on", last.ended > 0 && last.stop == "end_turn" && asks(ev, last), ev, "",
		[]int{last.started, last.ended},
		"The agent went idle with end_turn, but asks the model again for the same prompt.")
}

// running returns the turn of the oldest prompt that the agent has accepted and is still working on, or nil.
func (s *session) running() *turn {
	return lists.First(s.prompts, func(t *turn) bool { return t.answered > 0 && !t.failed && t.ended == 0 })
}

// cancels checks what the agent does with cancelled work and when it ends the work.
func cancels(w *watch) {
	w.inSession(func(ev *event, s *session) {
		if s.cancel > 0 && s.active && ev.update.Get("state").Is("idle") {
			stop := ev.update.Get("stopReason").Str()
			w.judge("other-reason", stop != "cancelled", ev, "", []int{s.cancel},
				"The work ended with %q after the cancel, not with cancelled; cancel and state may have crossed.", stop)
		}
	}, stateUpdate)
	w.inSession(func(ev *event, s *session) {
		id := ev.update.Get("toolCallId").Str()
		if s.cancelled == 0 || s.root().replay != nil {
			return
		}
		t := s.items[callID(id)]
		late := t != nil && t.first < s.cancelled && t.ended == 0 && t.turn == len(s.prompts) && !s.behind[callID(id)]
		w.judge("late-update", late, ev, id, []int{s.cancelled},
			"The agent updated tool call %q after it had gone idle with cancelled.", id)
		if late && ev.tool != nil {
			ev.tool.blamed = true
		}
	}, toolUpdate)
	w.inSession(w.takenBack, answered(prompt))
}

// takenBack checks the response to a prompt that the client cancelled.
func (w *watch) takenBack(ev *event, s *session) {
	t := ev.turn
	if t == nil || t.cancel == nil {
		return
	}
	if s.cancelled > t.cancel.seq && !t.crossed {
		w.Saw("queued-code")
		w.judge("inserted", ev.succeeded(), ev, "", []int{t.cancel.seq, ev.Ref},
			"The agent accepted a cancelled prompt after the session had gone idle.")
	}
	gone := ev.code() == -32002 && !s.ready(w.state.version)
	if got := ev.code(); ev.err.Exists() && !gone {
		w.judge("queued-code", got != -32800 && (got != -32600 || !t.concurrent), ev, "", []int{ev.Ref},
			"The agent answered the cancelled prompt with error %d instead of -32800.", got)
	}
}

// echo checks that the agent shows each prompt as a message of the user.
func echo(w *watch) {
	ids := map[[2]string]int{}
	w.On(func(ev *event) {
		if ev.session != nil && ev.succeeded() && ev.request.first == nil {
			id := [2]string{ev.session.id, ev.result.Get("messageId").Str()}
			w.judge("same-id", ids[id] > 0, ev, "", []int{ids[id]},
				"The response to the prompt has the messageId of an earlier prompt.")
			ids[id] = ev.Seq
		}
	}, answered(prompt))
	w.inSession(func(ev *event, s *session) {
		if !s.active || !ev.update.Get("state").Is("idle") {
			return
		}
		for _, t := range s.prompts {
			if t.answered > 0 && !t.failed && t.ended == 0 && t.message != "" {
				_, shown := s.said[t.message]
				w.judge("missing", !shown, ev, t.message, []int{t.started, t.answered},
					"The prompt's work is over, but the agent never showed the prompt as message %q.", t.message)
			}
		}
	}, stateUpdate)
}

// replays checks the updates during a resume.
func replays(w *watch) {
	w.On(func(ev *event) {
		s := ev.session
		switch {
		case s == nil || s.replay == nil || s.active || s.replay.busy: // the update may be live
		case !s.replay.history:
			w.find("not-silent", ev, "", []int{s.replay.seq},
				"The agent sent %s in a resume that did not ask for the history.", ev.tag())
		case s.replay.state > 0:
			w.find("history-after-state", ev, "", []int{s.replay.state},
				"The replay sent %s after the state_update.", ev.tag())
		}
	}, append(messages(), toolUpdate)...)
	w.inSession(func(ev *event, s *session) {
		if s.replay == nil || !ev.succeeded() {
			return
		}
		p := s.replay
		w.Saw("not-silent", "history-after-state")
		w.judge("no-state", !p.told, ev, "", []int{p.seq}, "The agent answered the resume before any state_update.")
		if shown, whole := w.state.shown[s.id]; whole && p.history {
			w.sameMessages(ev, p, shown)
		}
	}, answered(resumeSession))
}

// sameMessages checks the message ids of a replayed history. The live session must have shown each message under the
// same id. No message of the user may be missing; LOAD-WHOLE judges missing messages of the agent.
func (w *watch) sameMessages(ev *event, p *replay, shown map[string]message) {
	w.Saw("other-ids", "gone")
	for _, id := range p.shown {
		if !shown[id].live && !p.busy {
			w.find("other-ids", ev, id, []int{p.seq}, "The history has a message %q, which the live session did not show.", id)
		}
	}
	for id, m := range shown {
		if m.live && m.user && !slices.Contains(p.shown, id) {
			w.find("gone", ev, id, []int{m.first, p.seq}, "The replay lacks the user's message %q.", id)
		}
	}
}

// background checks the list of background work in state updates.
func background(w *watch) {
	w.inSession(func(ev *event, s *session) {
		list := ev.update.Get("background")
		if s.reported {
			w.judge("left-out", list.Kind() != wire.Array, ev, "", nil,
				"The state_update lacks the list of background work that an earlier one had.")
		}
		if list.Kind() != wire.Array {
			return // a missing list does not mean an empty list
		}
		now, live := map[itemID]bool{}, s.root().replay == nil
		for b := range list.Items() {
			id := workOf(b)
			now[id] = true
			t := s.items[id]
			w.judge("not-announced", id != itemID{} && (t == nil || !t.announced) && s.whole && live, ev, id.String(),
				nil, "The %s is listed as background work, but the agent never announced it.", id)
		}
		for id := range s.behind {
			w.judge("not-ended", !now[id] && id != itemID{} && !s.ended(id) && live, ev, id.String(), nil,
				"The %s disappeared from the list of background work, but has not ended.", id)
		}
	}, stateUpdate)
}

// terminals checks the agent's updates about its own terminals.
func terminals(w *watch) {
	w.inSession(func(ev *event, s *session) {
		id := ev.update.Get("terminalId").Str()
		w.Saw("base64")
		for _, path := range []string{"data", "output.data"} {
			data := ev.update.Path(path)
			if _, err := base64.StdEncoding.DecodeString(data.Str()); err != nil && data.Kind() == wire.String {
				w.find("base64", ev, id, nil, "A piece of the output of terminal %q is not base64.", id)
			}
		}
		dir, t, live := ev.update.Get("cwd"), s.items[terminalID(id)], s.root().replay == nil
		w.judge("cwd", dir.Kind() == wire.String && !isAbsolute([]byte(dir.Str())), ev, id, nil,
			"The cwd %q of terminal %q is not absolute.", dir.Str(), id)
		if w.Saw("reused"); t != nil && t.ended > 0 && ev.update.Get("command").Kind() == wire.String && live {
			w.find("reused", ev, id, []int{t.ended}, "The agent started terminal %q again after it had ended.", id)
		}
	}, terminalUpdate, terminalPiece)
}

// clientCancel checks that a client cancels a tool call or terminal only if the agent offers this.
func clientCancel(w *watch) {
	w.inSession(func(ev *event, s *session) {
		id := callID(ev.params.Get("toolCallId").Str())
		if ev.verb == cancelTerminal {
			id = terminalID(ev.params.Get("terminalId").Str())
		}
		w.Saw("not-offered", "over")
		switch t := ev.session.items[id]; {
		case t == nil || !t.offered:
			w.find("not-offered", ev, id.id, nil,
				"The client sent %s for %q, but no update had offered to cancel it.", ev.Method, id.id)
		case t.ended > 0 || !t.cancellable:
			w.find("over", ev, id.id, nil,
				"The client sent %s for %q, which had ended or could no longer be cancelled.", ev.Method, id.id)
		}
	}, asked(cancelCall), asked(cancelTerminal))
}

// commands checks the names of slash commands.
func commands(w *watch) {
	judge := func(ev *event, from wire.Value) {
		seen := rules.Seen{}
		for c := range from.Get("availableCommands").Items() {
			name := c.Get("name").Str()
			w.judge("word", name == "" || strings.ContainsFunc(name, unicode.IsSpace), ev, name, nil,
				"The command name %q is empty or has white space.", name)
			w.judge("twice", seen.Again(name), ev, name, nil, "Two commands have the name %q.", name)
		}
	}
	w.On(func(ev *event) { judge(ev, ev.update) }, allUpdates()...)
	w.On(func(ev *event) { judge(ev, ev.result) }, agentAnswers()...)
}
