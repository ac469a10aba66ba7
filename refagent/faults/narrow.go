package faults

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/refagent"
)

// narrowFaults are agents that work only with the editor, the folders or the
// words they were made for.
func narrowFaults() []Fault {
	return []Fault{
		fault("capabilities-indispensable", "makes no session for an editor that cannot read files",
			with(func(t *tap) { t.in = refuseWithoutFiles(t) })),
		fault("capabilities-lumped", "believes that an editor that reads files also writes them",
			withClient(func(c *client) { c.WriteTextFile = c.WriteTextFile || c.ReadTextFile })),
		fault("capabilities-unknown-refused", "refuses an editor that has a capability it does not know",
			with(func(t *tap) { t.in = refuseCapabilities(t) })),
		fault("directories-instead-of-cwd", "works in the first additional directory instead of cwd",
			onSetup(func(p object) {
				if dirs, _ := p["additionalDirectories"].([]any); len(dirs) > 0 {
					p["cwd"] = dirs[0]
				}
			})),
		fault("directories-remembered", "brings the additional directories of former sessions back on resume and load",
			rememberDirectories),
		fault("directories-without-bounds", "reads and writes in all directories of the machine", onSetup(func(p object) {
			p["additionalDirectories"] = []any{"/"}
		})),
		fault("mcp-only-first", "connects only to the first of the MCP servers", onSetup(func(p object) {
			if servers, _ := p["mcpServers"].([]any); len(servers) > 1 {
				p["mcpServers"] = servers[:1]
			}
		})).hangs(),
		fault("mcp-without-environment", "starts MCP servers without the environment and headers given for them",
			onSetup(func(p object) {
				servers, _ := p["mcpServers"].([]any)
				for _, s := range servers {
					s := s.(object)
					for _, key := range []string{"env", "headers"} {
						if s[key] != nil {
							s[key] = []any{}
						}
					}
				}
			})).hangs(),
		fault("meta-refused", "refuses requests that carry _meta", with(func(t *tap) {
			t.in = func(m message) bool {
				_, has := m.Object("params")["_meta"]
				_, asks := m["id"]
				if has && asks {
					t.Emit(refuse(m["id"], -32602, "unknown field _meta"))
				}
				return !has
			}
		})),
		fault("pictures-refused", "refuses prompts with a picture, which it says it takes", with(func(t *tap) {
			t.refusing("session/prompt", -32602, "pictures are not supported",
				func(m message) bool { return hasBlock(m, "image") })
		})),
		fault("commands-as-text", "asks the model what its own slash commands may mean", with(func(t *tap) {
			t.received = func(m message) {
				blocks, _ := m.Object("params")["prompt"].([]any)
				for _, b := range blocks {
					block, _ := b.(object)
					if s, _ := block["text"].(string); strings.HasPrefix(s, "/") {
						block["text"] = "The user says: " + s
					}
				}
			}
		})),
		fault("paths-escaped", "escapes the paths of files as in a URL", changeFrame(func(f frame) {
			if p := f.Message.Object("params"); p != nil && strings.HasPrefix(f.Method, "fs/") {
				path, _ := p["path"].(string)
				p["path"] = strings.ReplaceAll(path, " ", "%20")
			}
		})),
		fault("refusal-remembered", "shows the model again what it has refused", rememberRefusals),
	}
}

func refuseWithoutFiles(t *tap) func(m message) bool {
	bare := false
	return func(m message) bool {
		if is(m, "initialize") {
			bare = m.Object("params", "clientCapabilities", "fs")["readTextFile"] != true
		}
		if bare && is(m, "session/new") {
			t.Emit(refuse(m["id"], -32603, "this agent needs an editor with files"))
			return false
		}
		return true
	}
}

func refuseCapabilities(t *tap) func(m message) bool {
	return func(m message) bool {
		if !is(m, "initialize") {
			return true
		}
		for _, c := range slices.Sorted(maps.Keys(m.Object("params", "clientCapabilities"))) {
			if c != "fs" && c != "terminal" {
				t.Emit(refuse(m["id"], -32602, "unknown field "+c))
				return false
			}
		}
		return true
	}
}

// onSetup is a tap that changes the parameters of session/new.
func onSetup(change func(params object)) func() hooks {
	return onRequestOf("session/new", func(t *tap, m message) {
		change(m.Object("params"))
	})
}

func rememberDirectories() hooks {
	var known any
	t := &tap{in: func(m message) bool {
		p := m.Object("params")
		switch {
		case is(m, "session/new"):
			if dirs := p["additionalDirectories"]; dirs != nil {
				known = dirs
			}
		case (is(m, "session/resume") || is(m, "session/load")) && p["additionalDirectories"] == nil && known != nil:
			p["additionalDirectories"] = known
		}
		return true
	}}
	return t.hooks()
}

func rememberRefusals() hooks {
	said, refused := map[string][]refagent.ModelMessage{}, map[string][]refagent.ModelMessage{}
	t := &tap{}
	h := t.hooks()
	h.Request = func(session string, messages []refagent.ModelMessage) []refagent.ModelMessage {
		t.mu.Lock()
		defer t.mu.Unlock()
		said[session] = slices.Clone(messages)
		return slices.Concat(refused[session], messages)
	}
	h.Stop = func(session, reason string, err error) (string, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if reason == "refusal" {
			refused[session] = append(said[session], refagent.ModelMessage{Role: "assistant", Text: "No."})
		}
		return reason, err
	}
	return h
}
