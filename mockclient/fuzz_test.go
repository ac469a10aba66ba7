package mockclient_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// FuzzPolicy: whatever is asked and offered, nothing is allowed that no rule
// allows, and a request without its wish is noted.
func FuzzPolicy(f *testing.F) {
	f.Add("edit", "Write a", "allow_once", "Write*", byte(0))
	f.Add("", "", "", "/(/", byte(3))
	f.Add("edit", "t", "allow_always", "**?*", byte(16))
	f.Fuzz(func(t *testing.T, kind, title, offered, pattern string, which byte) {
		wishes := []string{"allow_once", "reject_once", "allow_always", "reject_always"}
		wish := wishes[int(which)%len(wishes)]
		p := &mockclient.Policy{Remember: mockclient.Memory(which / 16 % 3),
			Rules: []mockclient.Rule{{Title: pattern, Kind: kind, Answer: mockclient.Answer{Kind: wish}}}}
		for range 2 {
			chosen, noted := p.Decide("s", kind, title, [][2]string{{"a", offered}, {"b", "reject_once"}})
			got := map[string]string{"a": offered, "b": "reject_once"}[chosen]
			switch got {
			case "allow_once", "allow_always":
				if wish != got && (wish != "allow_once" || !noted) {
					t.Fatalf("%s was chosen where %s was wished", got, wish)
				}
			case "":
				if !noted {
					t.Fatal("no choice, and no note why")
				}
			}
		}
	})
}

// FuzzAgent: whatever an agent writes, it is in the transcript as it was, and
// the editor still answers.
func FuzzAgent(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/request_permission\"," +
		"\"params\":{\"sessionId\":\"s\",\"options\":[7]}}"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"terminal/create\",\"params\":[]}\n\n\xff\x00{"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\"," +
		"\"update\":{\"sessionUpdate\":\"tool_call\",\"toolCallId\":[]}}}"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\"," +
		"\"message\":\"\",\"requestedSchema\":{\"properties\":{\"a\":{\"type\":\"array\",\"minItems\":1e9}}," +
		"\"required\":[\"a\"]}}}"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"fs/read_text_file\",\"params\":{\"sessionId\":\"s\"," +
		"\"path\":\"/\\u0000/..\",\"line\":1e99}}"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, wrote []byte) {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		if err != nil {
			t.Fatal(err)
		}
		a := mockclient.InProcess(log, 0, func(_ context.Context, in io.Reader, out io.Writer) error {
			p := newPeer(in, out)
			p.handshake()
			_, _ = out.Write(append(wrote, '\n'))
			p.send(`{"jsonrpc":"2.0","id":"barrier","method":"barrier"}`)
			p.until("", `"barrier"`)
			p.send(`{"jsonrpc":"2.0","method":"end"}`)
			return nil
		})
		caps := mockclient.DefaultCapabilities()
		caps.Set("elicitation.form", map[string]any{})
		e := mockclient.NewEditor(a, mockclient.Options{
			Capabilities: caps,
			Elicitation: &mockclient.Elicitation{
				Rules: []mockclient.ElicitRule{{Answer: mockclient.ElicitAnswer{Accept: true}}},
			},
		})
		defer e.Close(context.Background())
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if _, err := e.Initialize(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := e.NewSession(ctx, mockclient.SessionOptions{Cwd: dir}); err != nil {
			t.Fatal(err)
		}
		if o := log.Await(ctx, 0, named("end")); !o.Met() {
			t.Fatalf("the editor does not answer any more: %s", o.Reason)
		}
		var logged []byte
		for f := range log.All() {
			if f.Source == transcript.Agent && f.Size == 0 {
				logged = append(append(logged, f.Raw...), '\n')
			}
		}
		if !bytes.Contains(logged, append(wrote, '\n')) {
			t.Fatalf("%q is not in the transcript as it was written", wrote)
		}
	})
}
