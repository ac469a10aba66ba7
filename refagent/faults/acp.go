package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gofrs/flock"

	"github.com/acp-test/acp-test/refagent"
)

type (
	hooks    = refagent.Hooks
	messages = []refagent.ModelMessage
)

// inACP returns the faults of ACP version 1 that are implemented in code, because they do more than change messages.
func inACP() map[string]func() hooks {
	return map[string]func() hooks{
		"deleted-session-listed":      always(hooks{Keep: true}),
		"written-file-loses-its-mode": always(hooks{Anew: true}),
		"second-prompt-steals-cancel": always(hooks{Busy: func(string, bool) bool { return false }}),
		"mode-changes-label-only":     always(hooks{Mode: func(_, _ string) string { return "agentic" }}),
		"error-output-lost":           always(hooks{Command: func(c *exec.Cmd) { c.Stderr = nil }}),
		"commands-wait-for-input":     always(hooks{Command: func(c *exec.Cmd) { c.Stdin, _ = io.Pipe() }}),
		"commands-in-first-folder": func() hooks {
			var of memory[string]
			return hooks{Command: func(c *exec.Cmd) {
				if of.get("") == "" {
					of.set("", c.Dir)
				}
				c.Dir = of.get("")
			}}
		},
		"orphans-commands": always(hooks{Command: func(c *exec.Cmd) { // the command's children outlive the cancel
			c.Args[len(c.Args)-1] = "(" + c.Args[len(c.Args)-1] + "\n) & wait"
			inOwnSession(c)
		}}),
		"system-prompt-as-user":     always(hooks{Request: systemAsUser}),
		"system-prompt-once":        always(hooks{Request: systemOnce}),
		"system-prompt-of-all":      keepSystem(func(string) string { return "" }),
		"system-prompt-kept":        keepSystem(func(session string) string { return session }),
		"forgets-former-turns":      always(hooks{Request: sinceLastUser}),
		"further-parts-dropped":     always(hooks{Request: firstParts}),
		"rejected-call-unanswered":  always(hooks{Request: withoutRejections}),
		"rejection-told-as-nothing": always(hooks{Request: emptyRejections}),
		"load-last-turn-first":      always(hooks{Restore: lastTurnFirst}),
		"load-forgets-settings": always(hooks{Restore: func(_ string, lines [][]byte) [][]byte {
			return slices.DeleteFunc(lines, func(line []byte) bool { return read(line).Type == "state" })
		}}),
		"cwd-ignored":                    always(hooks{Cwd: startedIn}),
		"relative-paths-follow-newest":   newestFolder,
		"first-folder-told":              firstFolderTold,
		"tool-results-hidden":            always(hooks{Request: hideResults}),
		"load-within-a-minute-erases":    always(hooks{Restore: eraseYoung}),
		"load-forgets":                   forgetOnReopen,
		"saves-at-end-of-turn":           saveLate,
		"kill-breaks-session":            brokenByKill,
		"sessions-block-each-other":      oneAtATime,
		"sessions-share-history":         shareHistory,
		"refusal-remembered":             rememberRefusals,
		"refusal-forgets-all":            forgetOnRefusal,
		"failed-turn-replayed":           replayFailed,
		"fork-hears-its-source":          hearSource,
		"stays-at-end-of-input":          always(hooks{End: func(ctx context.Context) { <-ctx.Done() }}),
		"second-process-dies":            oneProcess,
		"tool-updates-dropped-when-slow": dropWhenSlow,
		"failed-edit-writes":             writeAfterFailure,
		"missing-folder-hangs":           ignoreMissingFolders,
		"load-elsewhere-hangs":           loadOnlyThere,
		"server-tools-in-part":           always(hooks{Offer: offersRest}),
		"server-tools-in-first-turn":     offersOnce,
		"aborted-login-succeeds":         always(hooks{LoggedIn: func(error) error { return nil }}),
		"server-tools-not-asked-for":     always(hooks{Unlisted: true}),
		"server-errors-not-read":         always(hooks{Server: func(c *exec.Cmd) { _, _ = c.StderrPipe() }}),
		"server-program-ends-at-blank":   always(hooks{Server: endsAtBlank}),
		"server-events-as-http":          always(hooks{Reach: func(string) string { return "http" }}),
		"server-called-twice":            always(hooks{Serve: servesTwice}),
		"server-call-not-made":           always(hooks{Serve: servesNothing}),
		"server-gives-former-result":     servesFormer,
		"server-lost-by-cancel":          servesUntilCancel,
		"server-not-told-of-cancel":      always(hooks{Serve: servesOn}),
		"session-memory-kept": keepOfEachSession(func() any {
			history := make([]byte, 3<<19)
			for i := range history {
				history[i] = byte(i)
			}
			return history
		}),
		"session-descriptors-kept": keepOfEachSession(func() any {
			stream, _ := os.Open(os.DevNull) // without this file, the fault has no effect
			return stream
		}),
		"session-process-kept": keepOfEachSession(func() any {
			helper := exec.Command("cat") // cat ends when the agent does
			input, err := helper.StdinPipe()
			if err != nil || helper.Start() != nil {
				return nil
			}
			return input
		}),
	}
}

// always returns a fault whose hooks have no state.
func always(h hooks) func() hooks { return func() hooks { return h } }

func startedIn(cwd string) string {
	if wd, err := os.Getwd(); err == nil {
		return wd
	}
	return cwd
}

// newestFolder resolves relative paths of all sessions against the working directory of the session opened last.
func newestFolder() hooks {
	var newest memory[string]
	return hooks{
		Cwd:      func(cwd string) string { newest.set("", cwd); return cwd },
		Relative: func(string) string { return newest.get("") },
	}
}

// firstFolderTold tells the model, in every session, the working directory of the session opened first.
func firstFolderTold() hooks {
	var first memory[string]
	return hooks{
		Cwd: func(cwd string) string {
			first.with(func(of map[string]string) { of[""] = cmp.Or(of[""], cwd) })
			return cwd
		},
		Request: func(_ string, list messages) messages {
			return append(messages{{Role: "system", Text: "Work in " + first.get("") + "."}}, list...)
		},
	}
}

// memory contains a fault's state for each session.
type memory[T any] struct {
	mu sync.Mutex
	of map[string]T
}

// with locks the memory and calls do with the states of all sessions.
func (m *memory[T]) with(do func(of map[string]T)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]T{}
	}
	do(m.of)
}

func (m *memory[T]) set(key string, v T) { m.with(func(of map[string]T) { of[key] = v }) }

func (m *memory[T]) get(key string) (v T) {
	m.with(func(of map[string]T) { v = of[key] })
	return v
}

// oneAtATime makes each turn wait at its start until no other turn is running.
func oneAtATime() hooks {
	turn := make(chan struct{}, 1)
	var running memory[bool]
	return hooks{
		TurnStart: func(ctx context.Context, session string) {
			select {
			case turn <- struct{}{}:
				running.set(session, true)
			case <-ctx.Done():
			}
		},
		Stop: func(session, reason string, err error) (string, error) {
			if running.get(session) {
				running.set(session, false)
				<-turn
			}
			return reason, err
		},
	}
}

// oneProcess locks a file of the user while the agent runs. If another agent runs already, this one exits.
func oneProcess() hooks {
	home, _ := os.UserHomeDir()
	lock := flock.New(filepath.Join(home, ".refagent.lock"))
	return hooks{Start: func(p *refagent.Port) {
		if locked, err := lock.TryLock(); err == nil && !locked {
			p.Exit()
		}
	}}
}

// keepOfEachSession calls open for each session/new, and keeps the results referenced until the agent ends.
func keepOfEachSession(open func() any) func() hooks {
	return func() hooks {
		var kept []any
		return hooks{Receive: func(p *refagent.Port, line []byte) {
			if m := refagent.Decode(line); m["method"] == "session/new" {
				kept = append(kept, open())
			}
			p.Deliver(line)
		}}
	}
}

// dropWhenSlow drops updates of tool calls while the editor reads too slowly.
func dropWhenSlow() hooks {
	return hooks{Send: func(p *refagent.Port, f refagent.Frame) {
		if _, tag := f.Update(); tag != "tool_call_update" || p.Queued() < 64<<10 {
			p.Emit(f.Message)
		}
	}}
}

// writeAfterFailure writes the new text of a failed edit over the whole file.
func writeAfterFailure() hooks {
	var edits memory[func()]
	return hooks{Send: func(p *refagent.Port, f refagent.Frame) {
		u, tag := f.Update()
		id, _ := u["toolCallId"].(string)
		in, _ := u["rawInput"].(map[string]any)
		edits.with(func(of map[string]func()) {
			switch text, edit := in["new"].(string); {
			case tag == "tool_call" && edit:
				list, _ := u["locations"].([]any)
				for _, l := range list {
					at, _ := l.(map[string]any)
					path, _ := at["path"].(string)
					of[id] = func() { _ = os.WriteFile(path, []byte(text), 0o644) }
				}
			case tag == "tool_call_update" && u["status"] == "failed" && of[id] != nil:
				of[id]()
			}
		})
		p.Emit(f.Message)
	}}
}

// ignoreMissingFolders never answers session/new if the working directory does not exist.
func ignoreMissingFolders() hooks {
	return hooks{Receive: func(p *refagent.Port, line []byte) {
		m := refagent.Decode(line)
		cwd, _ := m.Object("params")["cwd"].(string)
		if _, err := os.Stat(cwd); m["method"] != "session/new" || !filepath.IsAbs(cwd) || err == nil {
			p.Deliver(line)
		}
	}}
}

// loadOnlyThere never answers session/load if the working directory differs from the one in the session's log.
func loadOnlyThere() hooks {
	var asked memory[any]
	var elsewhere memory[bool]
	return hooks{
		Receive: func(p *refagent.Port, line []byte) {
			if m := refagent.Decode(line); m["method"] == "session/load" {
				asked.set(sessionOf(m), m.Object("params")["cwd"])
			}
			p.Deliver(line)
		},
		Send: func(p *refagent.Port, f refagent.Frame) {
			if !elsewhere.get(f.Session) || !f.IsResponse() || f.Method != "session/load" {
				p.Emit(f.Message)
			}
		},
		Restore: func(session string, lines [][]byte) [][]byte {
			if len(lines) > 0 {
				elsewhere.set(session, asked.get(session) != read(lines[0]).Cwd)
			}
			return lines
		},
	}
}

func sessionOf(m refagent.Message) string {
	s, _ := m.Object("params")["sessionId"].(string)
	return s
}

// key returns an id of any type as a string, to be used as a key of a map.
func key(id any) string {
	raw, _ := json.Marshal(id)
	return string(raw)
}
