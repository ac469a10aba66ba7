package agui_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	startOf = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`
	endOf   = `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`
)

// broken are answers that the specification forbids, and the rules that find them; passes says that the official client
// calls the run a success.
var broken = []struct {
	rule, name, body string
	passes           bool
}{
	{"RUN-FRAME", "an empty stream", "", true},
	{"RUN-FRAME", "a stream without the end of its run", sse(startOf), true},
	{"RUN-FRAME", "a stream that ends in the middle of a message",
		sse(startOf, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`), true},
	{"SSE-FORM", "a page in HTML", "<h1>Welcome</h1>", true},
	{"RUN-ID", "a run with the id of another", strings.ReplaceAll(sse(startOf, endOf), `"r"`, `"other"`), true},
	{"STATE-PATCH", "a patch of a value that does not exist",
		sse(startOf, `{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/a","value":1}]}`, endOf), true},
	{"TOOL-RESULT", "a result with the id of the user's message", sse(startOf,
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"u","toolCallId":"c","content":"x"}`, endOf), true},
	{"MESSAGES", "a snapshot without the user's message",
		sse(startOf, `{"type":"MESSAGES_SNAPSHOT","messages":[]}`, endOf), true},
	{"RUN-FRAME", "an event behind the end", sse(startOf, endOf, `{"type":"CUSTOM","name":"a.b","value":1}`), false},
	{"RUN-CLOSED", "a message that is not closed", sse(startOf, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`, endOf),
		false},
	{"SSE-FORM", "data that is not valid JSON", "data: hello\n\n", false},
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

// Each of these answers fails here, and some are a success for the official client.
func TestWhatTheOfficialClientLetsPass(t *testing.T) {
	guide, err := os.ReadFile("../../docs/ag-ui.md")
	if err != nil {
		t.Fatal(err)
	}
	var urls bytes.Buffer
	for _, b := range broken {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			kind := "text/event-stream"
			if strings.HasPrefix(b.body, "<") {
				kind = "text/html"
			}
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, b.body)
		}))
		t.Cleanup(server.Close)
		fmt.Fprintln(&urls, server.URL)
		got := told(against(t, server.URL,
			"thread main "+
				"id=t\ncheck "+
				"a\nrun 'Hi.' with='{\"runId\":\"r\",\"messages\":[{\"id\":\"u\",\"role\":\"user\","+
				"\"content\":\"Hi.\"}]}'\nawait turn any|error"))
		if !strings.Contains(got, "\nfail "+b.rule) {
			t.Errorf("%s: %s does not find it:\n%s", b.name, b.rule, got)
		}
		if b.passes && !strings.Contains(string(guide), b.name) {
			t.Errorf("docs/ag-ui.md does not name %s", b.name)
		}
	}
	installed(t)
	client := exec.Command("node", "client.mjs")
	client.Dir, client.Stdin, client.Stderr = officialDir, &urls, os.Stderr
	out, err := client.Output()
	if err != nil {
		t.Fatal(err)
	}
	says := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(says) != len(broken) {
		t.Fatalf("%d answers to %d streams", len(says), len(broken))
	}
	for i, b := range broken {
		if (says[i] == "success") != b.passes {
			t.Errorf("%s: the official client says %s", b.name, says[i])
		}
	}
}
