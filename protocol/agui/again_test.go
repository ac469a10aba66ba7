package agui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/transcript"
)

// A recording is posted again as it was: what ran side by side does so, what came behind waits, and the front end hangs
// up where it did.
func TestAgain(t *testing.T) {
	recording, err := transcript.New(transcript.Header{Protocol: "ag-ui"},
		transcript.Options{Classifier: aguirecord.Protocol{}})
	if err != nil {
		t.Fatal(err)
	}
	post := func(run string) int {
		return recording.AppendFrame(0, transcript.Editor,
			fmt.Appendf(nil, `{"threadId":"t","runId":%q,"messages":[]}`, run), 0).Seq
	}
	event := func(ref int) {
		recording.AppendReply(0, ref, []byte(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`), 0)
	}
	end := func(ref int, how string) {
		raw, _ := json.Marshal(endpoint.End{End: how})
		recording.Append(transcript.Entry{Source: transcript.Agent, Kind: transcript.Ended, Ref: ref, Raw: raw})
	}
	a := post("a")
	event(a)
	b := post("b") // beside a
	end(b, endpoint.Closed)
	event(a)
	end(a, endpoint.HungUp)
	c := post("c") // behind both
	end(c, endpoint.Closed)

	var order []string // guarded by what happens one after the other
	besides, gone := make(chan bool), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		say := func() {
			_, _ = io.WriteString(w, "data: {\"type\":\"RUN_STARTED\"}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		switch {
		case strings.Contains(string(body), `"a"`):
			say()
			<-besides // b is there while this goes on
			say()
			<-r.Context().Done()
			order = append(order, "a gone")
			close(gone)
		case strings.Contains(string(body), `"b"`):
			close(besides)
		default:
			<-gone
			order = append(order, string(body))
		}
	}))
	defer server.Close()
	if err := endpoint.Again(context.Background(), recording, server.URL); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a gone", `{"threadId":"t","runId":"c","messages":[]}`}; !slices.Equal(order, want) {
		t.Errorf("got %q, want %q", order, want)
	}
}
