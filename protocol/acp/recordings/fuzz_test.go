package recordings_test

import (
	"bytes"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/script"
)

// session is a turn with a permission, a file, a terminal and a cancel.
const session = `{"t":1,"proc":1,"dir":"out","frame":{"jsonrpc":"2.0","id":0,"method":"initialize",` +
	`"params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true}}}}
{"t":2,"proc":1,"dir":"in","frame":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}}
{"t":3,"proc":1,"dir":"out","frame":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w",` +
	`"mcpServers":[]}}}
{"t":4,"proc":1,"dir":"in","frame":{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}}
{"t":5,"proc":1,"dir":"out","frame":{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s",` +
	`"prompt":[{"type":"text","text":"it's \"so\""}]}}}
{"t":6,"proc":1,"dir":"in","frame":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
	`"update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t"}}}}
{"t":7,"proc":1,"dir":"in","frame":{"jsonrpc":"2.0","id":9,"method":"session/request_permission",` +
	`"params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","name":"A",` +
	`"kind":"allow_once"}]}}}
{"t":8,"proc":1,"dir":"out","frame":{"jsonrpc":"2.0","id":9,"result":{"outcome":{"outcome":"selected","optionId":"a"}}}}
{"t":9,"proc":1,"dir":"in","frame":{"jsonrpc":"2.0","id":10,"method":"fs/read_text_file","params":{"sessionId":"s",` +
	`"path":"/w/a.txt"}}}
{"t":10,"proc":1,"dir":"out","frame":{"jsonrpc":"2.0","id":10,"result":{"content":"x\n-- y --\n"}}}
{"t":11,"proc":1,"dir":"out","frame":{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}}
{"t":12,"proc":1,"dir":"in","frame":{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}}
`

// Whatever was recorded, a conversion ends with a scenario that can be read and is
// formatted, or with an error that says what cannot be carried over; wherever it is
// cancelled too.
func FuzzConvert(f *testing.F) {
	f.Add([]byte(session), []byte(nil))
	f.Add([]byte(session), []byte("replies:\n  - - text: Hello.\n"))
	f.Fuzz(func(t *testing.T, recording, model []byte) {
		log, err := replay.Read(recordings.V1(), bytes.NewReader(recording), nil)
		if err != nil {
			return
		}
		defer log.Close()
		check := func(made *recordings.Converted, err error) {
			if err != nil {
				if err.Error() == "" {
					t.Error("an error that says nothing")
				}
				return
			}
			if _, err := acp.V1().Parse("x", "x.txtar", made.Text); err != nil {
				t.Fatalf("the scenario cannot be read: %v\n%s", err, made.Text)
			}
			file, _ := script.Parse("x.txtar", made.Text)
			if again := script.Format(file); !bytes.Equal(again, made.Text) {
				t.Errorf("it is not formatted:\n%s\nwant\n%s", made.Text, again)
			}
		}
		check(recordings.Convert(acp.V1(), log, "A recording.", model))
		for seq := range min(log.Len(), 40) + 2 {
			check(recordings.CancelAt(acp.V1(), log, seq, "A recording."))
		}
	})
}
