package canonical_test

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/transcript"
)

// frame is one line of the wire in a trace made by hand.
type frame struct {
	conn   int
	editor bool
	raw    string
}

func toAgent(raw string, args ...any) frame {
	return frame{editor: true, raw: fmt.Sprintf(raw, args...)}
}
func toEditor(raw string, args ...any) frame { return frame{raw: fmt.Sprintf(raw, args...)} }

// request is a request without the members that are always the same.
func request(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

func notification(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

func result(id any, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":%s}`, id, value)
}

// updates is a session/update: members is what follows the kind.
func updates(session, kind, members string) string {
	if members != "" {
		members = "," + members
	}
	return notification("session/update",
		fmt.Sprintf(`{"sessionId":%q,"update":{"sessionUpdate":%q%s}}`, session, kind, members))
}

func chunk(session, kind, text string) string {
	quoted, _ := json.Marshal(text)
	return updates(session, kind, fmt.Sprintf(`"content":{"type":"text","text":%s}`, quoted))
}

func transcriptOf(frames []frame) *transcript.Transcript {
	t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	for _, f := range frames {
		from := transcript.Agent
		if f.editor {
			from = transcript.Editor
		}
		t.AppendFrame(f.conn, from, []byte(f.raw), 0)
	}
	return t
}

func render(frames []frame, o golden.Options) string {
	return canonical.V1().Render(transcriptOf(frames).All(), o)
}
