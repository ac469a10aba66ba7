package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"

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
		fault("starting-servers-fail-prompt", "refuses prompts while the MCP servers of the session may still be starting",
			with(func(t *tap) {
				starting := startsServers(t)
				t.in = func(m message) bool {
					refused := is(m, "session/prompt") && starting(sessionOf(m))
					if refused {
						t.Emit(message{"jsonrpc": "2.0", "id": m["id"],
							"error": object{"code": -32603, "message": "MCP servers are not ready"}})
					}
					return !refused
				}
			})),
		fault("starting-servers-deafen", "takes no cancel and no close while the MCP servers of the session may be starting",
			with(func(t *tap) {
				starting := startsServers(t)
				t.in = func(m message) bool {
					return !is(m, "session/cancel") && !is(m, "session/close") || !starting(sessionOf(m))
				}
			})).hangs(),
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

// startsServers reports of a session whether it was opened with MCP servers just now.
func startsServers(t *tap) func(session string) bool {
	asked, opened := map[string]bool{}, map[string]time.Time{}
	t.received = func(m message) {
		if servers, _ := m.Object("params")["mcpServers"].([]any); is(m, "session/new") && len(servers) > 0 {
			asked[key(m["id"])] = true
		}
	}
	t.sending = func(f frame) {
		if answers(f, "session/new") && asked[key(f.Message["id"])] {
			opened[f.Session] = time.Now()
		}
	}
	return func(session string) bool { return time.Since(opened[session]) < 500*time.Millisecond }
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
