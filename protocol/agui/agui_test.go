package agui_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// against runs a scenario against a server of this test.
func against(t *testing.T, url, script string) results.Result {
	t.Helper()
	s, err := agui.V1().Parse("x", "x.txtar",
		[]byte("protocol ag-ui\n# X.\n"+script+"\n-- llm.yaml --\nreplies:\n  - - text: Hi.\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := &scenarios.Engine{Protocol: agui.V1(), Profile: &agents.Profile{Name: "x", URL: url}, Temp: t.TempDir(),
		Cwd:    t.TempDir(),
		NoTrap: true, NoFurther: true, StepTimeout: 2 * time.Second}
	return e.Run(context.Background(), s)
}

func told(r results.Result) string {
	var b strings.Builder
	b.WriteString(r.Verdict.String() + " " + r.Reason + "\n")
	for _, f := range r.Findings {
		b.WriteString(f.Class.String() + " " + f.Rule + " " + f.Message + "\n")
	}
	for _, c := range r.Checks {
		if c.Failure != nil {
			b.WriteString(c.Slug + ": " + c.Failure.Error() + " " + c.Failure.Reason + "\n")
		}
	}
	if r.Failure != nil {
		b.WriteString(r.Failure.Error() + " " + r.Failure.Reason + "\n")
	}
	return b.String()
}

// Whatever a server does, the run ends, and says in one place what it was.
func TestBadServers(t *testing.T) {
	const start = "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n"
	stream := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(text))
		_ = http.NewResponseController(w).Flush()
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  []string
	}{
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<h1>Welcome</h1>"))
		}, []string{`content type "text/html" instead of text/event-stream`, "end no stream"}},
		"a redirect": {func(w http.ResponseWriter,
			r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
			[]string{"refused", "status=302"}},
		"an error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
			[]string{"refused", "status=502"}},
		"nothing": {func(w http.ResponseWriter, _ *http.Request) { stream(w, "") },
			[]string{"ended without an event", "end closed"}},
		"half an event": {func(w http.ResponseWriter, _ *http.Request) { stream(w, start+"data: {\"type\":\"RUN_FI") },
			[]string{"The data of a server-sent event is not an AG-UI event: the line is cut off",
				"without RUN_FINISHED"}},
		"a broken connection": {func(w http.ResponseWriter,
			_ *http.Request) {
			stream(w, start)
			panic(http.ErrAbortHandler)
		},
			[]string{"The connection broke before the end of the run", "end cut"}},
		"a stream without an end": {func(w http.ResponseWriter, r *http.Request) {
			stream(w, start)
			<-r.Context().Done()
		}, []string{"expected finished, got none"}},
		"an event of 20 MiB": {func(w http.ResponseWriter, _ *http.Request) {
			stream(w, start+"data: {\"type\":\"CUSTOM\",\"name\":\""+strings.Repeat("x", 20<<20)+"\"}\n\n")
		}, []string{"bytes long, more than the limit"}},
		"a stream that is compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/event-stream")
			packed := gzip.NewWriter(w)
			_, _ = packed.Write([]byte(start))
			_ = packed.Flush()
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, []string{"The connection broke before the end of the run"}},
		"a stream that only says that it is compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			stream(w, start)
		}, []string{"gzip: invalid header"}},
		"another coding": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			stream(w, start)
		}, []string{`the response has content encoding \"br\"`, "end no stream"}},
		"an event of 64 MiB, compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/event-stream")
			packed := gzip.NewWriter(w)
			defer packed.Close()
			_, _ = packed.Write([]byte(start + "data: {\"type\":\"CUSTOM\",\"name\":\""))
			for range 64 {
				_, _ = packed.Write(bytes.Repeat([]byte("x"), 1<<20))
			}
			_, _ = packed.Write([]byte("\"}\n\n"))
		}, []string{"bytes long, more than the limit"}},
		"carriage returns and a mark": {func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "\uFEFF"+strings.ReplaceAll(start, "\n", "\r\n"))
		}, []string{"2 lines of the stream end with a carriage return", "byte order mark"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.serve)
			defer server.Close()
			await := "await finished"
			if strings.Contains(c.want[0], "the limit") {
				await += " within=60s" // a busy machine takes longer than 2 s for many MiB
			}
			got := told(against(t, server.URL, "check a\nrun 'Say hi.'\n"+await))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not said of it:\n%s", want, got)
				}
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		r := against(t, "http://127.0.0.1:1/", "check a\nrun 'Say hi.'\nawait finished")
		if got := told(r); !r.NotStarted || !strings.Contains(got, "nobody listens at http://127.0.0.1:1/") {
			t.Error(got)
		}
	})
}

// A recording of events alone is judged: lines of JSON, or a captured stream.
func TestRecordings(t *testing.T) {
	const right = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}
`
	const tool = `{"id":"o","role":"tool","toolCallId":"c","content":"x"}`
	const orphan = `{"threadId":"t","runId":"r","messages":[` + tool + "]}\n"
	const snapshot = `{"type":"MESSAGES_SNAPSHOT","messages":[` + tool +
		`,{"id":"m","role":"assistant","content":"Hi"}]}` + "\n"
	const doubled = `{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"f","parentMessageId":"p"}` + "\n" +
		`{"type":"TOOL_CALL_ARGS","toolCallId":"d","delta":"{\"a\": 1}"}` + "\n" +
		`{"type":"TOOL_CALL_END","toolCallId":"d"}` + "\n" +
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"p","role":"assistant","toolCalls":[{"id":"d",` +
		`"type":"function","function":` +
		`{"name":"f","arguments":"{\"a\":1}{\"a\":1}"}}]}]}` + "\n"
	const empty = `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","content":"Hi"},{"id":"e",` +
		`"role":"assistant"}]}` + "\n"
	const opened = `{"type":"TEXT_MESSAGE_CHUNK","messageId":"e","role":"assistant"}` + "\n" +
		`{"type":"REASONING_MESSAGE_CHUNK","messageId":"t","delta":"Hm."}` + "\n"
	judge := replay.Judge{Protocol: aguirecord.Protocol{}, Rules: agui.V1().Rules, Text: agui.V1().Canonical}
	sse := func(lines string) string {
		return "data: " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n\ndata: ") + "\n\n"
	}
	for name, c := range map[string]struct{ text, rule string }{
		"right":         {right, ""},
		"right, as SSE": {": hello\n\n" + sse(right), ""},
		"no end": {sse(strings.SplitAfter(right, "END\",\"messageId\":\"m\"}\n")[0]),
			"RUN-FRAME"},
		"text unopened": {strings.Replace(right, `"TEXT_MESSAGE_START"`, `"REASONING_START"`, 1),
			"TEXT-PAIR"},
		"with its input": {`{"threadId":"other","runId":"r","messages":[]}` + "\n" + right, "RUN-ID"},
		"the client's own orphan": {orphan + strings.Replace(right, `{"type":"RUN_F`, snapshot+`{"type":"RUN_F`,
			1), ""},
		"an orphan": {strings.Replace(right, `{"type":"RUN_F`, snapshot+`{"type":"RUN_F`, 1),
			"MESSAGES"},
		"arguments twice": {strings.Replace(right, `{"type":"RUN_F`, doubled+`{"type":"RUN_F`, 1),
			"MESSAGES"},
		"an empty message": {strings.Replace(right, `{"type":"RUN_F`, empty+`{"type":"RUN_F`, 1),
			"MESSAGES"},
		"an empty message, in a chunk": {strings.Replace(right, `{"type":"RUN_F`, opened+empty+`{"type":"RUN_F`, 1),
			""},
		"an event unread": {right + "{\"type\":\"CUSTOM\",\"name\":\"a.b\",\"value\":1}\n", "RUN-FRAME"},
	} {
		log, err := aguirecord.Read(strings.NewReader(c.text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !aguirecord.Looks([]byte(c.text)) {
			t.Errorf("%s: it is not recognized", name)
		}
		r := judge.Check(name, log)
		found := false
		for _, f := range r.Findings {
			found = found || f.Rule == c.rule
		}
		if c.rule == "" && len(r.Findings) > 0 || c.rule != "" && !found {
			t.Errorf("%s: got %+v, want %s", name, r.Findings, c.rule)
		}
	}
	// The bytes of a stream do not show who closed it, and calls that are named as pending are the front end's.
	const pending = `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}` + "\n" +
		`{"type":"TOOL_CALL_END","toolCallId":"c"}` +
		"\n" + `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success",` +
		`"pendingToolCallIds":["c"]}}` + "\n"
	whole := strings.SplitAfter(strings.SplitAfter(right, "END\",\"messageId\":\"m\"}\n")[0]+pending, "\n")
	for n := 1; n < len(whole); n++ {
		log, err := aguirecord.Read(strings.NewReader(sse(strings.Join(whole[:n], ""))))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range judge.Check("cut", log).Findings {
			if f.Rule != "RUN-FRAME" || f.Class != rules.Inconclusive || n == len(whole)-1 {
				t.Errorf("cut after %d events: %v %s %s", n, f.Class, f.Rule, f.Message)
			}
		}
	}
	for _, text := range []string{"", "hello", `{"jsonrpc":"2.0","method":"x"}`} {
		if aguirecord.Looks([]byte(text)) {
			t.Errorf("%q is taken for a recording of AG-UI", text)
		}
	}
}

// The guide's scenario is read, and its commands name what is there.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/ag-ui.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(text), "    protocol ag-ui\n")
	example, _, _ = strings.Cut(example, "\n| | |")
	script := "protocol ag-ui\n" + strings.ReplaceAll("\n"+example, "\n    ", "\n")
	if _, err := agui.V1().Parse("x", "x.txtar", []byte(script)); !found || err != nil {
		t.Errorf("the example of the guide: %v\n%s", err, script)
	}
	for _, c := range agui.V1().Words {
		if c.Name != "thread" && !strings.Contains(string(text), "`"+c.Name) {
			t.Errorf("the guide does not name %s", c.Name)
		}
	}
}

// What is found has the same order each time: that of the events.
func TestFindingsHaveAnOrder(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}` + "\n")
	var want []string
	for _, name := range strings.Split("one two three four five six seven eight", " ") {
		fmt.Fprintf(&text, `{"type":"STEP_STARTED","stepName":%q}`+"\n", name)
		want = append(want, fmt.Sprintf("The run finished while step %q was open.", name))
	}
	text.WriteString(`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}` + "\n")
	log, err := aguirecord.Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	judge := replay.Judge{Protocol: aguirecord.Protocol{}, Rules: agui.V1().Rules, Text: agui.V1().Canonical}
	for range 5 {
		var got []string
		for _, f := range judge.Check("x", log).Findings {
			got = append(got, f.Message)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// A call that the input has is streamed again by the agent, unless the model may have given its id once more.
func TestACallThatTheModelGaveAgain(t *testing.T) {
	const begin = `{"acp-test":3,"protocol":"ag-ui"}
{"seq":1,"ms":1,"from":"editor","kind":"request","id":"r","method":"run","session":"t","msg":{"threadId":"t",` +
		`"runId":"r","messages":[{"id":"u","role":"user","content":"Hi."},{"id":"a","role":"assistant",` +
		`"toolCalls":[{"id":"c","type":"function","function":{"name":"pick","arguments":"{}"}}]},{"id":"x",` +
		`"role":"tool","toolCallId":"c","content":"yes"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}}
`
	const call = `{"seq":%d,"ms":1,"from":"model","kind":"model-answer","session":"t","msg":{"n":1,"steps":[%q]}}
`
	for step, want := range map[string]bool{"text: Yes.": true, "tool: pick": false} {
		text := begin + fmt.Sprintf(call, 2, step)
		for i, event := range []string{`"RUN_STARTED","threadId":"t","runId":"r"`,
			`"TOOL_CALL_START","toolCallId":"c","toolCallName":"pick"`,
			`"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"`, `"TOOL_CALL_END","toolCallId":"c"`,
			`"RUN_FINISHED","threadId":"t","runId":"r"`} {
			kind, _, _ := strings.Cut(event, ",")
			text += fmt.Sprintf(`{"seq":%d,"ms":1,"from":"agent","kind":"notification","method":%s,"session":"t",`+
				`"ref":1,"msg":{"type":%s}}`+"\n", i+3, kind, event)
		}
		log, err := transcript.Load(strings.NewReader(text), agui.V1().Classifier)
		if err != nil {
			t.Fatal(err)
		}
		judge := replay.Judge{Protocol: aguirecord.Protocol{}, Rules: agui.V1().Rules, Text: agui.V1().Canonical}
		told := slices.ContainsFunc(judge.Check("x", log).Findings,
			func(f results.Finding) bool { return f.Rule == "RESTATED" })
		if told != want {
			t.Errorf("the model says %q: told %v", step, told)
		}
	}
}

// One plain run more is posted where all went well, but not while the front end owes the answer to a call.
func TestNoMoreRunsWhileAnAnswerIsOwed(t *testing.T) {
	for tool, want := range map[string]int64{"theirs": 1, "own": 2} {
		var posts atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			posts.Add(1)
			var in struct{ ThreadID, RunID string }
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				t.Error(err)
			}
			ids := fmt.Sprintf(`"threadId":%q,"runId":%q}`, in.ThreadID, in.RunID)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(sse(`{"type":"RUN_STARTED",`+ids, fmt.Sprintf(
				`{"type":"TOOL_CALL_START","toolCallId":"c-%s","toolCallName":%q}`, in.RunID, tool,
			),
				fmt.Sprintf(`{"type":"TOOL_CALL_END","toolCallId":"c-%s"}`, in.RunID), `{"type":"RUN_FINISHED",`+ids)))
		}))
		s, err := agui.V1().Parse("x", "x.txtar",
			[]byte("protocol ag-ui\n# X.\nrun 'Hi.' tools='[{\"name\":\"theirs\",\"description\":\"\","+
				"\"parameters\":{}}]'\n"+
				"await finished\n-- llm.yaml --\nreplies:\n  - - text: Hi.\n"))
		if err != nil {
			t.Fatal(err)
		}
		(&scenarios.Engine{Protocol: agui.V1(), Profile: &agents.Profile{Name: "x", URL: server.URL}, Temp: t.TempDir(),
			Cwd:    t.TempDir(),
			NoTrap: true, StepTimeout: time.Second}).Run(context.Background(), s)
		server.Close()
		if got := posts.Load(); got != want {
			t.Errorf("a call of %s: %d posts", tool, got)
		}
	}
}

// The headers of a profile go with each request, with the values of variables that the environment has; a line can
// say otherwise. Cookies come back.
func TestHeadersAndCookies(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization")+" "+r.Header.Get("Cookie"))
		http.SetCookie(w, &http.Cookie{Name: "session", Value: fmt.Sprint(len(seen)), Path: "/"})
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(sse(startOf, endOf)))
	}))
	defer server.Close()
	s, err := agui.V1().Parse("x", "x.txtar",
		[]byte("protocol ag-ui\n# X.\nrun 'One.'\nawait finished\nrun 'Two.' header='Authorization: none'\n"+
			"await finished\n"+
			"-- llm.yaml --\nreplies:\n  - - text: Hi.\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := &scenarios.Engine{Protocol: agui.V1(),
		Profile: &agents.Profile{Name: "x", URL: server.URL,
			Headers: map[string]string{"Authorization": "Bearer $TOKEN"}},
		Host: []string{"TOKEN=abc"}, Temp: t.TempDir(), Cwd: t.TempDir(), NoTrap: true, NoFurther: true,
		StepTimeout: 2 * time.Second}
	e.Run(context.Background(), s)
	if want := []string{"Bearer abc ", "none session=1"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
	e.Host = nil
	if got := told(e.Run(context.Background(), s)); !strings.Contains(got,
		"the header Authorization of x: the variable $TOKEN is not set") {
		t.Error(got)
	}
}
