// Package acpreport gives reports their description of ACP.
package acpreport

import (
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// V1 returns the description of version 1, in which the answer to a prompt ends a turn.
func V1() reports.Protocol {
	return version(invariants.V1(), func(e transcript.Entry) (string, bool) {
		return e.JSON().Path("result.stopReason").Str(), e.Source == transcript.Agent &&
			e.Kind == transcript.Response && e.Method == "session/prompt"
	})
}

// V2 returns the description of version 2. An idle state, or an error response to the prompt, ends a turn.
func V2() reports.Protocol {
	return version(invariants.V2(), func(e transcript.Entry) (string, bool) {
		refused := e.Kind == transcript.Response && e.Method == "session/prompt" && e.JSON().Get("error").Exists()
		return e.JSON().Path("params.update.stopReason").Str(), e.Source == transcript.Agent &&
			(refused || e.Ref != 0 && acpframe.Update(e) == "state_update")
	})
}

// version returns the description of either version. end returns the stop reason; ok is false if the entry ends no
// turn.
func version(set *rules.Set, end func(transcript.Entry) (reason string, ok bool)) reports.Protocol {
	return reports.Protocol{
		Rules: set,
		Greet: "initialize", Open: "session/new", Prompt: "session/prompt", Cancel: "session/cancel",
		Update: acpframe.Update,
		Call:   func(e transcript.Entry) string { return e.JSON().Path("params.update.toolCallId").Str() },
		Piece: func(e transcript.Entry) (text, field string, ok bool) {
			text = e.JSON().Path("params.update.content.text").Str()
			return text, "content.text", strings.HasSuffix(acpframe.Update(e), "_chunk")
		},
		End: func(e transcript.Entry) (reports.End, bool) {
			reason, ok := end(e)
			switch reason {
			case "end_turn":
				return reports.Finished, ok
			case "cancelled":
				return reports.Cancelled, ok
			}
			return reports.Otherwise, ok
		},
	}
}
