package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

// The faults in this file change the stored log of a session.

// lastTurnFirst moves the last turn of a log before all other turns.
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

// forgetOnRefusal drops the context of a session after the model has refused a prompt: the model then gets only the
// current prompt.
func forgetOnRefusal() hooks {
	var refused memory[bool]
	return hooks{
		Stop: func(session, reason string, err error) (string, error) {
			if reason == "refusal" {
				refused.set(session, true)
			}
			return reason, err
		},
		Request: func(session string, list messages) messages {
			if refused.get(session) {
				return sinceLastUser(session, list)
			}
			return list
		},
	}
}

// logged is an event in a session's log. An incomplete line has an empty Type.
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

// saveLate stores the events of a turn only when the turn has ended.
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

// replayFailed sends the prompt of a failed turn to the model instead of the current prompt.
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

// hearSource adds, to the model requests of a forked session, the latest prompt of the session from which it was
// forked.
func hearSource() hooks {
	var asked, sources memory[string] // source of each fork request, by the request; source of each fork, by the fork
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
