package agui_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/transcript"
)

// A recording is served as it was, with the ids of the runs that are posted now; who posts more is told so.
func TestServeARecording(t *testing.T) {
	recording, err := aguirecord.Read(strings.NewReader(`{"threadId":"old","runId":"r-1","messages":[]}
{"type":"RUN_STARTED","threadId":"old","runId":"r-1"}
{"type":"RUN_FINISHED","threadId":"old","runId":"r-1"}
{"threadId":"old","runId":"r-2","messages":[]}
{"type":"RUN_STARTED","threadId":"old","runId":"r-2"}
{"type":"RUN_ERROR","message":"no"}
`))
	if err != nil {
		t.Fatal(err)
	}
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: aguirecord.Protocol{}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(endpoint.Front(aguirecord.Protocol{}, nil, recording, log))
	defer server.Close()
	post := func() (int, string) {
		r, err := http.Post(server.URL, "application/json",
			bytes.NewReader([]byte(`{"threadId":"new","runId":"mine","messages":[]}`)))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(text)
	}
	want := []string{sse(`{"type":"RUN_STARTED","threadId":"new","runId":"mine"}`,
		`{"type":"RUN_FINISHED","threadId":"new","runId":"mine"}`),
		sse(`{"type":"RUN_STARTED","threadId":"new","runId":"mine"}`, `{"type":"RUN_ERROR","message":"no"}`)}
	for i, w := range want {
		if status, got := post(); status != 200 || got != w {
			t.Errorf("post %d: %d\n%s", i+1, status, got)
		}
	}
	if status, _ := post(); status != http.StatusGone {
		t.Errorf("the third post: %d", status)
	}
}
