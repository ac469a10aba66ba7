// Package words contains the part of the scenario language that only ACP has: the commands of an editor, the patterns
// for messages of an agent, and the editor that carries out the commands.
package words

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/remote"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/protocol/lexicon"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Add adds the words of ACP version 1 to a protocol, and the functions with which the engine reads ACP messages.
func Add(p *scenarios.Protocol) {
	p.Words = commands(commandsOfBoth)
	p.Kinds = kinds()
	p.PatternHelp = "A path is looked up in the update, the params or the result, then in the whole\n" +
		"message. A method with a slash, such as fs/read_text_file, is also a pattern.\n"
	p.CapabilityHelp = "agent:CAPABILITY is a path below agentCapabilities, such as loadSession or\n" +
		"sessionCapabilities.list; agent:modes and agent:configOptions require that\n" +
		"session/new returned them. "
	p.AgentActs = agentActs(v1Agent)
	p.Events = map[string]string{"prompt": "session/prompt", "cancel": "session/cancel", "new": "session/new",
		"load":   "session/load",
		"resume": "session/resume", "close": "session/close", "list": "session/list", "set-mode": "session/set_mode",
		"set-option": "session/set_config_option", "initialize": "initialize", "authenticate": "authenticate",
		"logout": "logout"}
	p.Client = newClient
	p.Reach = func(url string, headers map[string]string) transport.Reaching { return remote.At(url, headers) }
	p.StopReasons = []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
	p.Prompts = func(e transcript.Entry) bool {
		return e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt"
	}
	p.TurnEnd, p.Said, p.Brief = turnEnd, said, brief
	p.Lookup, p.Stands, p.Stories = lookup, stands, newStories
	p.ToolNews, p.Barred = toolNews, barred
	p.SessionPath = "sessionId"
	p.OpensSession = func(method string) bool { return strings.HasPrefix(method, "session/") }
	p.Inner = inner
	p.Variables = map[string]func(*transcript.Transcript, string) (string, error){"TOOL": tool}
	p.EndRule, p.EndReason = "CANCEL-REASON", "cancelled"
	p.ExitRequirements = []string{"STDIO-007"}
	p.Further = further
	p.Start = func(method string) bool {
		return slices.Contains([]string{"initialize", "session/new", "session/load"}, method)
	}
}

//go:embed commands.txt
var commandsOfBoth string

//go:embed commands-v2.txt
var commandsOfV2 string

// commands returns the scenario commands that a table describes.
func commands(table string) []*scenarios.Command {
	return lexicon.Commands(table, lexicon.Compilers{
		"client": compileClient, "permit": compilePermit, "system": compileSystem, "hold": compileHold,
		"refuse": compileRefuse, "files": compileFiles, "buffer": scenarios.CompileFile(openBuffer), "ids": compileIDs,
		"nulls": adding("nulls", (*schema.Version).WithNulls),
		"metas": adding("metas", (*schema.Version).WithMeta), "escapes": compileEscapes,
		"policy": compilePolicy, "terminal": compileTerminal,
		"elicit": compileElicit,
		"mcp":    compileMCP, "canary": compileCanary, "same-history": compileSameHistory, "child": compileChild,
		"initialize": compileInitialize, "authenticate": compileCall("authenticate", "methodId"),
		"login":  compileLogin,
		"logout": compileCall("logout", ""), "session": compileSession, "prompt": compilePrompt, "cancel": compileCancel,
		"cancel-request": compileCancelRequest, "answer": compileAnswer, "notify": compileRaw(false),
		"send-again": compileSendAgain, "request": compileRaw(true),
		"set-mode":   compileSet("session/set_mode", "a value", "modeId"),
		"set-option": compileSet("session/set_config_option", "a value", "configId", "value"),
		"http":       compileHTTP, "socket": compileHTTP, "frame": compileFrame, "abandon": compileAbandon,
		"trouble":         compileTrouble,
		"cancel-tool":     compileSet("tool_call/cancel", "an id", "toolCallId"),
		"cancel-terminal": compileSet("terminal/cancel", "an id", "terminalId"),
	})
}

// turnEnd returns the stop reason of the turn that an entry ends, or "error" if the prompt failed. ok is false if the
// entry ends no turn.
func turnEnd(e transcript.Entry) (reason string, ok bool) {
	if e.Source != transcript.Agent || e.Kind != transcript.Response || e.Method != "session/prompt" {
		return "", false
	}
	v := e.JSON()
	if v.Get("error").Exists() {
		return "error", true
	}
	return v.Get("result").Get("stopReason").Text(), true
}

// said returns the text of a chunk of the agent's message, or "" for another entry.
func said(e transcript.Entry) string {
	if e.Source != transcript.Agent || acpframe.Update(e) != "agent_message_chunk" {
		return ""
	}
	return e.JSON().Path("params.update.content.text").Str()
}

// brief returns a response's error, stop reason or result as a short text.
func brief(e transcript.Entry) string {
	v := e.JSON()
	if err := v.Get("error"); err.Exists() {
		return fmt.Sprintf("error %s %q", err.Get("code").Text(), err.Get("message").Text())
	}
	if r := v.Get("result").Get("stopReason"); r.Exists() {
		return r.Text()
	}
	r := string(v.Get("result").Raw())
	if len(r) > 200 {
		r = r[:200] + "…"
	}
	return "result " + r
}

// lookup returns the parts of a message in which the path is looked up before the whole message, and the path to look
// up. In an update, the path "text" becomes the path of the chunk's text.
func lookup(e transcript.Entry, path string) ([]wire.Value, string) {
	root := e.JSON()
	switch e.Kind {
	case transcript.Request, transcript.Notification:
		params := root.Get("params")
		parts := []wire.Value{params, params.Get("toolCall")}
		if u := params.Get("update"); u.Exists() {
			parts = append([]wire.Value{u}, parts...)
			if path == "text" {
				path = "content.text"
			}
		}
		return parts, path
	case transcript.Response:
		return []wire.Value{root.Get("result"), root.Get("error")}, path
	}
	return nil, path
}

// stands returns the members of which an entry gives the value when another script line refers to the entry.
func stands(e transcript.Entry) []string {
	if e.Kind == transcript.Response {
		return []string{"toolCallId", "terminalId", "sessionId", "stopReason"}
	}
	return []string{"toolCallId", "terminalId", "stopReason"}
}

// inner reports whether an agent sends requests of a method only during a turn.
func inner(method string) bool {
	return strings.HasPrefix(method, "fs/") || strings.HasPrefix(method, "terminal/")
}

// tool returns the id of the n-th tool call of the run. n is given by arg.
func tool(t *transcript.Transcript, arg string) (string, error) {
	return nth(t, arg, "$TOOL", "tool calls", "toolCallId")
}

// nth returns the n-th distinct id that the run's updates have as the value of key.
func nth(t *transcript.Transcript, arg, variable, what, key string) (string, error) {
	n := 0
	if _, err := fmt.Sscan(arg, &n); err != nil || n < 1 {
		return "", fmt.Errorf("%s(%s): count %s from 1", variable, arg, what)
	}
	seen := map[string]bool{}
	for e := range t.All() {
		id := e.JSON().Path("params.update." + key)
		if !id.Exists() || acpframe.Update(e) == "" {
			continue
		}
		if seen[id.Str()] = true; len(seen) == n { // an id that is not a string counts too
			return id.Str(), nil
		}
	}
	return "", fmt.Errorf("%s(%d): there were only %d %s", variable, n, len(seen), what)
}

// on reports whether a capability is supported: it is true or an object.
func on(v wire.Value) bool {
	b, ok := v.Bool()
	return ok && b || v.Kind() == wire.Object
}
