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
		fault("stdout-log", "prints a log line on stdout when it starts", with(func(t *tap) {
			t.start = func() { t.Write([]byte("INFO  running database migrations\n")) }
		})).copies("anomalyco/opencode#13634"),
		fault("stdout-log-in-turn", "prints a log line on stdout in every turn",
			onRequestOf("session/prompt", func(t *tap, m message) {
				t.Write([]byte("\x1b[2mthinking\x1b[0m\n"))
			})).copies("gptme/gptme#1268"),
		fault("stdout-empty-lines", "prints an empty line after every message",
			onFrame(func(raw []byte) []byte { return append(raw, '\n') })),
		fault("stdout-over-several-lines", "prints the answer to initialize as indented JSON",
			rawAnswer("initialize", indent)).hangs(),
		fault("stdout-byte-order-mark", "begins its output with a byte order mark",
			with(func(t *tap) { t.start = func() { t.Write([]byte("\ufeff")) } })).hangs(),
		fault("stdout-batch", "puts the answer to a prompt into a batch array",
			rawAnswer("session/prompt",
				func(raw []byte) []byte { return []byte("[" + strings.TrimSpace(string(raw)) + "]\n") })).hangs(),
		fault("stdout-invalid-utf8", "cuts characters in half, so that its output is not UTF-8",
			onFrame(func(raw []byte) []byte { return []byte(strings.ReplaceAll(string(raw), "é", "\xc3")) })),
		fault("stdout-torn-end", "leaves half a message behind when it ends", func() refagent.Hooks {
			var p *refagent.Port
			return refagent.Hooks{
				Start: func(port *refagent.Port) { p = port },
				End:   func(context.Context) { p.Write([]byte(`{"jsonrpc":"2.0","method":"session/up`)) },
			}
		}),
		fault("jsonrpc-missing", "leaves the member jsonrpc out of its answers", changeFrame(func(f frame) {
			if f.IsResponse() {
				delete(f.Message, "jsonrpc")
			}
		})),
		fault("response-id-string", "answers prompts with the id as a string", changeFrame(func(f frame) {
			if answers(f, "session/prompt") {
				f.Message["id"] = strings.Trim(key(f.Message["id"]), `"`)
			}
		})).copies("Hmbown/Codewhale#1696").hangs(),
		fault("request-id-fractional", "uses ids with a fraction for its own requests", with(fractionalIDs)),
		fault("line-limit-64k", "dies of a line longer than 64 KiB", func() refagent.Hooks {
			return refagent.Hooks{Receive: func(p *refagent.Port, line []byte) {
				if len(line) > 64<<10 {
					p.Exit()
					return
				}
				p.Deliver(line)
			}}
		}).copies("MoonshotAI/kimi-cli#831"),
		fault("exits-on-malformed-input", "dies of a line that is not JSON", func() refagent.Hooks {
			return refagent.Hooks{Receive: func(p *refagent.Port, line []byte) {
				if !json.Valid(line) {
					p.Exit()
					return
				}
				p.Deliver(line)
			}}
		}),
		fault("stays-at-end-of-input", "does not end when its input does", func() refagent.Hooks {
			return refagent.Hooks{End: func(ctx context.Context) { <-ctx.Done() }}
		}).copies("agentclientprotocol/claude-agent-acp#325").hangs(),
		fault("orphans-commands", "starts commands in a session of their own and never ends their children",
			func() refagent.Hooks {
				return refagent.Hooks{Command: detach, Client: func(c *refagent.ClientCapabilities) { c.Terminal = false }}
			}).copies("can1357/oh-my-pi#4788").process(),
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
	t.received = func(m message) {
		if id, ok := real[key(m["id"])]; ok && m["method"] == nil {
			m["id"] = id
		}
	}
	t.sending = func(f frame) {
		if f.IsRequest() {
			id := json.Number(key(f.Message["id"]) + ".5")
			real[key(id)] = f.Message["id"]
			f.Message["id"] = id
		}
	}
}

// detach lets the children of a command outlive it.
func detach(cmd *exec.Cmd) {
	cmd.Args[len(cmd.Args)-1] = "(" + cmd.Args[len(cmd.Args)-1] + "\n) & wait"
	inOwnSession(cmd)
}
