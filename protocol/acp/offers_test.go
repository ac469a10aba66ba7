package acp_test

import (
	"testing"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/transcript"
)

// A run in version 1 says that an agent speaks version 2 only where it said so itself, to an
// editor that asked for as much.
func TestOffers(t *testing.T) {
	for _, c := range []struct{ asked, answer, want string }{
		{`65535`, `"result":{"protocolVersion":2}`, acp.NameV2},
		{`2`, `"result":{"protocolVersion":2}`, acp.NameV2},
		{`1`, `"result":{"protocolVersion":2}`, ""}, // it answers what nobody asked for
		{`65535`, `"result":{"protocolVersion":1}`, ""},
		{`65535`, `"result":{"protocolVersion":65535}`, ""}, // it says what it hears
		{`65535`, `"result":{"protocolVersion":"2"}`, ""},
		{`65535`, `"error":{"code":-32022,"message":"2","data":{"supported":[2]}}`, ""},
	} {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acp.V1().Classifier})
		if err != nil {
			t.Fatal(err)
		}
		log.AppendFrame(0, transcript.Editor, []byte(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":`+c.asked+`}}`), 0)
		log.AppendFrame(0, transcript.Agent, []byte(`{"jsonrpc":"2.0","id":1,`+c.answer+`}`), 0)
		if got := acp.V1().Offers(log); got != c.want {
			t.Errorf("asked for %s and answered %s, it offers %q, want %q", c.asked, c.answer, got, c.want)
		}
	}
}
