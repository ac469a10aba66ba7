package main

import (
	"fmt"
	"slices"
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

// foretell shows a call whose arguments are still on their way.
func (t *turn) foretell(use block) {
	name, _ := use["name"].(string)
	kind := acp.ToolKindOther
	if name == "run_command" {
		kind = acp.ToolKindExecute
	}
	t.g.mu.Lock()
	t.g.calls++
	id := acp.ToolCallId(fmt.Sprintf("run:%d", t.g.calls))
	t.g.mu.Unlock()
	if t.foretold == nil {
		t.foretold = map[any]acp.ToolCallId{}
	}
	t.foretold[use["id"]] = id
	t.tell(acp.StartToolCall(id, name, acp.WithStartKind(kind), acp.WithStartRawInput(map[string]any{})))
}

// withdraw ends the calls that were shown but are not made.
func (t *turn) withdraw(content []block, err error) {
	for use, id := range t.foretold {
		made := slices.ContainsFunc(callsIn(content), func(c *call) bool { return c.use["id"] == use })
		if err != nil || !made {
			delete(t.foretold, use)
			t.tell(acp.UpdateToolCall(id, acp.WithUpdateStatus(acp.ToolCallStatusFailed),
				acp.WithUpdateContent(shown("The model did not finish the call."))))
		}
	}
}

// still reports whether the turn is shown running already, and notes that it is from now on.
func (t *turn) still() bool {
	was := t.running
	t.running = true
	return was && fault("call-after-failed-one-not-shown-running")
}

// begins tells that a call runs from now on.
func (t *turn) begins(c *call, more ...acp.ToolCallUpdateOpt) {
	t.began = time.Now()
	if fault("progress-of-short-call-told-after-its-end") { // a short call needs no spinner
		time.AfterFunc(100*time.Millisecond, func() {
			t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusInProgress)))
		})
	} else if !t.still() && (c.asked || !fault("call-without-question-not-shown-running")) {
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
	last := []acp.ToolCallUpdateOpt{acp.WithUpdateStatus(acp.ToolCallStatusCompleted),
		acp.WithUpdateRawOutput(map[string]any{"output": out})}
	if c.name != "run_command" || !fault("output-of-child-in-raw-output-only") {
		last = append(last, acp.WithUpdateContent(append(shown(t.lastPiece(c, out)), diffs...)))
	}
	t.tell(acp.UpdateToolCall(c.id, last...))
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
