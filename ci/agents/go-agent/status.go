package main

import (
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// announce tells of a call that the model asks for.
func (t *turn) announce(c *call, kind acp.ToolKind, files []acp.ToolCallLocation) {
	if t.g.offered > acp.ProtocolVersionNumber && fault("offered-version-counts-for-calls") {
		t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateTitle(c.title), acp.WithUpdateKind(kind),
			acp.WithUpdateStatus(acp.ToolCallStatusPending), acp.WithUpdateRawInput(c.input)))
		return
	}
	t.tell(acp.StartToolCall(c.id, c.title, acp.WithStartKind(kind), acp.WithStartRawInput(c.input),
		func(tc *acp.SessionUpdateToolCall) { tc.Locations = files }))
}

// begins tells that a call runs from now on.
func (t *turn) begins(c *call, more ...acp.ToolCallUpdateOpt) {
	t.began = time.Now()
	if fault("progress-of-short-call-told-after-its-end") { // a short call needs no spinner
		time.AfterFunc(100*time.Millisecond, func() {
			t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusInProgress)))
		})
	} else if c.asked || !fault("call-without-question-not-shown-running") {
		more = append(more, acp.WithUpdateStatus(acp.ToolCallStatusInProgress))
	}
	if len(more) > 0 {
		t.tell(acp.UpdateToolCall(c.id, more...))
	}
}

func (t *turn) completed(c *call, out string, diffs ...acp.ToolCallContent) {
	if out == "" && fault("call-without-output-never-completed") {
		return // nothing to show
	}
	t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusCompleted),
		acp.WithUpdateContent(append(shown(t.lastPiece(c, out)), diffs...)),
		acp.WithUpdateRawOutput(map[string]any{"output": out})))
}

// lastPiece tells a long output in pieces, and returns the last of them.
func (t *turn) lastPiece(c *call, out string) string {
	const most = 4096
	rest := []rune(out)
	if len(rest) <= most || !fault("pieces-of-long-output-replace-each-other") {
		return out
	}
	for ; len(rest) > most; rest = rest[most:] {
		t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateContent(shown(string(rest[:most])))))
	}
	return string(rest)
}
