package acptest

import (
	"os"
	"sync/atomic"

	"github.com/acp-test/acp-test/internal/process"
)

// keeperWord is the first argument of a test binary that was started as a keeper.
const keeperWord = "acp-test-keeper"

// canKeep says that TestMain called Main, so that this program can be started
// again as a keeper.
var canKeep atomic.Bool

// Main runs the tests and returns their exit status. If TestMain
// calls it, no agent process outlives the tests, even if a signal ends them:
//
//	func TestMain(m *testing.M) { os.Exit(acptest.Main(m)) }
//
// The test binary is started again as the keeper of each agent, and Main is then
// that keeper. Without Main, agents have no keeper: each test ends its agents,
// but killed tests leave them running.
func Main(m interface{ Run() int }) int {
	if len(os.Args) > 1 && os.Args[1] == keeperWord {
		return process.KeeperMain(os.Args[2:])
	}
	canKeep.Store(true)
	return m.Run()
}

// keeper returns the command line of a keeper, or nil if this program cannot be a keeper.
func keeper() []string {
	self, err := os.Executable()
	if err != nil || !canKeep.Load() || !process.Keeps {
		return nil
	}
	return []string{self, keeperWord}
}
