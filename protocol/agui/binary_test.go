package agui_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// packed is what the official packages make of an event in the binary form: see ci/agui/binary.mjs.
type packed struct {
	Bytes  string
	Event  any
	Warned bool
	Error  string
}

func officialBinary(t *testing.T, lines []any) (all []packed) {
	t.Helper()
	installed(t)
	var in bytes.Buffer
	for _, line := range lines {
		raw, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(raw, '\n'))
	}
	script := exec.Command("node", "binary.mjs")
	script.Dir, script.Stdin, script.Stderr = officialDir, &in, os.Stderr
	out, err := script.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out) {
		var p packed
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) != len(lines) {
		t.Fatalf("%d answers to %d lines", len(all), len(lines))
	}
	return all
}

// various are events with all that their members may be.
func various() []event {
	all := whole()
	for _, e := range whole() {
		e["timestamp"], e["rawEvent"] = 1700000000001, event{"a": []any{1.5, nil, true, "x", event{}, []any{}, -1e300}}
		e["metadata"] = event{"": "empty", "é": event{"deep": []any{[]any{[]any{nil}}}}}
		all = append(all, e)
	}
	part := func(kind string, source any) event {
		e := event{"type": kind, "metadata": event{"a": 1}}
		if kind == "text" {
			e["text"], e["id"] = "", "p"
		} else {
			e["source"] = source
		}
		return e
	}
	data, url, file := event{"type": "data", "value": "AAAA", "mimeType": "image/png"},
		event{"type": "url", "value": "https://example.com/a"},
		event{"type": "file", "value": "f", "provider": "openai", "mimeType": "a/b"}
	parts := []any{part("text", nil), part("image", data), part("audio", url), part("video", file),
		part("document", url)}
	messages := []any{
		event{"id": "1", "role": "developer", "content": "a"},
		event{"id": "2", "role": "system", "content": "", "name": "n"},
		event{"id": "3", "role": "user", "content": parts}, event{"id": "4", "role": "user", "content": []any{}},
		event{"id": "5", "role": "assistant", "subagentRunId": "s", "metadata": event{"a": nil}, "toolCalls": []any{
			event{"id": "c", "type": "function", "function": event{"name": "f", "arguments": "{}"},
				"encryptedValue": "v"}}},
		event{"id": "6", "role": "tool", "content": "x", "toolCallId": "c", "error": "no"},
		event{"id": "7", "role": "activity", "activityType": "PLAN", "content": event{"steps": []any{1, 2}}},
		event{"id": "8", "role": "reasoning", "content": "hm", "encryptedValue": "v"},
	}
	interrupt := event{"id": "i", "reason": "tool_call", "message": "May I?", "toolCallId": "c",
		"responseSchema": event{"type": "object"},
		"expiresAt":      "tomorrow", "metadata": event{"a": 1}, "subagentRunId": "s"}
	patch := []any{event{"op": "add", "path": "", "value": nil}, event{"op": "remove", "path": "/a"},
		event{"op": "replace", "path": "/a/0", "value": 0},
		event{"op": "move", "path": "/a", "from": "/b"}, event{"op": "copy", "path": "/a", "from": ""},
		event{"op": "test", "path": "/~0", "value": []any{}}}
	input := event{"threadId": "t", "runId": "r", "parentRunId": "p", "state": event{"a": 1}, "messages": messages,
		"tools": []any{event{"name": "f", "description": "d", "parameters": event{"type": "object"},
			"metadata": event{}}},
		"context": []any{event{"description": "d", "value": "v"}}, "forwardedProps": event{"a": []any{}},
		"protocolVersion": "1.0",
		"resume": []any{event{"interruptId": "i", "status": "resolved", "payload": event{"approved": true},
			"metadata": event{"a": 1}}}}
	usage := []any{event{"provider": "p", "model": "m", "inputTokens": 0, "outputTokens": 9007199254740991,
		"totalTokens":     3,
		"reasoningTokens": 1, "cachedInputTokens": 2, "cacheWriteInputTokens": 3}, event{}}
	finished := func(pairs ...any) event {
		return ev("RUN_FINISHED", append([]any{"threadId", "t", "runId", "r"}, pairs...)...)
	}
	return append(all,
		ev("RUN_STARTED", "threadId", "", "runId", "é\u0000😀", "input", input),
		ev("MESSAGES_SNAPSHOT", "messages", messages), ev("MESSAGES_SNAPSHOT", "messages", []any{}),
		ev("STATE_DELTA", "delta", patch), ev("STATE_DELTA", "delta", []any{}),
		ev("ACTIVITY_DELTA", "messageId", "m", "activityType", "a", "patch", patch),
		ev("ACTIVITY_SNAPSHOT", "messageId", "m", "activityType", "a", "content", event{}, "replace", false),
		ev("TOOL_CALL_RESULT", "messageId", "m", "toolCallId", "c", "content", parts),
		ev("TOOL_CALL_RESULT", "messageId", "m", "toolCallId", "c", "content", []any{}),
		ev("TOOL_CALL_RESULT", "messageId", "m", "toolCallId", "c", "content", ""),
		ev("TEXT_MESSAGE_CONTENT", "messageId", "m", "delta", ""), ev("TEXT_MESSAGE_CHUNK"), ev("TOOL_CALL_CHUNK"),
		ev("REASONING_MESSAGE_CHUNK"),
		finished(), finished("outcome", event{"type": "success", "pendingToolCallIds": []any{"a", "b"}}),
		finished("outcome", event{"type": "cancelled"}),
		finished("outcome", event{"type": "interrupt", "interrupts": []any{interrupt, event{"id": "j", "reason": "x"}}},
			"usage", usage, "result", false),
		ev("RUN_ERROR", "message", "", "usage", usage), ev("CUSTOM", "name", "n", "value", nil),
		ev("STATE_SNAPSHOT", "snapshot", nil),
		ev("STATE_SNAPSHOT", "snapshot", []any{0.1, 1e21, 123456789012345, "a\nb"}), ev("RAW", "event", "x"),
		ev("SUBAGENT_FINISHED", "subagentRunId", "s", "outcome",
			event{"type": "suspended", "interruptIds": []any{"i"}}), ev("SUBAGENT_FINISHED", "subagentRunId", "s"))
}

// same reports whether two events are the same JSON.
func same(t *testing.T, a any, b []byte) bool {
	t.Helper()
	var other any
	if err := json.Unmarshal(b, &other); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return reflect.DeepEqual(a, other)
}

// Of each event that the schemas allow the official encoder and ours make the same bytes, and the official decoder
// and ours the same event, which is the one that was given.
func TestTheBinaryFormIsTheOfficialOne(t *testing.T) {
	events := various()
	var lines []any
	for _, e := range events {
		lines = append(lines, e)
	}
	types := map[string]bool{}
	for i, theirs := range officialBinary(t, lines) {
		raw, _ := json.Marshal(events[i])
		if theirs.Error != "" || theirs.Warned {
			t.Errorf("the official encoder does not like %s: %s", raw, theirs.Error)
			continue
		}
		types[events[i]["type"].(string)] = true
		ours, err := aguiproto.Encode(raw)
		if got := hex.EncodeToString(aguiproto.Framed(ours)); err != nil || got != theirs.Bytes {
			t.Errorf("%s\n  %v, and is %s\n  not %s", raw, err, got, theirs.Bytes)
		}
		frame, _ := hex.DecodeString(theirs.Bytes)
		back, err := aguiproto.Decode(frame[aguiproto.Prefix:])
		if err != nil || !same(t, theirs.Event, back) {
			t.Errorf("%s\n  %v, and is read as %s", raw, err, back)
		}
	}
	if len(types) != 31 {
		t.Errorf("%d types of events: %v", len(types), slices.Sorted(maps.Keys(types)))
	}
}

// message is a message of protobuf, from fields and what they have: a number, a text, or a message.
func message(pairs ...any) (b []byte) {
	for i := 0; i < len(pairs); i += 2 {
		n := protowire.Number(pairs[i].(int))
		switch v := pairs[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
		}
	}
	return b
}

// odd are messages that no encoder of events makes, and what is said of them; "" says that they are read all the same.
var odd = []struct {
	name, says string
	data       []byte
	differs    bool // from the official decoder, on purpose
}{
	{"nothing", "the message has no event", nil, false},
	{"text", "it is not a protobuf message", []byte("data: {}"), false},
	{"an event without a base", "lacks base_event", message(3, message(2, "m")), false},
	{"an event of another type", "its envelope holds a TEXT_MESSAGE_END, but its base_event has type number 0, " +
		"TEXT_MESSAGE_START",
		message(3, message(1, message(1, 0), 2, "m")), false},
	{"an event of no type", "number 99, which is unknown", message(3, message(1, message(1, 99), 2, "m")), false},
	{"two events", "two events, TEXT_MESSAGE_START and TEXT_MESSAGE_END",
		message(1, message(1, message(1, 0)), 3, message(1, message(1, 2))), false},
	{"an event in two parts", "", message(3, message(1, message(1, 2)), 3, message(2, "m")), false},
	{"a base in two parts", "", message(3, message(1, message(1, 2), 2, "m", 1, message(2, 17))), false},
	{"a field twice", "", message(3, message(1, message(1, 2), 2, "a", 2, "b")), false},
	{"a field that nobody knows", "", message(3, message(1, message(1, 2), 2, "m", 90, "x", 91, 7)), false},
	{"a field of another kind", "", message(3, message(1, message(1, 2), 2, 7)), false},
	{"half a field", "field 3 has no value", []byte{3<<3 | 2, 9, 1}, false},
	{"no UTF-8", "TEXT_MESSAGE_END.messageId is not valid UTF-8", message(3, message(1, message(1, 2), 2, "\xff")), true},
	{"a number that JSON has not", "a number that JSON cannot express", message(11, message(1, message(1, 10), 2, "n",
		3, protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), 0x7ff8<<48))), true},
	{"a value of nothing", "", message(11, message(1, message(1, 10), 2, "n", 3, message())), false},
	{"a value of two kinds", "", message(11, message(1, message(1, 10), 2, "n", 3, message(3, "x", 4, 1))), false},
	{"a tool result of both", "has both content and content_parts",
		message(22, message(1, message(1, 21), 3, "m", 4, "c", 5, "x", 7, message(1, message(1, "y")))), false},
	{"a part that nobody knows", "",
		message(22, message(1, message(1, 21), 3, "m", 4, "c", 7, message(9, message(1, "y")))), false},
	{"a part of two kinds", "a Part has more than one of its alternatives",
		message(22, message(1, message(1, 21), 3, "m", 4, "c",
			7, message(1, message(1, "y"), 2, message()))), false},
	{"parts of an assistant", "content_parts, which its role does not allow",
		message(9, message(1, message(1, 8), 2, message(1, "m", 2, "assistant", 8, message(1, message(1, "y"))))),
		false},
	{"an activity of a user", `a message with role "user" has activity_content`,
		message(9, message(1, message(1, 8), 2, message(1, "m", 2, "user", 13, message()))), false},
	{"an operation that nobody knows", "", message(8, message(1, message(1, 7), 2, message(1, 17, 2, "/a"))), false},
	{"an outcome that nobody knows", "", message(13, message(1, message(1, 12), 2, "t", 3, "r", 5, "paused", 8, "c")),
		false},
	{"calls without an outcome", "", message(13, message(1, message(1, 12), 2, "t", 3, "r", 8, "c")), false},
}

// What is wrong with a message is said; what is merely odd is read as the official decoder reads it.
func TestOddMessages(t *testing.T) {
	var lines []any
	for _, o := range odd {
		lines = append(lines, hex.EncodeToString(o.data))
	}
	for i, theirs := range officialBinary(t, lines) {
		o := odd[i]
		got, err := aguiproto.Decode(o.data)
		switch {
		case o.says != "":
			if err == nil || !strings.Contains(err.Error(), o.says) {
				t.Errorf("%s: %v, and %s", o.name, err, got)
			}
			if !o.differs && theirs.Error == "" {
				t.Errorf("%s: the official decoder reads it: %v", o.name, theirs.Event)
			}
		case err != nil || !same(t, theirs.Event, got):
			t.Errorf("%s: %v, and it is %s, not %v (%s)", o.name, err, got, theirs.Event, theirs.Error)
		}
	}
	deep := message(3, "x")
	for range 5_000 {
		deep = message(6, message(1, deep))
	}
	if _, err := aguiproto.Decode(message(11, message(1, message(1, 10), 2, "n", 3, deep))); err == nil ||
		!strings.Contains(err.Error(), "deeper than 1000") {
		t.Errorf("a value of 5000 levels: %v", err)
	}
	if got, err := aguiproto.Decode(message(40, message(1, "x"))); err != nil ||
		string(got) != `{"type":"(field 40)"}` {
		t.Errorf("an event that nobody knows: %s, %v", got, err)
	}
	for _, kind := range []string{"THINKING_START", "Base", "Message", "OURS"} {
		if _, err := aguiproto.Encode(fmt.Appendf(nil, `{"type":%q}`, kind)); !errors.Is(err, aguiproto.ErrNoMessage) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// What an Accept header admits: a positive quality does, also of a range; the closest name counts.
func TestAdmitted(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "text/event-stream": false, aguiproto.MediaType: true,
		"text/event-stream, " + aguiproto.MediaType + ";q=0.1": true,
		aguiproto.MediaType + ";q=0, text/event-stream":        false, "*/*": true, "application/*;q=0.2": true,
		"application/json":                     false,
		"*/*, " + aguiproto.MediaType + ";q=0": false, "*/*;q=0, " + aguiproto.MediaType: true, "nonsense;;, */*": true,
		"Application/VND.ag-ui.event+proto": true,
	} {
		if got := aguiproto.Admitted(accept); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}

func framed(t *testing.T, events ...string) (b []byte) {
	t.Helper()
	for _, e := range events {
		m, err := aguiproto.Encode([]byte(e))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, aguiproto.Framed(m)...)
	}
	return b
}

// The rule reports each mistake in a binary stream once, and the reader goes on after it.
func TestBadFrames(t *testing.T) {
	start, custom, end := framed(t, startOf), framed(t, `{"type":"CUSTOM","name":"a.b","value":1}`), framed(t, endOf)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		body []byte
		kind string
		want []string // the findings
	}{
		"right": {join(start, custom, end), "", nil},
		"two bytes behind the end": {join(start, end, []byte{0, 0}), "",
			[]string{"SSE-FORM After the last event, the body ends within the length of a frame: 4 bytes expected, " +
				"2 received."}},
		"a frame cut behind the end": {join(start, end, custom[:9]), "",
			[]string{"SSE-FORM After the last event, the body ends within a frame: 22 bytes expected, 5 received."}},
		"a frame cut within the run": {join(start, custom, end[:7]), "",
			[]string{"RUN-FRAME The stream ended without RUN_FINISHED or RUN_ERROR; the official client calls that a " +
				"success: the body ends within a frame: 12 bytes expected, 3 received."}},
		"an empty frame": {join(start, make([]byte, 4), end), "",
			[]string{"SSE-FORM A frame of the stream is not an event: the message has no event."}},
		"a frame that is none": {join(start, []byte{0, 0, 0, 3, 'a', 'b', 'c'}, end), "",
			[]string{"SSE-FORM A frame of the stream is not an event: it is not a protobuf message: field 12 has no " +
				"value: unexpected EOF."}},
		"a length of 2 GiB": {join(start, custom, end, []byte{0x80, 0, 0, 0, 1, 2, 3}), "",
			[]string{"SSE-FORM A frame of the stream is not an event: the frame's length is 2147483648 bytes, but an " +
				"event may have at most 16777216."}},
		"a frame of 20 MiB": {join(start, aguiproto.Framed(make([]byte, 20<<20)), custom, end), "",
			[]string{"SSE-FORM A frame of the stream is not an event: the frame's length is 20971520 bytes, but an " +
				"event may have at most 16777216."}},
		"an event that nobody knows": {join(start, aguiproto.Framed(message(40, message())), end), "",
			[]string{`EVENT-SHAPE "(field 40)" is not an event type; use CUSTOM for your own events.`}},
		"server-sent events": {[]byte(sse(startOf, endOf)), "",
			[]string{`SSE-FORM A frame of the stream is not an event: the frame's length is 1684108385 bytes, but an ` +
				`event may have at most 16777216; these four bytes are the text "data", so the body may be ` +
				`server-sent events.`,
				"RUN-FRAME The stream ended without an event."}},
		"a parameter": {join(start, end), aguiproto.MediaType + "; charset=utf-8",
			[]string{`SSE-FORM The content type is "application/vnd.ag-ui.event+proto; charset=utf-8" and must be ` +
				`exactly application/vnd.ag-ui.event+proto: the official client reads this body as ` +
				`server-sent events.`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.kind == "" {
					c.kind = aguiproto.MediaType
				}
				w.Header().Set("Content-Type", c.kind)
				for part := range slices.Chunk(c.body,
					max(7, len(c.body)/64)) { // what is together need not come together
					_, _ = w.Write(part)
				}
			}))
			defer server.Close()
			r := against(t, server.URL, "thread main id=t\ncheck a\nrun 'Hi.' with='{\"runId\":\"r\"}' accept='"+
				aguiproto.MediaType+"'\nawait turn any|error")
			var got []string
			for _, f := range r.Findings {
				got = append(got, f.Rule+" "+f.Message)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	t.Run("unasked", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", aguiproto.MediaType)
			_, _ = w.Write(join(start, end))
		}))
		defer server.Close()
		for accept, want := range map[string]bool{"": true, "accept=-": false, "accept=text/html": true,
			"accept=*/*": false} {
			got := told(against(t, server.URL,
				"thread main id=t\ncheck a\nrun 'Hi.' with='{\"runId\":\"r\"}' "+accept+"\nawait finished"))
			if strings.Contains(got, "does not admit that type") != want {
				t.Errorf("%q: %s", accept, got)
			}
		}
	})
}

// A captured stream in the binary form is a recording as one of server-sent events is.
func TestACapturedBinaryStream(t *testing.T) {
	events := []string{startOf, `{"type":"CUSTOM","name":"a.b","value":{"x":[1,"é"]}}`, endOf}
	body := framed(t, events...)
	if !aguirecord.Looks(body[:20]) {
		t.Error("it is not recognized")
	}
	log, err := aguirecord.Read(bytes.NewReader(append(body, 7)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e := range log.All() {
		if e.Kind == transcript.Notification {
			got = append(got, string(e.Raw))
		} else if tail := e.JSON().Get("tail").
			Str(); !strings.Contains(tail, "within the length of a frame: 4 bytes expected, 1 received") {
			t.Errorf("the end is %s", e.Raw)
		}
	}
	if !slices.Equal(got, events) {
		t.Errorf("got %q", got)
	}
}

// Who asks our server for the binary form gets it; an event that it has not is one that nobody knows.
func TestServeTheBinaryForm(t *testing.T) {
	recording, err := aguirecord.Read(strings.NewReader("{\"threadId\":\"old\",\"runId\":\"r-1\",\"messages\":[]}\n" +
		startOf + "\n{\"type\":\"THINKING_START\"}\n" + endOf + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: aguirecord.Protocol{}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(endpoint.Front(aguirecord.Protocol{}, nil, recording, log))
	defer server.Close()
	r, err := http.NewRequest(http.MethodPost, server.URL,
		strings.NewReader(`{"threadId":"t","runId":"r","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "*/*")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	want := bytes.Join([][]byte{framed(t, startOf), aguiproto.Framed(aguiproto.Unknown()), framed(t, endOf)}, nil)
	if kind := answer.Header.Get("Content-Type"); err != nil || kind != aguiproto.MediaType || !bytes.Equal(got, want) {
		t.Errorf("%v, and %q: %x, not %x", err, kind, got, want)
	}
}

// A proxy passes frames on as they are, and records each before that.
func TestTapOfTheBinaryForm(t *testing.T) {
	pieces := [][]byte{framed(t, startOf), framed(t, endOf)[:3], framed(t, endOf)[3:], {0, 0}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", aguiproto.MediaType)
		for _, p := range pieces {
			_, _ = w.Write(p)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer server.Close()
	url, file, done := tapped(t, server.URL)
	answer, err := http.Post(url, "application/json", strings.NewReader(asked))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if want := bytes.Join(pieces, nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
	done()
	text := contents(t, file)
	for _, want := range []string{`"type":"RUN_STARTED"`, `"type":"RUN_FINISHED"`, `"events":2`,
		"4 bytes expected, 2 received", `"accept":"-"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the recording lacks %s:\n%s", want, text)
		}
	}
}

// All suites find the same in the binary form, but for the one about the type of an answer; and of a server that runs
// in
// a directory of its own.
func TestSuitesInTheBinaryForm(t *testing.T) {
	list := slices.DeleteFunc(shipped(t),
		func(s *scenarios.Scenario) bool { return s.ID == "transport/status-and-type" })
	run := elsewhere(t, "text/event-stream, "+aguiproto.MediaType, t.TempDir(), "").
		RunAll(context.Background(), list, scenarios.Plan{Jobs: 8})
	if found := proof.Red(run.Results); len(found) > 0 || run.Counts.Pass != len(list)-len(skipped) {
		t.Errorf("%+v, red: %v", run.Counts, found)
	}
}
