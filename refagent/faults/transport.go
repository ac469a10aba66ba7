package faults

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"

	"github.com/acp-test/acp-test/refagent"
)

func transportFaults() []Fault {
	return []Fault{
		{
			Name:    "stdout-log",
			Summary: "prints a log line on stdout when it starts",
			Copies:  "anomalyco/opencode#13634",
			Hooks: with(func(t *tap) {
				t.start = func() { t.Write([]byte("INFO  running database migrations\n")) }
			}),
		},
		{
			Name:    "stdout-log-in-turn",
			Summary: "prints a log line on stdout in every turn",
			Copies:  "gptme/gptme#1268",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if is(m, "session/prompt") {
						t.Write([]byte("\x1b[2mthinking\x1b[0m\n"))
					}
					return true
				}
			}),
		},
		{
			Name:    "stdout-empty-lines",
			Summary: "prints an empty line after every message",
			Hooks:   onFrame(func(raw []byte) []byte { return append(raw, '\n') }),
		},
		{
			Name:    "stdout-over-several-lines",
			Summary: "prints the answer to initialize as indented JSON",
			Hooks:   rawAnswer("initialize", indent),
			Hangs:   true,
		},
		{
			Name:    "stdout-byte-order-mark",
			Summary: "begins its output with a byte order mark",
			Hooks:   with(func(t *tap) { t.start = func() { t.Write([]byte("\ufeff")) } }),
			Hangs:   true,
		},
		{
			Name:    "stdout-batch",
			Summary: "puts the answer to a prompt into a batch array",
			Hooks:   rawAnswer("session/prompt", func(raw []byte) []byte { return []byte("[" + strings.TrimSpace(string(raw)) + "]\n") }),
			Hangs:   true,
		},
		{
			Name:    "stdout-invalid-utf8",
			Summary: "cuts characters in half, so that its output is not UTF-8",
			Hooks:   onFrame(func(raw []byte) []byte { return []byte(strings.ReplaceAll(string(raw), "é", "\xc3")) }),
		},
		{
			Name:    "stdout-torn-end",
			Summary: "leaves half a message behind when it ends",
			Hooks: func() refagent.Hooks {
				var p *refagent.Port
				return refagent.Hooks{
					Start: func(port *refagent.Port) { p = port },
					End:   func(context.Context) { p.Write([]byte(`{"jsonrpc":"2.0","method":"session/up`)) },
				}
			},
		},
		{
			Name:    "jsonrpc-missing",
			Summary: "leaves the member jsonrpc out of its answers",
			Hooks: onOut(func(f frame) bool {
				if f.IsResponse() {
					delete(f.Message, "jsonrpc")
				}
				return true
			}),
		},
		{
			Name:    "response-id-string",
			Summary: "answers prompts with the id as a string",
			Copies:  "Hmbown/Codewhale#1696",
			Hooks: onOut(func(f frame) bool {
				if answers(f, "session/prompt") {
					f.Message["id"] = strings.Trim(key(f.Message["id"]), `"`)
				}
				return true
			}),
			Hangs: true,
		},
		{
			Name:    "request-id-fractional",
			Summary: "uses ids with a fraction for its own requests",
			Hooks:   with(fractionalIDs),
		},
		{
			Name:    "line-limit-64k",
			Summary: "dies of a line longer than 64 KiB",
			Copies:  "MoonshotAI/kimi-cli#831",
			Hooks: func() refagent.Hooks {
				return refagent.Hooks{Receive: func(p *refagent.Port, line []byte) {
					if len(line) > 64<<10 {
						p.Exit()
						return
					}
					p.Deliver(line)
				}}
			},
		},
		{
			Name:    "exits-on-malformed-input",
			Summary: "dies of a line that is not JSON",
			Hooks: func() refagent.Hooks {
				return refagent.Hooks{Receive: func(p *refagent.Port, line []byte) {
					if !json.Valid(line) {
						p.Exit()
						return
					}
					p.Deliver(line)
				}}
			},
		},
		{
			Name:    "stays-at-end-of-input",
			Summary: "does not end when its input does",
			Copies:  "agentclientprotocol/claude-agent-acp#325",
			Hooks: func() refagent.Hooks {
				return refagent.Hooks{End: func(ctx context.Context) { <-ctx.Done() }}
			},
			Hangs: true,
		},
		{
			Name:    "orphans-commands",
			Summary: "starts commands in a session of their own and never ends their children",
			Copies:  "can1357/oh-my-pi#4788",
			Hooks: func() refagent.Hooks {
				return refagent.Hooks{Command: detach, Client: func(c *refagent.ClientCapabilities) { c.Terminal = false }}
			},
		},
	}
}

// onFrame changes the bytes of every message.
func onFrame(change func(raw []byte) []byte) func() refagent.Hooks {
	return with(func(t *tap) {
		t.out = func(f frame) bool {
			t.Write(change(line(f.Message)))
			return false
		}
	})
}

// rawAnswer changes the bytes of the answers to a method.
func rawAnswer(method string, change func(raw []byte) []byte) func() refagent.Hooks {
	return with(func(t *tap) {
		t.out = func(f frame) bool {
			if answers(f, method) {
				t.Write(change(line(f.Message)))
				return false
			}
			return true
		}
	})
}

func line(m message) []byte {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return append(raw, '\n')
}

func indent(raw []byte) []byte {
	out, err := json.MarshalIndent(json.RawMessage(raw), "", "  ")
	if err != nil {
		return raw
	}
	return append(out, '\n')
}

func fractionalIDs(t *tap) {
	real := map[string]any{}
	t.in = func(m message) bool {
		if id, ok := real[key(m["id"])]; ok && m["method"] == nil {
			m["id"] = id
		}
		return true
	}
	t.out = func(f frame) bool {
		if f.IsRequest() {
			id := json.Number(key(f.Message["id"]) + ".5")
			real[key(id)] = f.Message["id"]
			f.Message["id"] = id
		}
		return true
	}
}

// detach lets the children of a command outlive it.
func detach(cmd *exec.Cmd) {
	cmd.Args[len(cmd.Args)-1] = "(" + cmd.Args[len(cmd.Args)-1] + "\n) & wait"
	inOwnSession(cmd)
}
