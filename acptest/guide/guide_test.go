package guide_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/acptest"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

func TestMain(m *testing.M) { os.Exit(acptest.Main(m)) }

func TestSaysHello(t *testing.T) {
	agent := acptest.Start(t, acptest.Options{
		Command: []string{"my-agent"},
		Env:     map[string]string{"OPENAI_BASE_URL": "$LLM/v1", "OPENAI_API_KEY": "none"},
		Turns:   []fakellm.TurnNode{fakellm.NewTurn(fakellm.NewReply(fakellm.Text("Hello.")))},
	})
	if said := agent.Ask("Say hello."); said != "Hello." {
		t.Errorf("the agent said %q", said)
	}
}

// myAgent is what each test needs to start the agent.
func myAgent(turns ...fakellm.TurnNode) acptest.Options {
	return acptest.Options{
		Command: []string{"my-agent"},
		Env:     map[string]string{"OPENAI_BASE_URL": "$LLM/v1", "OPENAI_API_KEY": "none"},
		Turns:   turns,
	}
}

func TestAsksBeforeItWrites(t *testing.T) {
	o := myAgent(fakellm.NewTurn(
		fakellm.NewReply(fakellm.CallTool("write_file", map[string]any{"path": "a.txt", "content": "new\n"})),
		fakellm.NewReply(fakellm.Text("Done.")),
	))
	o.Files = map[string]string{"a.txt": "old\n"}
	o.Editor.Policy = mockclient.Allow()
	agent := acptest.Start(t, o)
	agent.Ask("Write a.txt.")
	agent.Check(mockclient.PermissionAnswered("selected").Before(mockclient.ToolCallUpdated("completed")))
	if text := agent.ReadFile("a.txt"); text != "new\n" {
		t.Errorf("a.txt is %q", text)
	}
}

func TestIsCancelledInTheMiddle(t *testing.T) {
	agent := acptest.Start(t, myAgent(fakellm.NewTurn(
		fakellm.NewReply(fakellm.Text("One. "), fakellm.HoldAt("middle"), fakellm.Text("Two.")),
	)))
	turn := agent.Prompt("Count.")
	agent.Await(mockclient.MessageSaid("One."))
	if _, err := agent.Session.Cancel(); err != nil {
		t.Fatal(err)
	}
	agent.Await(turn.Ended("cancelled"))
	agent.Check(transcript.Not(mockclient.MessageSaid("Two.")))
}

// parrot is an agent in Go: it needs no process.
func parrot(_ context.Context, _ string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		m, err := wire.Parse(lines.Bytes())
		if err != nil {
			return err
		}
		result := ""
		switch m.Get("method").Str() {
		case "initialize":
			result = `{"protocolVersion":1,"agentCapabilities":{}}`
		case "session/new":
			result = `{"sessionId":"s"}`
		case "session/prompt":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`+
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`+"\n",
				m.Path("params.prompt.0.text").Raw())
			result = `{"stopReason":"end_turn"}`
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.Get("id").Raw(), result)
	}
	return lines.Err()
}

func TestParrot(t *testing.T) {
	agent := acptest.Start(t, acptest.Options{Serve: parrot})
	if said := agent.Ask("Hello?"); !strings.HasPrefix(said, "Hello") {
		t.Errorf("the parrot said %q", said)
	}
}
