package agui_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/refagent/webagent"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

const asked = `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"Hi."}],"tools":[],` +
	`"context":[]}`

// tapped is a proxy in front of an endpoint, and the file that it writes.
func tapped(t *testing.T, target string) (url, file string, done func()) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "recording.jsonl")
	log, err := transcript.New(transcript.Header{Tool: "test", Protocol: "ag-ui"},
		transcript.Options{Classifier: aguirecord.Protocol{}, Path: file, Through: true})
	if err != nil {
		t.Fatal(err)
	}
	u, err := endpoint.Target(target)
	if err != nil {
		t.Fatal(err)
	}
	tap := endpoint.NewTap(u, log)
	server := httptest.NewServer(tap)
	done = sync.OnceFunc(func() {
		server.CloseClientConnections()
		server.Close()
		tap.Wait()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(done)
	return server.URL + "/", file, done
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each event is in the file when the front end gets it, comments wait for no event, and the bytes are those of the
// endpoint.
func TestTapIsTransparent(t *testing.T) {
	pieces := []string{": hello\n\n", "id: 1\ndata: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n",
		":\n",
		"data: {\"type\":\"CUSTOM\",\ndata: \"name\":\"a.b\",\"value\":1}\r\n\r\n",
		"data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n"}
	next := make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != asked || r.URL.Path != "/agent" ||
			r.Header.Get("X-Mine") != "yes" {
			t.Errorf("got %s, header %v, body %s", r.URL, r.Header, body)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}))
	defer server.Close()
	url, file, done := tapped(t, server.URL+"/agent")
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(asked))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Mine", "yes")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	in := bufio.NewReader(answer.Body)
	for _, want := range pieces {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
		if name := `CUSTOM`; strings.Contains(want, name) && !strings.Contains(contents(t, file), name) {
			t.Error("an event was passed on before it was in the file")
		}
		next <- true
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("then came %q, %v", rest, err)
	}
	done()
	log, err := aguirecord.Read(strings.NewReader(contents(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for e := range log.All() {
		kinds = append(kinds, e.Method+" "+string(e.Kind)+" "+endpoint.EndOf(e))
	}
	if got := strings.Join(kinds, ", "); got != "run request , run response , RUN_STARTED notification , CUSTOM "+
		"notification , RUN_FINISHED notification , run ended finished" {
		t.Error(got)
	}
}

// What is no stream is passed on too, and recorded with its beginning; what is no post is only passed on.
func TestTapOfOtherAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			return
		}
		http.Error(w, "no such agent", http.StatusNotFound)
	}))
	url, file, done := tapped(t, server.URL)
	preflight, err := http.NewRequest(http.MethodOptions, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := http.DefaultClient.Do(preflight); err != nil || r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%v, %v", r, err)
	}
	post := func() (int, string) {
		r, err := http.Post(url, "application/json", strings.NewReader(asked))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(body)
	}
	if status, body := post(); status != 404 || body != "no such agent\n" {
		t.Errorf("%d %q", status, body)
	}
	server.Close()
	if status, body := post(); status != 502 || !strings.Contains(body, "the endpoint cannot be reached") {
		t.Errorf("%d %q", status, body)
	}
	done()
	text := contents(t, file)
	for _, want := range []string{`no such agent\n`, `"end":"refused"`, `"end":"unreachable"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in it:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Access-Control") {
		t.Errorf("a request that asks for no run is in it:\n%s", text)
	}
}

// Whatever front ends do, through the proxy it is the same: all suites pass with their goldens, and the rules find
// nothing in the recording.
func TestSuitesThroughATap(t *testing.T) {
	e := engine(t, "")
	var mu sync.Mutex
	var files []string
	var ends []func()
	e.Connect = func(_ context.Context, log *transcript.Transcript, conn int, l agents.Launch) (*transport.Agent,
		error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		env := map[string]string{}
		for _, kv := range l.Env {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		url, file, done := tapped(t, "http://"+listener.Addr().String()+"/")
		mu.Lock()
		files, ends = append(files, file), append(ends, done)
		mu.Unlock()
		o := webagent.Options{Listener: listener, Dir: l.Dir, Getenv: func(name string) string { return env[name] }}
		return transport.InProcessServer(log, conn, endpoint.At(url),
			func(ctx context.Context) error { return webagent.Serve(ctx, o) }), nil
	}
	e.Golden = &golden.Store{Embedded: golden.Shipped()}
	for _, r := range e.RunAll(context.Background(), shipped(t), scenarios.Plan{Jobs: 4}).Results {
		wanted := results.Pass
		if slices.Contains(skipped, r.ID) {
			wanted = results.Skip
		}
		if r.Verdict != wanted {
			t.Errorf("%s: %s %s", r.ID, r.Verdict, told(r))
		}
	}
	judge := replay.Judge{Protocol: aguirecord.Protocol{}, Rules: agui.V1().Rules, Text: agui.V1().Canonical}
	events := 0
	for i, file := range files {
		ends[i]()
		log, err := aguirecord.Read(bytes.NewReader([]byte(contents(t, file))))
		if err != nil {
			continue // nothing was posted
		}
		for _, f := range judge.Check("x", log).Findings {
			if f.Class == results.Fail {
				t.Errorf("%s: %s %s", file, f.Rule, f.Message)
			}
		}
		events += log.Len()
	}
	if events < 2000 {
		t.Errorf("the recordings have %d entries", events)
	}
}
