package mockclient_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// friendly is an agent that asks before it greets.
func friendly(_ context.Context, in io.Reader, out io.Writer) error {
	p := newPeer(in, out)
	p.handshake()
	for {
		m := p.until("session/prompt", "")
		if m.id == "" {
			return nil
		}
		p.update("s", `{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Greet","kind":"other",`+
			`"status":"pending"}`)
		if outcome(p.ask(1, "session/request_permission", permissionParams)) == "selected yes" {
			p.update("s", `{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`)
			p.update("s", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello."}}`)
		}
		p.reply(m, `{"stopReason":"end_turn"}`)
	}
}

// An agent written in Go needs no process: it runs behind two pipes.
func ExampleInProcess() {
	ctx := context.Background()
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	editor := mockclient.NewEditor(mockclient.InProcess(log, 0, friendly),
		mockclient.Options{Policy: mockclient.Allow()})
	defer editor.Close(ctx)
	if _, err := editor.Initialize(ctx); err != nil {
		fmt.Println(err)
		return
	}
	session, err := editor.NewSession(ctx, mockclient.SessionOptions{Cwd: os.TempDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := session.Prompt(ctx, mockclient.Text("Greet me.")).Wait(ctx)
	fmt.Println(stop, err)
	fmt.Print(mockclient.FoldHistory(log.All(), session.ID))
	// Output:
	// end_turn <nil>
	// user: Greet me.
	// agent uses other: Greet (completed)
	// agent: Hello.
}

// A policy decides permission requests before they come.
func ExamplePolicy() {
	policy := &mockclient.Policy{Rules: []mockclient.Rule{
		{Kind: "execute", Answer: mockclient.Answer{Kind: mockclient.RejectOnce}},
		{Title: "Write *.md", Nth: 1, Answer: mockclient.Answer{Hold: true}},
		{Answer: mockclient.Answer{Kind: mockclient.AllowOnce}},
	}}
	for _, rule := range policy.Rules {
		fmt.Println(rule.Check())
	}
	// Output:
	// <nil>
	// <nil>
	// <nil>
}

// The conditions of this package combine, and are gomega matchers as well.
func ExampleTurn_Ended() {
	ctx := context.Background()
	log, _ := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	editor := mockclient.NewEditor(mockclient.InProcess(log, 0, friendly),
		mockclient.Options{Policy: mockclient.Allow()})
	defer editor.Close(ctx)
	_, _ = editor.Initialize(ctx)
	session, _ := editor.NewSession(ctx, mockclient.SessionOptions{Cwd: os.TempDir()})

	turn := session.Prompt(ctx, mockclient.Text("Greet me."))
	fmt.Println(log.Await(ctx, 0, turn.Ended("end_turn")).Met())
	done := mockclient.ToolCallUpdated("completed").After(mockclient.PermissionAnswered("selected"))
	fmt.Println(done.Description+":", log.Judge(turn.Entry.Seq, -1, done).Verdict)
	// Output:
	// true
	// a tool call completed after an answered permission selected: met
}

// Conditions are judged over any stretch of a transcript, also after the end.
func ExampleToolCalled() {
	ctx := context.Background()
	log, _ := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	editor := mockclient.NewEditor(mockclient.InProcess(log, 0, friendly),
		mockclient.Options{Policy: mockclient.Reject()})
	_, _ = editor.Initialize(ctx)
	session, _ := editor.NewSession(ctx, mockclient.SessionOptions{Cwd: os.TempDir()})
	_, _ = session.Prompt(ctx, mockclient.Text("Greet me.")).Wait(ctx)
	editor.Close(ctx)
	fmt.Println(log.Judge(0, -1, mockclient.ToolCalled("other").Before(mockclient.AgentExited())).Verdict)
	fmt.Println(log.Judge(0, -1, mockclient.ToolCallUpdated("completed")).Verdict)
	// Output:
	// met
	// unmet
}
