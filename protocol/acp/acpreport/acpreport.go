// Package acpreport says what reports have to know of ACP version 1.
package acpreport

import (
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/transcript"
)

// V1 returns what a matrix is made with.
func V1() reports.Protocol {
	return reports.Protocol{
		Rules: invariants.V1(),
		Greet: "initialize", Open: "session/new", Prompt: "session/prompt", Cancel: "session/cancel",
		Update: acpframe.Update,
		Call:   func(e transcript.Entry) bool { return acpframe.Update(e) == "tool_call" },
		Piece: func(e transcript.Entry) (string, bool) {
			return e.JSON().Path("params.update.content.text").Str(), strings.HasSuffix(acpframe.Update(e), "_chunk")
		},
		End: func(e transcript.Entry) reports.End {
			switch e.JSON().Path("result.stopReason").Str() {
			case "end_turn":
				return reports.Finished
			case "cancelled":
				return reports.Cancelled
			}
			return reports.Otherwise
		},
	}
}
