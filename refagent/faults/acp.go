package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/acp-test/acp-test/refagent"
)

type (
	hooks    = refagent.Hooks
	messages = []refagent.ModelMessage
)

// inACP are the faults of version 1 of ACP that are not only in what is sent.
func inACP() map[string]func() hooks {
	return map[string]func() hooks{
		"deleted-session-listed":      always(hooks{Keep: true}),
		"second-prompt-steals-cancel": always(hooks{Busy: func(string, bool) bool { return false }}),
		"mode-changes-label-only":     always(hooks{Mode: func(_, _ string) string { return "agentic" }}),
		"error-output-lost":           always(hooks{Command: func(c *exec.Cmd) { c.Stderr = nil }}),
		"orphans-commands": always(hooks{Command: func(c *exec.Cmd) { // its children outlive it
			c.Args[len(c.Args)-1] = "(" + c.Args[len(c.Args)-1] + "\n) & wait"
			inOwnSession(c)
		}}),
		"forgets-former-turns":      always(hooks{Request: sinceLastUser}),
		"further-parts-dropped":     always(hooks{Request: firstParts}),
		"rejected-call-unanswered":  always(hooks{Request: withoutRejections}),
		"forgets-former-calls":      always(hooks{Request: withoutFormerCalls}),
		"rejection-told-as-nothing": always(hooks{Request: emptyRejections}),
		"load-last-turn-first":      always(hooks{Restore: lastTurnFirst}),
		"load-forgets-settings": always(hooks{Restore: func(_ string, lines [][]byte) [][]byte {
			return slices.DeleteFunc(lines, func(line []byte) bool { return read(line).Type == "state" })
		}}),
		"cwd-ignored":                    always(hooks{Cwd: startedIn}),
		"tool-results-hidden":            always(hooks{Request: hideResults}),
		"load-within-a-minute-erases":    always(hooks{Restore: eraseYoung}),
		"load-forgets":                   forgetOnReopen,
		"saves-at-end-of-turn":           saveLate,
		"kill-breaks-session":            brokenByKill,
		"sessions-block-each-other":      oneAtATime,
		"sessions-share-history":         shareHistory,
		"refusal-remembered":             rememberRefusals,
		"failed-turn-replayed":           replayFailed,
		"fork-hears-its-source":          hearSource,
		"stays-at-end-of-input":          always(hooks{End: func(ctx context.Context) { <-ctx.Done() }}),
		"second-process-dies":            oneProcess,
		"tool-updates-dropped-when-slow": dropWhenSlow,
		"failed-edit-writes":             writeAfterFailure,
		"missing-folder-hangs":           ignoreMissingFolders,
		"load-elsewhere-hangs":           loadOnlyThere,
		"session-memory-kept": keepOfEachSession(func() any {
			history := make([]byte, 3<<19)
			for i := range history {
				history[i] = byte(i)
			}
			return history
		}),
		"session-descriptors-kept": keepOfEachSession(func() any {
			stream, _ := os.Open(os.DevNull) // without it the fault does not show
			return stream
		}),
		"session-process-kept": keepOfEachSession(func() any {
			helper := exec.Command("cat") // it ends with the agent
			input, err := helper.StdinPipe()
			if err != nil || helper.Start() != nil {
				return nil
			}
			return input
		}),
	}
}

// always is a fault that keeps nothing in mind.
func always(h hooks) func() hooks { return func() hooks { return h } }

func sinceLastUser(_ string, list messages) messages {
	for i := len(list) - 1; i > 0; i-- {
		if list[i].Role == "user" {
			return list[i:]
		}
	}
	return list
}

// firstParts leaves of each prompt its first part.
func firstParts(_ string, list messages) messages {
	for i := range list {
		if len(list[i].Parts) > 1 {
			list[i].Parts = list[i].Parts[:1]
		}
	}
	return list
}

// withoutRejections leaves out the results of calls that the user rejected.
func withoutRejections(_ string, list messages) messages {
	return slices.DeleteFunc(list, func(m refagent.ModelMessage) bool {
		return m.Role == "tool" && strings.Contains(m.Text, "rejected")
	})
}

// emptyRejections empties the results of calls that the user rejected.
func emptyRejections(_ string, list messages) messages {
	for i, m := range list {
		if m.Role == "tool" && strings.Contains(m.Text, "rejected") {
			list[i].Text = ""
		}
	}
	return list
}

// withoutFormerCalls leaves out the tool calls of earlier turns.
func withoutFormerCalls(_ string, list messages) messages {
	last := 0
	for i, m := range list {
		if m.Role == "user" {
			last = i
		}
	}
	former := slices.DeleteFunc(slices.Clone(list[:last]), func(m refagent.ModelMessage) bool {
		return m.Role == "tool" || len(m.Calls) > 0
	})
	return append(former, list[last:]...)
}

// lastTurnFirst moves the last turn of a log to its beginning.
func lastTurnFirst(_ string, lines [][]byte) [][]byte {
	var prompts []int
	for i, line := range lines {
		if read(line).Type == "prompt" {
			prompts = append(prompts, i)
		}
	}
	if len(prompts) < 2 {
		return lines
	}
	first, last := prompts[0], prompts[len(prompts)-1]
	return slices.Concat(lines[:first], lines[last:], lines[first:last])
}

func hideResults(_ string, list messages) messages {
	for i := range list {
		if list[i].Role == "tool" {
			list[i].Text = "done"
		}
	}
	return list
}

func startedIn(cwd string) string {
	if wd, err := os.Getwd(); err == nil {
		return wd
	}
	return cwd
}

// logged is an event of a session's log; a torn line has no type.
type logged struct {
	Type, Cwd string
	At        time.Time
}

func read(line []byte) (e logged) {
	_ = json.Unmarshal(bytes.TrimSpace(line), &e)
	return e
}

func eraseYoung(_ string, lines [][]byte) [][]byte {
	if len(lines) > 0 && time.Since(read(lines[0]).At) < time.Minute {
		return lines[:1]
	}
	return lines
}

// memory is what a fault keeps in mind of each session.
type memory[T any] struct {
	mu sync.Mutex
	of map[string]T
}

// with does something with the memory of all sessions.
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

func forgetOnReopen() hooks {
	var reopened memory[bool]
	return hooks{
		Restore: func(session string, lines [][]byte) [][]byte {
			reopened.set(session, true)
			return lines
		},
		Request: func(session string, list messages) messages {
			if reopened.get(session) {
				return sinceLastUser(session, list)
			}
			return list
		},
	}
}

// saveLate writes a turn down when it has ended.
func saveLate() hooks {
	var waiting memory[[]byte]
	return hooks{Persist: func(session string, line []byte) (out []byte) {
		waiting.with(func(of map[string][]byte) {
			of[session] = append(of[session], line...)
			if kind := read(line).Type; kind == "end" || kind == "session" {
				out = of[session]
				delete(of, session)
			}
		})
		return out
	}}
}

func brokenByKill() hooks {
	var broken memory[bool]
	return hooks{
		Restore: func(session string, lines [][]byte) [][]byte {
			running := false
			for _, line := range lines {
				kind := read(line).Type
				running = kind == "prompt" || running && kind != "end"
			}
			broken.set(session, broken.get(session) || running)
			return lines
		},
		Stop: func(session, reason string, err error) (string, error) {
			if broken.get(session) && reason != "cancelled" {
				return "", errors.New("tool calls without results in the history")
			}
			return reason, err
		},
	}
}

// oneAtATime holds a turn at its start until every other one has ended.
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

func shareHistory() hooks {
	var said memory[messages]
	return hooks{Request: func(session string, list messages) messages {
		var all messages
		said.with(func(of map[string]messages) {
			for s, other := range of {
				if s != session {
					all = append(all, other...)
				}
			}
			of[session] = list
		})
		return append(all, list...)
	}}
}

// rememberRefusals shows the model again what it has refused.
func rememberRefusals() hooks {
	var said, refused memory[messages]
	return hooks{
		Request: func(session string, list messages) messages {
			said.set(session, slices.Clone(list))
			return slices.Concat(refused.get(session), list)
		},
		Stop: func(session, reason string, err error) (string, error) {
			if reason == "refusal" {
				refused.set(session, append(said.get(session), refagent.ModelMessage{Role: "assistant", Text: "No."}))
			}
			return reason, err
		},
	}
}

// replayFailed shows the model the prompt that failed in place of the one at hand.
func replayFailed() hooks {
	type prompts struct{ failed, last *refagent.ModelMessage }
	var known memory[prompts]
	return hooks{
		Request: func(session string, list messages) messages {
			list = slices.Clone(list)
			for i := range slices.Backward(list) {
				if list[i].Role != "user" {
					continue
				}
				was := known.get(session)
				if was.failed != nil {
					list[i] = *was.failed
				}
				known.set(session, prompts{was.failed, &list[i]})
				break
			}
			return list
		},
		Stop: func(session, reason string, err error) (string, error) {
			now := prompts{last: known.get(session).last}
			if err != nil {
				now.failed = now.last
			}
			known.set(session, now)
			return reason, err
		},
	}
}

// hearSource shows the model of a forked session what its source was asked last, too.
func hearSource() hooks {
	var asked, sources memory[string] // by the request; by the fork
	var last memory[refagent.ModelMessage]
	return hooks{
		Receive: func(p *refagent.Port, line []byte) {
			if m := refagent.Decode(line); m["method"] == "session/fork" {
				asked.set(key(m["id"]), sessionOf(m))
			}
			p.Deliver(line)
		},
		Send: func(p *refagent.Port, f refagent.Frame) {
			if f.IsResponse() && f.Method == "session/fork" {
				fork, _ := f.Message.Object("result")["sessionId"].(string)
				sources.set(fork, asked.get(key(f.Message["id"])))
			}
			p.Emit(f.Message)
		},
		Request: func(session string, list messages) messages {
			if len(list) == 0 {
				return list
			}
			at := len(list) - 1
			last.set(session, list[at])
			if m := last.get(sources.get(session)); m.Role != "" {
				return slices.Insert(slices.Clone(list), at, m)
			}
			return list
		},
	}
}

// oneProcess keeps a file of the user locked while the agent runs.
func oneProcess() hooks {
	home, _ := os.UserHomeDir()
	lock := flock.New(filepath.Join(home, ".refagent.lock"))
	return hooks{Start: func(p *refagent.Port) {
		if locked, err := lock.TryLock(); err == nil && !locked {
			p.Exit()
		}
	}}
}

// keepOfEachSession holds what open returns for each session until the end.
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

// dropWhenSlow drops updates of tool calls while the editor is behind with reading.
func dropWhenSlow() hooks {
	return hooks{Send: func(p *refagent.Port, f refagent.Frame) {
		if _, tag := f.Update(); tag != "tool_call_update" || p.Queued() < 64<<10 {
			p.Emit(f.Message)
		}
	}}
}

// writeAfterFailure writes the new text of an edit over the file when the edit has failed.
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

// ignoreMissingFolders never answers session/new whose working directory is not there.
func ignoreMissingFolders() hooks {
	return hooks{Receive: func(p *refagent.Port, line []byte) {
		m := refagent.Decode(line)
		cwd, _ := m.Object("params")["cwd"].(string)
		if _, err := os.Stat(cwd); m["method"] != "session/new" || !filepath.IsAbs(cwd) || err == nil {
			p.Deliver(line)
		}
	}}
}

// loadOnlyThere keeps the answers to loads with another working directory than the log's.
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

// key makes an id, of whatever kind, a key of a map.
func key(id any) string {
	raw, _ := json.Marshal(id)
	return string(raw)
}
