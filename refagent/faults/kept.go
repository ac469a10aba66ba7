package faults

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/acp-test/acp-test/refagent"
)

// keptFaults hold on to what belongs to the machine or to others.
func keptFaults() []Fault {
	return []Fault{
		fault("session-memory-kept", "never frees the memory of a session", keepOfEachSession(func() any {
			history := make([]byte, 3<<19)
			for i := range history {
				history[i] = byte(i)
			}
			return history
		})).copies("anomalyco/opencode#9154").process(),
		fault("session-descriptors-kept", "never closes the event stream of a session", keepOfEachSession(func() any {
			stream, err := os.Open(os.DevNull)
			if err != nil {
				return nil
			}
			return stream
		})).copies("anomalyco/opencode#9154").process(),
		fault("session-process-kept", "never ends the process it starts for a session", keepOfEachSession(func() any {
			helper := exec.Command("cat") // it ends with the agent
			input, err := helper.StdinPipe()
			if err != nil || helper.Start() != nil {
				return nil
			}
			return input
		})).process(),
		fault("second-process-dies", "ends at once where another process of it runs for the same user",
			oneProcess).copies("anomalyco/opencode#39390").process(),
	}
}

// keepOfEachSession holds what open returns for each session until the end.
func keepOfEachSession(open func() any) func() refagent.Hooks {
	return with(func(t *tap) {
		var kept []any
		t.received = func(m message) {
			if is(m, "session/new") {
				kept = append(kept, open())
			}
		}
	})
}

// oneProcess keeps a file of the user locked while the agent runs.
func oneProcess() refagent.Hooks {
	home, _ := os.UserHomeDir()
	lock := flock.New(filepath.Join(home, ".refagent.lock"))
	return refagent.Hooks{Start: func(p *refagent.Port) {
		if locked, err := lock.TryLock(); err == nil && !locked {
			p.Exit()
		}
	}}
}
