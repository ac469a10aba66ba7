package acptest_test

import (
	"fmt"
	"os"

	"github.com/acp-test/acp-test/acptest"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mockclient"
)

// script is a T for an example, which is given none.
type script struct{ cleanups []func() }

func (s *script) Helper()          {}
func (s *script) Name() string     { return "example" }
func (s *script) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *script) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (s *script) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (s *script) TempDir() string {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	s.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (s *script) end() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

// An agent, a model that says what the test wants, and a workspace, in one call.
func ExampleStart() {
	t := &script{}
	defer t.end()
	agent := acptest.Start(t, acptest.Options{
		Serve:  serve(t.TempDir(), ""), // or Command: []string{"my-agent", "--acp"}
		Files:  map[string]string{"list.txt": "milk\n"},
		Editor: mockclient.Options{Policy: mockclient.Allow()},
		Turns: []fakellm.TurnNode{fakellm.NewTurn(
			fakellm.NewReply(fakellm.CallTool("write_file",
				map[string]any{"path": "list.txt", "content": "milk\nbread\n"})),
			fakellm.NewReply(fakellm.Text("Bread is on the list.")),
		)},
	})
	fmt.Println(agent.Ask("Put bread on the list."))
	fmt.Print(agent.ReadFile("list.txt"))
	agent.Check(mockclient.ToolCallUpdated("completed").After(mockclient.PermissionRequested()))
	// Output:
	// Bread is on the list.
	// milk
	// bread
}
