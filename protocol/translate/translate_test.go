package translate_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/ci/inside"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/protocol/translate"
	"github.com/acp-test/acp-test/refagent/webagent"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

type connector = func(context.Context, *transcript.Transcript, int, agents.Launch) (*transport.Agent, error)

// recorded runs scenarios of some suites with the reference agent of a protocol.
func recorded(t *testing.T, p *scenarios.Protocol, agent string, connect connector,
	suites ...string) (logs map[string]*transcript.Transcript) {
	t.Helper()
	profile, err := agents.Shipped(agent)
	if err != nil {
		t.Fatal(err)
	}
	profile.Command = []string{os.Args[0]} // which is not started
	list, err := p.Shipped(suites...)
	if err != nil {
		t.Fatal(err)
	}
	e := &scenarios.Engine{Protocol: p, Profile: profile, Out: t.TempDir(), Temp: t.TempDir(), Cwd: t.TempDir(),
		NoTrap: true, NoFurther: true, Connect: connect}
	logs = map[string]*transcript.Transcript{}
	for _, r := range e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 8}).Results {
		in, err := os.Open(filepath.Join(e.Out, filepath.FromSlash(r.Artifacts["transcript"])))
		if err != nil {
			continue // it needs a process
		}
		logs[r.ID], err = transcript.Load(in, p.Classifier)
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return logs
}

func web(_ context.Context, log *transcript.Transcript, conn int, l agents.Launch) (*transport.Agent, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, kv := range l.Env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	o := webagent.Options{Listener: listener, Dir: l.Dir, Getenv: func(name string) string { return env[name] }}
	return transport.InProcessServer(log, conn, endpoint.At("http://"+listener.Addr().String()+"/"),
		func(ctx context.Context) error { return webagent.Serve(ctx, o) }), nil
}

func lines(s *translate.Said) *bytes.Reader {
	return bytes.NewReader(append(bytes.Join(s.Lines, []byte("\n")), '\n'))
}

// inAGUI and inACP read what was said, and judge it: nothing that comes of it breaks a MUST.
func inAGUI(t *testing.T, id string, s *translate.Said) *transcript.Transcript {
	t.Helper()
	log, err := aguirecord.Read(lines(s))
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	judged(t, id, replay.Judge{Protocol: aguirecord.Protocol{}, Rules: agui.V1().Rules, Text: agui.V1().Canonical}, log)
	return log
}

func inACP(t *testing.T, id string, s *translate.Said) *transcript.Transcript {
	t.Helper()
	log, err := replay.Read(recordings.V1(), lines(s), nil)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	judged(t, id, replay.Judge{Protocol: recordings.V1(), Rules: acp.V1().Rules, Text: acp.V1().Canonical}, log)
	return log
}

func judged(t *testing.T, id string, j replay.Judge, log *transcript.Transcript) {
	t.Helper()
	for _, f := range j.Check(id, log).Findings {
		if f.Class == results.Fail {
			t.Errorf("%s: %s %s", id, f.Rule, f.Message)
		}
	}
}

// acpMeaning is what a recording of ACP says that AG-UI can say.
func acpMeaning(log *transcript.Transcript) (all []string) {
	sessions := map[string]bool{}
	for e := range log.All() {
		sessions[e.Session] = true
	}
	for _, session := range slices.Sorted(maps.Keys(sessions)) {
		all = append(all, acpMeaningOf(log, session)...)
	}
	return all
}

func acpMeaningOf(log *transcript.Transcript, session string) (said []string) {
	joined := func(kind, text string) {
		if n := len(said); n > 0 && strings.HasPrefix(said[n-1], kind+" ") {
			said[n-1] += text
			return
		}
		said = append(said, kind+" "+text)
	}
	told := map[string]bool{}
	loading := false
	for e := range log.All() {
		if e.Session != session {
			continue
		}
		if e.Method == "session/load" {
			loading = e.Kind == transcript.Request
		}
		if loading { // what is replayed was said before
			continue
		}
		v, u := e.JSON(), e.JSON().Path("params.update")
		switch kind := acpframe.Update(e); {
		case kind == "agent_message_chunk" || kind == "agent_thought_chunk":
			joined(kind, u.Path("content.text").Str())
		case kind == "plan":
			said = append(said, kind+" "+string(u.Get("entries").Raw()))
		case kind == "tool_call" || kind == "tool_call_update":
			if id := u.Get("toolCallId").Str(); !told[id] {
				told[id] = true
				said = append(said, "call "+id+" "+u.Get("title").Str())
			}
			if status := u.Get("status").Str(); status == "completed" || status == "failed" {
				said = append(said, status+" "+u.Get("toolCallId").Str()+" "+u.Path("content.0.content.text").Str())
			}
		case e.Method == "session/prompt" && e.Kind == transcript.Request:
			said = append(said, "prompt ")
			for block := range v.Path("params.prompt").Items() {
				said[len(said)-1] += block.Get("text").Str()
			}
		case e.Method == "session/prompt" && e.Kind == transcript.Response:
			said = append(said, "end "+v.Path("result.stopReason").Str()+v.Path("error.message").Str())
		case e.Method == "session/request_permission" && e.Kind == transcript.Request:
			said = append(said, "ask "+v.Path("params.toolCall.toolCallId").Str())
		case e.Method == "session/request_permission":
			said = append(said, "answer "+v.Path("result.outcome.outcome").Str()+" "+
				v.Path("result.outcome.optionId").Str())
		}
	}
	return said
}

// aguiMeaning is what a recording of AG-UI says that ACP can say.
func aguiMeaning(log *transcript.Transcript) (said []string) {
	texts, args := map[string]string{}, map[string]string{}
	for e := range log.All() {
		v := e.JSON()
		if e.Source == transcript.Editor {
			if n := v.Get("resume").Len(); n > 0 {
				said = append(said, fmt.Sprintf("resume %d %s", n, v.Path("resume.0.status").Str()))
			}
			continue
		}
		switch kind := aguiframe.Event(e); kind {
		case "TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT":
			texts[v.Get("messageId").Str()] += v.Get("delta").Str()
		case "TEXT_MESSAGE_END", "REASONING_MESSAGE_END":
			if text := texts[v.Get("messageId").Str()]; text != "" {
				said = append(said, kind+" "+text)
			}
		case "TOOL_CALL_ARGS":
			args[v.Get("toolCallId").Str()] += v.Get("delta").Str()
		case "TOOL_CALL_START":
			args[v.Get("toolCallId").Str()] = v.Get("toolCallName").Str() + " "
		case "TOOL_CALL_RESULT":
			said = append(said, kind+" "+v.Get("toolCallId").Str()+" "+v.Get("content").Str())
		case "TOOL_CALL_END":
			said = append(said, "call "+v.Get("toolCallId").Str()+" "+
				strings.Join(strings.Fields(args[v.Get("toolCallId").Str()]), ""))
		case "RUN_FINISHED":
			said = append(said, "end "+v.Path("outcome.type").Str()+" "+v.Path("outcome.interrupts.0.toolCallId").Str())
		case "RUN_ERROR":
			said = append(said, "error "+v.Get("message").Str())
		}
	}
	return said
}

// A turn told as runs, and told back, says the same.
func TestTurnsAsRuns(t *testing.T) {
	logs := recorded(t, acp.V1(), "reference", inside.Connect(), "prompt-turn", "tool-calls", "permission", "mode")
	kinds := ""
	for id, log := range logs {
		if !slices.ContainsFunc(acpMeaning(log), func(s string) bool { return strings.HasPrefix(s, "end ") }) {
			continue // it has no turn, or none that ended
		}
		turns := translate.ToAGUI(log)
		runs := inAGUI(t, id, turns)
		if slices.ContainsFunc(turns.Left, func(s string) bool { return strings.HasPrefix(s, "an answer") }) {
			continue
		}
		back := inACP(t, id, translate.ToACP(runs))
		want, got := acpMeaning(log), acpMeaning(back)
		kinds += strings.Join(want, "\n") + "\n"
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n  %s\nwant\n  %s", id, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	for _, kind := range []string{"agent_thought_chunk ", "ask ", "answer selected ", "completed ", "plan ",
		"end end_turn"} {
		if !strings.Contains(kinds, "\n"+kind) {
			t.Errorf("none of %d recordings has %q", len(logs), kind)
		}
	}
}

// A run told as a turn, and told back, says the same.
func TestRunsAsTurns(t *testing.T) {
	logs := recorded(t, agui.V1(), "reference-ag-ui", web, "runs", "text", "tools", "reasoning", "interrupts",
		"failures")
	kinds := ""
	// ACP cannot say three things: threads that take turns, a message with text before and after a call, and an interrupt
	// together with a result.
	other := []string{"interrupts/of-two-threads", "text/behind-a-call", "tools/fast-beside-slow"}
	for id, log := range logs {
		said := translate.ToACP(log)
		if slices.Contains(other, id) || slices.ContainsFunc(said.Left, func(s string) bool {
			return strings.Contains(s, "run") || strings.Contains(s, "JSON") || strings.Contains(s, "without an answer")
		}) {
			continue // a front end's tool, a run beside another
		}
		back := inAGUI(t, id, translate.ToAGUI(inACP(t, id, said)))
		want, got := aguiMeaning(log), aguiMeaning(back)
		kinds += strings.Join(want, "\n") + "\n"
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n  %s\nwant\n  %s", id, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	for _, kind := range []string{"REASONING_MESSAGE_END ", "resume 1 resolved", "resume 1 cancelled",
		"TOOL_CALL_RESULT ", "error ", "end success"} {
		if !strings.Contains(kinds, "\n"+kind) {
			t.Errorf("none of %d recordings has %q", len(logs), kind)
		}
	}
}
