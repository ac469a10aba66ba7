package canonical_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/transcript"
)

// FuzzRender feeds lines of any content, every second one from the editor: it
// must not fail, must say the same each time, and give one line a message.
func FuzzRender(f *testing.F) {
	for _, frames := range [][]frame{edit(), everything()} {
		var lines []string
		for _, frame := range frames {
			lines = append(lines, frame.raw)
		}
		f.Add([]byte(strings.Join(lines, "\n")), true)
		for _, line := range lines {
			f.Add([]byte(line), false)
		}
	}
	f.Add([]byte("\n\xff\n{}\n[]\n"+`{"jsonrpc":"2.0","id":1,"result":{}}`), false)
	// Text that names no session, in two turns.
	var turns []string
	for id := 2; id < 5; id++ {
		turns = append(turns, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt",`+
			`"params":{"sessionId":"s","prompt":[]}}`, id),
			`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk"`+
				`,"content":`+
				`{"type":"text","text":"Hi."}}}}`,
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"cancelled"}}`, id))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`+"\n"+
		`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`+"\n"+strings.Join(turns, "\n")), true)
	f.Fuzz(func(t *testing.T, data []byte, editorFirst bool) {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		if err != nil {
			t.Fatal(err)
		}
		from := map[bool]transcript.Source{true: transcript.Editor, false: transcript.Agent}
		n := 0
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			e := log.AppendFrame(0, from[editorFirst == (n%2 == 0)], line, 0)
			n++
			if text := canonical.V1().Line(e); strings.ContainsAny(text, "\n\r") {
				t.Fatalf("the text of one entry has several lines: %q", text)
			}
		}
		exact := canonical.V1().Render(log.All(), golden.Options{Exact: true})
		sections := strings.Count("\n"+exact, "\n== ")
		if got := strings.Count(exact, "\n") - sections; got != n {
			t.Fatalf("%d lines for %d messages:\n%s", got, n, exact)
		}
		one, other := canonical.V1().Render(log.All(), golden.Options{}),
			canonical.V1().Render(log.All(), golden.Options{})
		if whole := canonical.Whole(false, log.All(), golden.Options{}); whole != one {
			t.Fatalf("in parts it is another text:\n%s", golden.Diff(whole, one))
		}
		see, surveyed := canonical.V1().(golden.Surveyor).Survey()
		for e := range log.Shown() {
			see(e)
		}
		if text := surveyed.Render(log.All(), golden.Options{}); text != one {
			t.Fatalf("after a look of its own it is another text:\n%s", golden.Diff(text, one))
		}
		if one != other {
			t.Fatalf("two renderings of one log differ:\n%s", golden.Diff(one, other))
		}
	})
}
