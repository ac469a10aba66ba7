// Package aguireport gives reports their description of AG-UI.
package aguireport

import (
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/invariants"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/transcript"
)

// V1 returns the description of AG-UI for reports. AG-UI has no greeting, no request that opens a thread, and no answer
// after the client hangs up.
func V1() reports.Protocol {
	return reports.Protocol{
		Rules:  invariants.V1(),
		Prompt: aguiframe.Run,
		Update: aguiframe.Event,
		Call: func(e transcript.Entry) string {
			if aguiframe.Event(e) != "TOOL_CALL_START" {
				return ""
			}
			return e.JSON().Get("toolCallId").Str()
		},
		Piece: func(e transcript.Entry) (text, field string, ok bool) {
			switch aguiframe.Event(e) {
			case "TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS":
				return e.JSON().Get("delta").Str(), "delta", true
			}
			return "", "", false
		},
		End: func(e transcript.Entry) (reports.End, bool) {
			switch aguiframe.Event(e) {
			case "RUN_FINISHED":
				return reports.Finished, true
			case "RUN_ERROR":
				return reports.Otherwise, true
			}
			return reports.Otherwise, false
		},
	}
}
