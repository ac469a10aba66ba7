package acptest

import (
	"os"
	"sync/atomic"

	"github.com/acp-test/acp-test/internal/process"
)

// keeperWord is the first argument of a test binary that was started as a keeper: the process that ends the agent's
// processes when the test process dies.
const keeperWord = "acp-test-keeper"

// canKeep is true once TestMain has called Main. Only then can the test binary be started again as a keeper.
var canKeep atomic.Bool

// Main runs the tests and returns their exit status. If TestMain calls it, no agent process outlives the tests, even
// if a signal ends them:
//
//	func TestMain(m *testing.M) { os.Exit(acptest.Main(m)) }
//
// For each agent, the test binary is started again as a keeper: in that process, Main ends the agent's processes when
// the tests are killed. Without Main, agents have no keeper. Each test still ends its agents, but killed tests leave
// them running.
func Main(m interface{ Run() int }) int {
	if len(os.Args) > 1 && os.Args[1] == keeperWord {
		return process.KeeperMain(os.Args[2:])
	}
	canKeep.Store(true)
	return m.Run()
}

// keeper returns the command line of a keeper, or nil if TestMain did not call Main or this system has no keepers.
func keeper() []string {
	self, err := os.Executable()
	if err != nil || !canKeep.Load() || !process.Keeps {
		return nil
	}
	return []string{self, keeperWord}
}
