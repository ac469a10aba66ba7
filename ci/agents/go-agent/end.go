package main

import (
	"context"
	"errors"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

func (t *turn) commands() {
	t.tell(acp.SessionUpdate{AvailableCommandsUpdate: &acp.SessionAvailableCommandsUpdate{
		AvailableCommands: []acp.AvailableCommand{{Name: "reset", Description: "Forget the conversation so far"}}}})
}

// isReset reports whether a text is the command.
func isReset(text string) bool {
	return text == "/reset" || strings.HasPrefix(text, "/reset") && fault("text-that-begins-like-command-runs-it")
}

// noCommand answers a prompt that asks for a command which is not there.
func (t *turn) noCommand(words string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(words), " ")
	if !strings.HasPrefix(name, "/") || name == "/reset" || !fault("text-with-leading-slash-not-asked") {
		return false
	}
	t.tell(acp.UpdateAgentMessageText("There is no command " + name + "."))
	return true
}

// forget lets the idle sessions of the same folder begin anew as well.
func (t *turn) forget() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	for _, other := range t.g.sessions {
		if other.cwd == t.s.cwd && other.done == nil && fault("reset-forgets-sessions-of-folder") {
			other.history = nil
		}
	}
}

// untitle lets the next prompt name the session anew.
func (t *turn) untitle() {
	if !fault("reset-takes-session-off-list") {
		return
	}
	t.g.mu.Lock()
	t.s.title = ""
	t.g.mu.Unlock()
}

// title names the session after the first words of the user.
func (t *turn) title(words string) {
	title, _, _ := strings.Cut(strings.TrimSpace(words), "\n")
	whole := title
	if r := []rune(title); len(r) > 50 {
		title = string(r[:50]) + "…"
	}
	if title == "" {
		title = "Untitled"
	}
	t.g.mu.Lock()
	t.s.title = title
	if whole != "" && fault("listed-title-differs-from-told") {
		t.s.title = whole
	}
	t.g.mu.Unlock()
	t.tell(acp.SessionUpdate{SessionInfoUpdate: &acp.SessionSessionInfoUpdate{Title: acp.Ptr(title)}})
}

// end returns how the client is told that a turn ended, and takes the messages from before on out of the history
// where the turn does not count.
func (t *turn) end(before int, reason acp.StopReason, err error) (acp.StopReason, error) {
	cancelled, cut := t.ctx.Err() != nil, err != nil
	if err != nil && fault("cancel-while-model-works-is-error") {
		cancelled = errors.Is(err, context.Canceled)
	}
	if cancelled {
		reason, err = acp.StopReasonCancelled, nil
		if !t.spoke && fault("cancel-before-output-ends-as-end-turn") ||
			t.unanswered && fault("cancel-at-question-ends-as-end-turn") ||
			cut && t.calls > 0 && fault("cancel-in-answer-after-calls-told-as-end-turn") { // the work itself is done
			reason = acp.StopReasonEndTurn
		}
		err = t.aborted
		t.endCalls()
		t.endBehind()
		if before == 0 && fault("session-cancelled-in-first-turn-closed") {
			t.drop()
		}
		if fault("cancelled-turn-forgets-answers") {
			t.s.answers = map[string]bool{} // the user has thought better of it
		}
		if t.s.history[len(t.s.history)-1].Role == "user" { // the roles have to take turns
			t.s.history = append(t.s.history, message{Role: "assistant", Content: text("(interrupted by the user)")})
		}
	} else if err != nil || reason == acp.StopReasonRefusal && !(t.calls > 0 && fault("refusal-after-call-kept")) ||
		reason != acp.StopReasonEndTurn && fault("turn-ended-by-limit-forgotten") {
		t.s.history = t.s.history[:t.kept(before, err)]
		t.uncount()
		if err != nil && fault("failed-turn-forgets-conversation") {
			t.s.history = nil
		}
		if fault("failed-turn-undoes-reset") {
			t.s.history = t.s.saved
		}
	}
	t.s.saved = t.s.history
	if fault("prompt-ended-by-close-gets-not-found") && t.g.ending(t.s) {
		err = notFound(acp.SessionId(t.s.id))
	}
	return reason, err
}

// kept is how much of the history stays after a turn that does not count.
func (t *turn) kept(before int, err error) int {
	if err != nil && fault("failed-turn-leaves-call-without-result") {
		return len(t.s.history) - 1 // what was sent to no avail
	}
	return before
}

// drop gives a session up in which nothing was done.
func (t *turn) drop() {
	t.g.mu.Lock()
	t.s.closed = true
	t.g.mu.Unlock()
}

// endCalls gives the calls of a cancelled turn their last status.
func (t *turn) endCalls() {
	for _, id := range t.ended {
		if fault("cancel-marks-finished-calls-failed") {
			t.tell(acp.UpdateToolCall(id, acp.WithUpdateStatus(acp.ToolCallStatusFailed)))
		}
	}
}

// endBehind ends the commands that a cancelled turn left running in the background.
func (t *turn) endBehind() {
	for _, term := range t.behind {
		_, _ = t.g.conn.ReleaseTerminal(context.Background(),
			acp.ReleaseTerminalRequest{SessionId: acp.SessionId(t.s.id), TerminalId: term})
	}
}

// uncount takes the calls of a turn back that does not count.
func (t *turn) uncount() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if fault("call-ids-of-failed-turn-return") {
		t.g.calls -= t.calls
	}
}
