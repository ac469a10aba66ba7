package agui_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/rules"
)

// opinion is what the official packages say of a stream: see ci/agui/judge.mjs.
type opinion struct {
	At     int
	Says   string
	Shapes map[int]string
}

const officialDir = "../../ci/agui"

// installed skips a test where the official packages are not installed, but not in CI, which
// installs them.
func installed(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(officialDir + "/node_modules"); err != nil {
		if os.Getenv("ACP_TEST_INSTALLED") != "" {
			t.Fatal(err)
		}
		t.Skip("NOT COMPARED with the official client: install it with ci/install-npm ci/agui")
	}
}

// official asks the official packages about streams.
func official(t *testing.T, streams [][]event) []opinion {
	t.Helper()
	installed(t)
	var in bytes.Buffer
	for _, s := range streams {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(raw, '\n'))
	}
	judge := exec.Command("node", "judge.mjs")
	judge.Dir, judge.Stdin, judge.Stderr = officialDir, &in, os.Stderr
	out, err := judge.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []opinion
	for line := range bytes.Lines(out) {
		var o opinion
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	if len(all) != len(streams) {
		t.Fatalf("%d verdicts of %d streams", len(all), len(streams))
	}
	return all
}

// failures are what our rules say that breaks a MUST, by the index of the event; what only the
// end shows is behind the last.
func failures(t *testing.T, s []event) [][]string {
	t.Helper()
	var text bytes.Buffer
	for _, e := range s {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(raw, '\n'))
	}
	log, err := aguirecord.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	c := agui.V1().Rules.NewChecker(rules.Config{})
	known := map[string]int{}
	var all [][]string
	note := func(found []rules.Finding) {
		var now []string
		for _, f := range found {
			name := f.Rule + " " + f.Point
			if f.Class == rules.Fail && f.Count > known[name+f.Session] {
				now = append(now, name)
			}
			known[name+f.Session] = f.Count
		}
		slices.Sort(now)
		all = append(all, slices.Compact(now))
	}
	for e := range log.All() {
		c.Observe(e)
		note(c.Findings())
	}
	note(c.Finish(rules.End{}))
	return all
}

// event is an event of a stream that a test makes.
type event map[string]any

func ev(kind string, pairs ...any) event {
	e := event{"type": kind}
	for i := 0; i < len(pairs); i += 2 {
		e[pairs[i].(string)] = pairs[i+1]
	}
	return e
}

// pieces are lawful parts of a run. The ids of one piece are its own, by n.
func pieces(n int) [][]event {
	m, c, w, sub := fmt.Sprint("m", n), fmt.Sprint("c", n), fmt.Sprint("w", n), fmt.Sprint("s", n)
	return [][]event{
		{ev("TEXT_MESSAGE_START", "messageId", m, "role", "assistant"),
			ev("TEXT_MESSAGE_CONTENT", "messageId", m, "delta", "a"),
			ev("TEXT_MESSAGE_CONTENT", "messageId", m, "delta", "b"), ev("TEXT_MESSAGE_END", "messageId", m)},
		{ev("TEXT_MESSAGE_CHUNK", "messageId", m, "role", "assistant", "delta", "a"),
			ev("TEXT_MESSAGE_CHUNK", "messageId", m, "delta", "b")},
		{ev("TOOL_CALL_START", "toolCallId", c, "toolCallName", "f"),
			ev("TOOL_CALL_ARGS", "toolCallId", c, "delta", "{}"),
			ev("TOOL_CALL_END", "toolCallId", c),
			ev("TOOL_CALL_RESULT", "messageId", m, "toolCallId", c, "content", "x")},
		{ev("TOOL_CALL_CHUNK", "toolCallId", c, "toolCallName", "f", "delta", "{"),
			ev("TOOL_CALL_CHUNK", "toolCallId", c, "delta", "}")},
		{ev("REASONING_START", "messageId", w), ev("REASONING_MESSAGE_START", "messageId", m, "role", "reasoning"),
			ev("REASONING_MESSAGE_CONTENT", "messageId", m, "delta", "a"), ev("REASONING_MESSAGE_END", "messageId", m),
			ev("REASONING_END", "messageId", w)},
		{ev("REASONING_MESSAGE_CHUNK", "messageId", m, "delta", "a"),
			ev("REASONING_MESSAGE_CHUNK", "messageId", m, "delta", "b")},
		{ev("STEP_STARTED", "stepName", w), ev("CUSTOM", "name", "a.b", "value", 1),
			ev("STEP_FINISHED", "stepName", w)},
		{ev("STATE_SNAPSHOT", "snapshot", event{"a": 1}),
			ev("STATE_DELTA", "delta", []event{{"op": "add", "path": "/a", "value": 2}})},
		{ev("ACTIVITY_SNAPSHOT", "messageId", w, "activityType", "plan", "content", event{"a": 1}),
			ev("ACTIVITY_DELTA", "messageId", w, "activityType", "plan", "patch",
				[]event{{"op": "replace", "path": "/a", "value": 2}})},
		{ev("SUBAGENT_STARTED", "subagentRunId", sub, "name", "helper"),
			ev("TEXT_MESSAGE_START", "messageId", m, "subagentRunId", sub),
			ev("TEXT_MESSAGE_CONTENT", "messageId", m, "delta", "a", "subagentRunId", sub),
			ev("TEXT_MESSAGE_END", "messageId", m, "subagentRunId", sub),
			ev("SUBAGENT_FINISHED", "subagentRunId", sub)},
		{ev("STEP_STARTED", "stepName", w, "subagentRunId", sub),
			ev("STEP_FINISHED", "stepName", w, "subagentRunId", sub)},
		{ev("RAW", "event", event{"a": 1})},
	}
}

// generated makes a lawful run of some pieces that mix, and breaks it, mostly, in one or two places.
func generated(r *rand.Rand) (s []event) {
	run := func() {
		s = append(s, ev("RUN_STARTED", "threadId", "t", "runId", "r", "protocolVersion", "1.0"))
		var open [][]event
		for n := range 1 + r.IntN(3) {
			all := pieces(n)
			open = append(open, all[r.IntN(len(all))])
		}
		for len(open) > 0 {
			i := r.IntN(len(open))
			s = append(s, maps.Clone(open[i][0]))
			if open[i] = open[i][1:]; len(open[i]) == 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
		if r.IntN(6) == 0 {
			s = append(s, ev("RUN_ERROR", "message", "no"))
		} else {
			s = append(s, ev("RUN_FINISHED", "threadId", "t", "runId", "r"))
		}
	}
	for range 1 + r.IntN(4)/3 {
		run()
	}
	for range r.IntN(3) {
		i, j := r.IntN(len(s)), r.IntN(len(s))
		switch r.IntN(6) {
		case 0: // leave one out
			if len(s) > 1 {
				s = slices.Delete(s, i, i+1)
			}
		case 1: // say one twice
			s = slices.Insert(s, j, maps.Clone(s[i]))
		case 2:
			s[i], s[j] = s[j], s[i]
		case 3: // of another item
			for _, name := range []string{"messageId", "toolCallId", "stepName", "subagentRunId"} {
				if was, ok := s[i][name].(string); ok {
					s[i][name] = was[:1] + fmt.Sprint(r.IntN(3))
				}
			}
		case 4: // say something else, where the first has said it
			for name, value := range map[string]string{"role": "user", "toolCallName": "g"} {
				if s[i][name] != nil && s[i]["type"] != "REASONING_MESSAGE_START" {
					s[i][name] = value
				}
			}
		case 5:
			if kind := s[i]["type"].(string); strings.HasSuffix(kind, "_CHUNK") {
				delete(s[i], "messageId")
				delete(s[i], "toolCallId")
			} else if strings.HasSuffix(kind, "_CONTENT") {
				s[i]["subagentRunId"] = fmt.Sprint("s", r.IntN(3))
			} else if kind == "TOOL_CALL_START" {
				s[i]["parentMessageId"] = fmt.Sprint("m", r.IntN(3))
			}
		}
	}
	return s
}

// reviewed reads the list of differences that were looked at: who, what, and why.
func reviewed(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/official.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		what, why, ok := strings.Cut(strings.TrimSpace(line), " -- ")
		if ok && !strings.HasPrefix(line, "#") {
			all[what] = why
		}
	}
	return all
}

// compared reports the differences that nobody has reviewed, and the reviewed ones that are none.
func compared(t *testing.T, kinds []string, seen map[string][]event) {
	t.Helper()
	known := reviewed(t)
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		if known[what] == "" {
			raw, _ := json.Marshal(seen[what])
			t.Errorf("not in testdata/official.txt:\n%s\n  %s", what, raw)
		}
	}
	for what := range known {
		for _, kind := range kinds {
			if strings.HasPrefix(what, kind) && seen[what] == nil {
				t.Errorf("in testdata/official.txt and not seen: %s", what)
			}
		}
	}
}

var named = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// Where our rules and the official client fail at another event, somebody has looked at the reason.
func TestRulesAgreeWithTheOfficialClient(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	streams := make([][]event, 8000)
	for i := range streams {
		streams[i] = generated(r)
	}
	seen, both := map[string][]event{}, 0
	for i, theirs := range official(t, streams) {
		ours := failures(t, streams[i])
		first := slices.IndexFunc(ours, func(f []string) bool { return len(f) > 0 })
		switch {
		case first == theirs.At:
			both++
		case theirs.At < 0 || first >= 0 && first < theirs.At:
			for _, point := range ours[first] {
				seen["rules: "+point] = streams[i]
			}
		default:
			seen["client: "+named.ReplaceAllString(theirs.Says, "…")] = streams[i]
		}
	}
	t.Logf("the same verdict on %d of %d streams", both, len(streams))
	compared(t, []string{"rules: ", "client: "}, seen)
}

// whole has an event of each type with all members that it may have.
func whole() []event {
	text := []string{"messageId", "m", "subagentRunId", "s"}
	with := func(kind string, texts []string, pairs ...any) event {
		e := ev(kind, pairs...)
		for i := 0; i < len(texts); i += 2 {
			e[texts[i]] = texts[i+1]
		}
		return e
	}
	patch := []event{{"op": "add", "path": "/a", "value": 1}}
	usage := []event{{"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}}
	return []event{
		ev("RUN_STARTED", "threadId", "t", "runId", "r", "parentRunId", "p", "protocolVersion", "1.0",
			"input", event{"threadId": "t", "runId": "r", "messages": []event{}}),
		ev("RUN_FINISHED", "threadId", "t", "runId", "r", "result", 1, "usage", usage, "outcome",
			event{"type": "success"}),
		ev("RUN_ERROR", "message", "no", "code", "c", "usage", usage),
		ev("STEP_STARTED", "stepName", "n", "subagentRunId", "s"),
		ev("STEP_FINISHED", "stepName", "n", "subagentRunId", "s"),
		with("TEXT_MESSAGE_START", text, "role", "assistant", "name", "n"),
		with("TEXT_MESSAGE_CONTENT", text, "delta", "d"), with("TEXT_MESSAGE_END", text),
		with("TEXT_MESSAGE_CHUNK", text, "role", "assistant", "name", "n", "delta", "d"),
		ev("TOOL_CALL_START", "toolCallId", "c", "toolCallName", "f", "parentMessageId", "m", "subagentRunId", "s"),
		ev("TOOL_CALL_ARGS", "toolCallId", "c", "delta", "d", "subagentRunId", "s"),
		ev("TOOL_CALL_END", "toolCallId", "c", "subagentRunId", "s"),
		ev("TOOL_CALL_CHUNK", "toolCallId", "c", "toolCallName", "f", "parentMessageId", "m", "delta", "d",
			"subagentRunId", "s"),
		with("TOOL_CALL_RESULT", text, "toolCallId", "c", "content", "x", "role", "tool"),
		ev("STATE_SNAPSHOT", "snapshot", event{}, "subagentRunId", "s"),
		ev("STATE_DELTA", "delta", patch, "subagentRunId", "s"),
		ev("MESSAGES_SNAPSHOT", "messages", []event{{"id": "m", "role": "user", "content": "x"}}),
		with("ACTIVITY_SNAPSHOT", text, "activityType", "a", "content", event{}, "replace", true),
		with("ACTIVITY_DELTA", text, "activityType", "a", "patch", patch),
		ev("RAW", "event", event{}, "source", "p", "subagentRunId", "s"),
		ev("CUSTOM", "name", "n", "value", 1, "subagentRunId", "s"),
		with("REASONING_START", text), with("REASONING_END", text),
		with("REASONING_MESSAGE_START", text, "role", "reasoning"),
		with("REASONING_MESSAGE_CONTENT", text, "delta", "d"), with("REASONING_MESSAGE_END", text),
		with("REASONING_MESSAGE_CHUNK", text, "delta", "d"),
		ev("REASONING_ENCRYPTED_VALUE", "subtype", "message", "entityId", "m", "encryptedValue", "v", "subagentRunId",
			"s"),
		ev("SUBAGENT_STARTED", "subagentRunId", "s", "name", "n", "description", "d", "parentSubagentRunId", "p",
			"parentToolCallId", "c", "parentMessageId", "m"),
		ev("SUBAGENT_FINISHED", "subagentRunId", "s", "result", 1, "outcome", event{"type": "success"}),
		ev("SUBAGENT_ERROR", "subagentRunId", "s", "message", "no", "code", "c"),
	}
}

// Our shapes of events are those of the official schemas, but for what somebody has looked at.
func TestShapesAgreeWithTheOfficialSchemas(t *testing.T) {
	var names []string
	var streams [][]event
	add := func(e event, format string, args ...any) {
		names = append(names, e["type"].(string)+fmt.Sprintf(format, args...))
		streams = append(streams, []event{ev("RUN_STARTED", "threadId", "t", "runId", "r", "protocolVersion", "1.0"),
			e})
	}
	for _, e := range whole() {
		add(e, " whole")
		e["timestamp"], e["rawEvent"], e["metadata"] = 1, event{}, event{}
		for _, member := range slices.Sorted(maps.Keys(e)) {
			if member == "type" {
				continue
			}
			for what, value := range map[string]any{"null": nil, "a number": 1.5, "a text": "x", "an empty text": "",
				"an object": event{},
				"a list":    []any{}, "true": true, "negative": -1} {
				broken := maps.Clone(e)
				broken[member] = value
				add(broken, ".%s %s", member, what)
			}
			broken := maps.Clone(e)
			delete(broken, member)
			add(broken, ".%s left out", member)
		}
	}
	seen := map[string][]event{}
	for i, theirs := range official(t, streams) {
		_, refused := theirs.Shapes[1]
		ours := slices.ContainsFunc(failures(t, streams[i])[1],
			func(f string) bool { return strings.HasPrefix(f, "EVENT-SHAPE") })
		if refused && !ours {
			seen["schema: "+names[i]] = streams[i][1:]
		} else if ours && !refused {
			seen["shape: "+names[i]] = streams[i][1:]
		}
	}
	t.Logf("%d events", len(streams))
	compared(t, []string{"schema: ", "shape: "}, seen)
}
