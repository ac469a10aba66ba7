// Package recordings gives the commands that serve, replay and convert recorded sessions their description of ACP.
package recordings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
)

// Agent answers those messages that the script of a scripted agent does not handle.
type Agent struct{}

// Cancels implements serve.Protocol.
func (Agent) Cancels(e transcript.Entry) bool { return e.Method == "session/cancel" }

// Opens implements serve.Protocol.
func (Agent) Opens(e transcript.Entry, n int) (session, dir string) {
	switch e.Method {
	case "session/new":
		session = fmt.Sprintf("session-%d", n)
	case "session/load", "session/resume":
		session = e.Session
	}
	return session, e.JSON().Path("params.cwd").Str()
}

// Prompt implements serve.Protocol.
func (Agent) Prompt(e transcript.Entry) (text string, ok bool) {
	var parts []string
	for b := range e.JSON().Path("params.prompt").Items() {
		if b.Get("type").Is("text") {
			parts = append(parts, b.Get("text").Str())
		}
	}
	return strings.Join(parts, "\n"), e.Method == "session/prompt"
}

// Plain implements serve.Protocol.
func (Agent) Plain(e transcript.Entry, capabilities map[string]string) [][]byte {
	switch e.Method {
	case "initialize":
		return [][]byte{serve.Result(e.ID, initialized(capabilities))}
	case "session/new":
		return [][]byte{serve.Result(e.ID, `{"sessionId":`+serve.Quote(e.Session)+`}`)}
	case "session/prompt":
		done := `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}`
		return [][]byte{update(e.Session, done), serve.Result(e.ID, `{"stopReason":"end_turn"}`)}
	case "session/list":
		return [][]byte{serve.Result(e.ID, `{"sessions":[]}`)}
	case "authenticate", "logout", "session/load", "session/resume", "session/close", "session/delete", "session/set_mode":
		return [][]byte{serve.Result(e.ID, `{}`)}
	}
	return [][]byte{serve.Error(e.ID, "-32601", "method not found: "+e.Method)}
}

// Taken implements serve.Protocol. It returns nothing, because the agent answers a prompt only at the end of the turn.
func (Agent) Taken(transcript.Entry) [][]byte { return nil }

// Owed implements serve.Protocol.
func (a Agent) Owed(e transcript.Entry, capabilities map[string]string) [][]byte {
	lines := a.Plain(e, capabilities)
	return lines[len(lines)-1:] // the answer
}

// initialized returns the result of initialize.
func initialized(capabilities map[string]string) string {
	return object(map[string]any{"protocolVersion": 1, "agentCapabilities": nested(capabilities),
		"agentInfo": map[string]any{"name": scripted, "version": "1"}, "authMethods": []any{}})
}

// scripted is the name by which a scripted agent introduces itself.
const scripted = "acp-test-scripted"

// nested converts capabilities with dotted paths to a nested object. A value that is not JSON becomes a string.
func nested(capabilities map[string]string) map[string]any {
	root := map[string]any{}
	for _, path := range slices.Sorted(maps.Keys(capabilities)) {
		at := root
		keys := strings.Split(path, ".")
		for _, k := range keys[:len(keys)-1] {
			next, ok := at[k].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[k] = next
			}
			at = next
		}
		var value any = capabilities[path]
		if text := []byte(capabilities[path]); json.Valid(text) {
			value = json.RawMessage(text)
		}
		at[keys[len(keys)-1]] = value
	}
	return root
}

func object(members map[string]any) string {
	text, err := json.Marshal(members)
	if err != nil {
		return "{}" // cannot happen: the values are JSON or strings
	}
	return string(text)
}

func update(session, update string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":%s}}`,
		serve.Quote(session), update)
}
