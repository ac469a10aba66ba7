//go:build linux

package main

import (
	"fmt"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// transcriptFile writes a long, ordinary conversation: turns of text, tool
// calls with permissions and file requests.
func transcriptFile(args []string) {
	if len(args) != 2 {
		must.Fail("the number of entries and the file are needed")
	}
	n := number(args, 0)
	log := must.Get(transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Path: args[1]}))
	by := func(from transcript.Source) func(format string, a ...any) {
		return func(format string, a ...any) { log.AppendFrame(0, from, fmt.Appendf(nil, format, a...), 0) }
	}
	editor, agent := by(transcript.Editor), by(transcript.Agent)
	update := func(format string, a ...any) {
		agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1","update":`+format+`}}`, a...)
	}
	editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,` +
		`"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}}`)
	agent(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}`)
	editor(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	agent(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"sess-1"}}`)
	for id := 2; log.Len() < n; id++ {
		editor(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"sess-1",`+
			`"prompt":[{"type":"text","text":"Question %d about the code in main.go"}]}}`, id, id)
		for i := range 40 {
			update(`{"sessionUpdate":"agent_message_chunk","messageId":"msg-%d","content":{"type":"text","text":"word %d of `+
				`the answer "}}`, id, i)
		}
		update(`{"sessionUpdate":"tool_call","toolCallId":"call-%d","title":"Edit main.go","kind":"edit",`+
			`"status":"pending","locations":[{"path":"/w/main.go","line":3}]}`, id)
		agent(`{"jsonrpc":"2.0","id":"p-%d","method":"session/request_permission","params":{"sessionId":"sess-1",`+
			`"toolCall":{"toolCallId":"call-%d"},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"},`+
			`{"optionId":"r","name":"Reject","kind":"reject_once"}]}}`, id, id)
		editor(`{"jsonrpc":"2.0","id":"p-%d","result":{"outcome":{"outcome":"selected","optionId":"a"}}}`, id)
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"call-%d","status":"in_progress"}`, id)
		agent(`{"jsonrpc":"2.0","id":"w-%d","method":"fs/write_text_file","params":{"sessionId":"sess-1",`+
			`"path":"/w/main.go","content":"package main\n"}}`, id)
		editor(`{"jsonrpc":"2.0","id":"w-%d","result":{}}`, id)
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"call-%d","status":"completed","content":[{"type":"diff",`+
			`"path":"/w/main.go","oldText":"package main","newText":"package main\n"}]}`, id)
		agent(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, id)
	}
	must.Do(log.Close())
}
