package acpframe_test

import (
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

func TestClassifier(t *testing.T) {
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		t.Fatal(err)
	}
	const batch = "the line is a JSON array, but ACP has no batches: each message must be on its own line"
	for _, c := range []struct {
		from                             transcript.Source
		line                             string
		kind                             transcript.Kind
		method, session, update, problem string
	}{
		{transcript.Editor, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`, transcript.Request,
			"session/new", "", "", ""},
		{transcript.Agent, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`, transcript.Response, "session/new",
			"s", "", ""},
		{transcript.Agent, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
			`"update":{"sessionUpdate":"plan"}}}`,
			transcript.Notification, "session/update", "s", "plan", ""},
		{transcript.Agent, `[{"jsonrpc":"2.0","method":"m"}]`, transcript.Malformed, "", "", "", batch},
		{transcript.Agent, `{}`, transcript.Malformed, "", "", "",
			`the message has no "jsonrpc" member, which must be "2.0"`},
	} {
		e := log.AppendFrame(0, c.from, []byte(c.line), 0)
		if e.Kind != c.kind || e.Method != c.method || e.Session != c.session || acpframe.Update(e) != c.update ||
			e.Problem != c.problem {
			t.Errorf("%s: %s %s in %s, update %q, problem %q", c.line, e.Kind, e.Method, e.Session, acpframe.Update(e),
				e.Problem)
		}
	}
}

// In version 2 an idle state that repeats the last one completes no prompt that was sent
// meanwhile; one that ends work does, also before the prompt is answered.
func TestCompletes(t *testing.T) {
	const idle = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
		`"update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`
	running := strings.Replace(idle, `"state":"idle","stopReason":"end_turn"`, `"state":"running"`, 1)
	const prompt = `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`
	for name, c := range map[string]struct {
		after []string
		ref   int
	}{
		"a repeated one":     {[]string{idle}, 0},
		"one that ends work": {[]string{running, idle}, 1},
		"after the answer":   {[]string{`{"jsonrpc":"2.0","id":1,"result":{"messageId":"m"}}`, running, idle}, 1},
		"after a refused prompt": {[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`, running,
			idle}, 0},
	} {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.V2{}})
		if err != nil {
			t.Fatal(err)
		}
		log.AppendFrame(0, transcript.Editor, []byte(prompt), 0)
		var last transcript.Entry
		for _, raw := range c.after {
			last = log.AppendFrame(0, transcript.Agent, []byte(raw), 0)
		}
		if last.Ref != c.ref {
			t.Errorf("%s: completes #%d, want #%d", name, last.Ref, c.ref)
		}
		log.Close()
	}
}
