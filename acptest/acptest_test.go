package acptest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/acp-test/acp-test/acptest"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/transcript"
)

// The test binary is also the agent that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "refagent" {
		err := refagent.Run(context.Background(),
			refagent.Options{In: os.Stdin, Out: os.Stdout, Log: os.Stderr, Getenv: os.Getenv})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			syscall.Exit(1)
		}
		syscall.Exit(0)
	}
	os.Exit(acptest.Main(m))
}

var (
	_ acptest.T = (*testing.T)(nil)
	_ acptest.T = (testing.TB)(nil)
	_ acptest.T = (ginkgo.GinkgoTInterface)(nil)
)

// command starts the reference agent as a process.
func command(t *testing.T) acptest.Options {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return acptest.Options{
		Command: []string{self, "refagent"},
		Env:     map[string]string{"OPENAI_BASE_URL": "$LLM/v1", "OPENAI_API_KEY": "k"},
	}
}

// serve runs the reference agent, with a fault, in this process.
func serve(dir, fault string) func(context.Context, string, io.Reader, io.Writer) error {
	return func(ctx context.Context, llm string, in io.Reader, out io.Writer) error {
		o := refagent.Options{In: in, Out: out, StateDir: dir, Getenv: func(name string) string {
			return map[string]string{"OPENAI_BASE_URL": llm + "/v1", "OPENAI_API_KEY": "k"}[name]
		}}
		if f, ok := faults.Find(faults.ACPv1, fault); ok {
			o.Hooks = f.Hooks()
		}
		return refagent.Run(ctx, o)
	}
}

func TestStart(t *testing.T) {
	o := command(t)
	o.Files = map[string]string{"sub/a.txt": "old\n"}
	o.Editor.Policy = mockclient.Allow()
	o.Turns = []fakellm.TurnNode{
		fakellm.NewTurn(
			fakellm.NewReply(fakellm.CallTool("write_file",
				map[string]any{"path": "sub/a.txt", "content": "new: \"1\"\n"})),
			fakellm.NewReply(fakellm.Text("Wrote ", "it.")),
		),
		fakellm.NewTurn(fakellm.NewReply(fakellm.Text("One."), fakellm.HoldAt("mid"), fakellm.Text(" Two."))),
	}
	a := acptest.Start(t, o)
	if said := a.Ask("Write it."); said != "Wrote it." {
		t.Errorf("said %q", said)
	}
	if text := a.ReadFile("sub/a.txt"); text != "new: \"1\"\n" {
		t.Errorf("wrote %q", text)
	}
	if changed := a.Changed(); !slices.Equal(changed, []string{"changed sub/a.txt"}) {
		t.Errorf("changed are %q", changed)
	}
	a.Check(mockclient.PermissionRequested())
	turn := a.Prompt("Count.")
	a.Await(mockclient.MessageSaid("One."))
	a.Check(transcript.Not(mockclient.MessageSaid("Two.")))
	a.Release("mid")
	a.Await(turn.Ended("end_turn"))
	if pid := a.Editor.Agent().PID(); pid == 0 {
		t.Error("there is no process")
	}
	started := a.Await(transcript.First("start", func(e transcript.Entry) bool { return e.Kind == transcript.Started }))
	if kept, _ := started.JSON().Get("keeper").Bool(); !kept && os.PathSeparator == '/' {
		t.Error("there is no keeper")
	}
}

// recorder is a T that keeps what a test would say.
type recorder struct {
	*testing.T
	said     []string
	cleanups []func()
}

type fatal struct{}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(fatal{})
}

// record runs a test and returns what it says.
func record(t *testing.T, test func(acptest.T)) string {
	r := &recorder{T: t}
	func() {
		defer func() {
			if v := recover(); v != nil && v != (fatal{}) {
				panic(v)
			}
		}()
		test(r)
	}()
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return strings.Join(r.said, "\n")
}

func TestWhatFails(t *testing.T) {
	hello := []fakellm.TurnNode{fakellm.NewTurn(fakellm.NewReply(fakellm.Text("Hello.")))}
	for _, c := range []struct {
		name string
		test func(acptest.T)
		want string
	}{
		{"an agent without a command", func(t acptest.T) { acptest.Start(t, acptest.Options{}) },
			"starting the agent: the options must set Command, Profile or Serve"},
		{"a program that is not there", func(t acptest.T) {
			acptest.Start(t, acptest.Options{Command: []string{filepath.Join(t.TempDir(), "none")}})
		}, "no program"},
		{"arguments that JSON cannot hold", func(t acptest.T) {
			bad := fakellm.CallTool("write_file", map[string]any{"content": make(chan int)})
			acptest.Start(t, acptest.Options{Turns: []fakellm.TurnNode{fakellm.NewTurn(fakellm.NewReply(bad))}})
		}, "unsupported type: chan int"},
		{"a wait that ends", func(t acptest.T) {
			a := acptest.Start(t, acptest.Options{Serve: serve(t.TempDir(), ""), Turns: hello,
				Patience: 3 * time.Second})
			a.Await(mockclient.MessageSaid("Bye."))
		}, `expected     an agent message with "Bye."`},
		{"what has not happened", func(t acptest.T) {
			a := acptest.Start(t, acptest.Options{Serve: serve(t.TempDir(), ""), Turns: hello})
			a.Check(mockclient.MessageSaid("Hello."))
		}, `expected     an agent message with "Hello."`},
		{"a turn that ends otherwise", func(t acptest.T) {
			a := acptest.Start(t, acptest.Options{Serve: serve(t.TempDir(), ""), Turns: []fakellm.TurnNode{
				fakellm.NewTurn(fakellm.NewReply(fakellm.NewStep("fail", "{status: 400}"))),
			}})
			a.Ask("Say hello.")
		}, "the turn ended with the error"},
		{"a gate that is not in the script", func(t acptest.T) {
			acptest.Start(t, acptest.Options{Serve: serve(t.TempDir(), ""), Turns: hello}).Release("mid")
		}, `no gate`},
		{"a file that is not there", func(t acptest.T) {
			acptest.Start(t, acptest.Options{Serve: serve(t.TempDir(), ""), Turns: hello}).ReadFile("none")
		}, "none"},
		{"a rule that is broken", func(t acptest.T) {
			a := acptest.Start(t, acptest.Options{Serve: serve(t.TempDir(), "prompt-answered-twice"), Turns: hello})
			a.Ask("Say hello.")
		}, "the agent broke rule ONE-RESPONSE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if said := record(t, c.test); !strings.Contains(said, c.want) {
				t.Errorf("want %q in:\n%s", c.want, said)
			}
		})
	}
	said := record(t, func(t acptest.T) {
		a := acptest.Start(t, acptest.Options{
			Serve: serve(t.TempDir(), "prompt-answered-twice"), Turns: hello,
			RulesOff: map[string]string{"ONE-RESPONSE": "known"},
		})
		a.Ask("Say hello.")
	})
	if said != "" {
		t.Errorf("a rule that is off is judged: %s", said)
	}
}
