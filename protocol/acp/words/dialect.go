package words

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/lexicon"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// AddV2 adds the words of ACP version 2 to a protocol: the words of version 1, adapted to the messages of version 2,
// and the words that only version 2 has.
func AddV2(p *scenarios.Protocol) {
	Add(p)
	p.Words = append(p.Words, commands(commandsOfV2)...)
	p.Kinds = v2Kinds(p.Kinds)
	p.CapabilityHelp = "agent:CAPABILITY is a path below capabilities, such as session.delete, or its name in\n" +
		"version 1; agent:configOptions requires that session/new returned some. "
	p.AgentActs = v2AgentActs()
	p.Events = maps.Clone(p.Events)
	maps.Copy(p.Events, map[string]string{"load": "session/resume", "authenticate": "auth/login", "logout": "auth/logout",
		"cancel-tool": "tool_call/cancel", "cancel-terminal": "terminal/cancel"})
	delete(p.Events, "set-mode")
	p.Client = func() scenarios.Client { return &client{version: v2, offers: mockclient.Capabilities{}} }
	p.StopReasons = append(p.StopReasons, "none")
	p.TurnEnd, p.Said, p.Brief = v2End, v2Said, v2Brief
	p.Lookup = v2Lookup
	p.Variables = maps.Clone(p.Variables)
	p.Variables["TERMINAL"] = func(t *transcript.Transcript, arg string) (string, error) {
		return nth(t, arg, "$TERMINAL", "terminals", "terminalId")
	}
	p.EndRule = "V2-CANCEL"
	p.SentAs = func(e transcript.Entry) string {
		if e.Method == "session/resume" && e.JSON().Path("params.replayFrom").Kind() == wire.Object {
			return "session/load"
		}
		return ""
	}
}

// v2 is the version that a client of version 2 offers.
const v2 = 2

// v2End returns the stop reason of an idle state that ends the work of a prompt, or "none" if the state has no stop
// reason. For a prompt that failed or was refused it returns "error". For a prompt that a cancel removed before the
// agent accepted the prompt, it returns "cancelled" (V2-CAN-002). ok is false for other entries.
func v2End(e transcript.Entry) (reason string, ok bool) {
	if e.Source != transcript.Agent {
		return "", false
	}
	if e.Kind == transcript.Response {
		if code, _ := e.JSON().Path("error.code").Int(); code == -32800 {
			return "cancelled", e.Method == "session/prompt"
		}
		return "error", e.Method == "session/prompt" && e.JSON().Get("error").Exists()
	}
	if e.Ref == 0 || acpframe.Update(e) != "state_update" {
		return "", false
	}
	if reason = e.JSON().Path("params.update.stopReason").Str(); reason == "" {
		reason = "none"
	}
	return reason, true
}

// v2Said returns the text that an update adds to the agent's message. It treats an agent_message as new text, on the
// assumption that no chunks of the same message came before.
func v2Said(e transcript.Entry) string {
	if text := said(e); text != "" || e.Source != transcript.Agent || acpframe.Update(e) != "agent_message" {
		return text
	}
	return blocksText(e.JSON().Path("params.update.content"))
}

func blocksText(blocks wire.Value) string {
	var text strings.Builder
	for b := range blocks.Items() {
		text.WriteString(b.Get("text").Str())
	}
	return text.String()
}

func v2Brief(e transcript.Entry) string {
	if reason, ok := v2End(e); ok && e.Kind != transcript.Response {
		return reason
	}
	return brief(e)
}

// v2Lookup is lookup for version 2. It also looks in the subject of a permission request. It also finds the text of a
// message whose content is a list of blocks.
func v2Lookup(e transcript.Entry, path string) ([]wire.Value, string) {
	if path == "text" && e.JSON().Path("params.update.content").Kind() == wire.Array {
		path = "content.0.text"
	}
	parts, path := lookup(e, path)
	if subject := e.JSON().Path("params.subject"); subject.Exists() {
		parts = append(parts, subject.Get("toolCall"), subject)
	}
	if output := e.JSON().Path("params.update.output"); output.Kind() == wire.Object {
		parts = append(parts, output) // of a terminal; the chunks of its output have data at the same path
	}
	return parts, path
}

// sameKinds has, by pattern of version 1, the version 2 updates that the pattern also matches.
var sameKinds = map[string][]string{
	"agent_message": {"agent_message"},
	"agent_thought": {"agent_thought"},
	"user_message":  {"user_message"},
	"plan":          {"plan_update"},
	"tool":          {"tool_call_content_chunk"},
	"content": {"user_message", "agent_message", "agent_thought", "plan_update", "tool_call_content_chunk",
		"terminal_update", "terminal_output_chunk"},
}

//go:embed kinds-v2.txt
var kindsOfV2 string

// v2Kinds adapts the patterns of version 1 to version 2.
func v2Kinds(first []language.Kind) []language.Kind {
	all := slices.Clone(first)
	for i := range all {
		k := &all[i]
		switch k.Name {
		case "tool_call":
			k.Help = "a tool_call_update with a title, such as the first one of a call"
			k.Match = updateWith("tool_call_update", func(u wire.Value) bool { return u.Get("title").Kind() == wire.String })
		case "terminal":
			k.Help = "started, output, exit or released: an update about one of the agent's own terminals"
			k.Match = terminalNews
		default:
			if more := sameKinds[k.Name]; more != nil {
				was, also := k.Match, update(more...)
				k.Match = func(x language.Bound, e transcript.Entry, own bool) bool { return was(x, e, own) || also(x, e, own) }
			}
		}
	}
	return append(all, lexicon.Kinds(kindsOfV2, map[string]lexicon.Match{"state": ofState}, update)...)
}

func ofState(x language.Bound, e transcript.Entry, own bool) bool {
	return own && e.Source == transcript.Agent && acpframe.Update(e) == "state_update" &&
		(x.Arg == "" || e.JSON().Path("params.update.state").Is(x.Arg))
}

// updateWith matches the agent's updates of a kind that satisfy is.
func updateWith(kind string, is func(u wire.Value) bool) lexicon.Match {
	return func(_ language.Bound, e transcript.Entry, own bool) bool {
		return own && e.Source == transcript.Agent && acpframe.Update(e) == kind && is(e.JSON().Path("params.update"))
	}
}

func terminalNews(x language.Bound, e transcript.Entry, own bool) bool {
	u := acpframe.Update(e)
	if !own || e.Source != transcript.Agent || u != "terminal_update" && u != "terminal_output_chunk" {
		return false
	}
	v := e.JSON().Path("params.update")
	switch x.Arg {
	case "started":
		return v.Get("command").Exists()
	case "output":
		return u == "terminal_output_chunk" || v.Get("output").Kind() == wire.Object
	}
	return x.Arg == "exit" && v.Get("exitStatus").Kind() == wire.Object
}

// paths2 maps version 1 capabilities to their names in version 2. "session" stands for everything that every agent
// with sessions supports.
var paths2 = map[string]string{
	"loadSession": "session", "sessionCapabilities.resume": "session", "sessionCapabilities.list": "session",
	"sessionCapabilities.close": "session", "sessionCapabilities.delete": "session.delete",
	"sessionCapabilities.additionalDirectories":      "session.additionalDirectories",
	"sessionCapabilities.fork":                       "session.fork",
	"sessionCapabilities.systemPrompt":               "session.systemPrompt",
	"sessionCapabilities.systemPrompt.mode.override": "session.systemPrompt.mode.override",
	"promptCapabilities":                             "session.prompt", "promptCapabilities.image": "session.prompt.image",
	"promptCapabilities.audio":           "session.prompt.audio",
	"promptCapabilities.embeddedContext": "session.prompt.embeddedContext",
	"mcpCapabilities.http":               "session.mcp.http", "mcpCapabilities.sse": "session.mcp.sse",
	"mcpCapabilities.stdio": "session.mcp.stdio",
}

// path returns the path of a capability in the result of initialize, for the client's protocol version.
func (c *client) path(capability string) string {
	if c.version != v2 {
		return "agentCapabilities." + capability
	}
	if other := paths2[capability]; other != "" {
		capability = other
	}
	return "capabilities." + capability
}

// method converts a method name of version 1 to the client's protocol version.
func (c *client) method(name string) string {
	if c.version == v2 {
		switch name {
		case "authenticate":
			return "auth/login"
		case "logout":
			return "auth/logout"
		case "session/load":
			return "session/resume"
		}
	}
	return name
}

// hello returns the params of initialize.
func (c *client) hello(version any) map[string]any {
	info := map[string]any{"name": "acp-test", "title": "acp-test", "version": "1"}
	if c.as != nil {
		info = c.as.Client
	}
	if c.version != v2 {
		hello := map[string]any{"protocolVersion": version, "clientCapabilities": c.offers}
		if len(info) > 0 {
			hello["clientInfo"] = info
		}
		return hello
	}
	offers := maps.Clone(c.offers)
	for _, gone := range []string{"fs", "terminal", "session", "subagents"} { // no client of version 2 advertises them
		delete(offers, gone)
	}
	return map[string]any{"protocolVersion": version, "capabilities": offers, "info": info}
}

// modeOption returns the id of the option that sets a session's mode in version 2.
func (c *client) modeOption() (id string) {
	c.change(func() {
		option := c.opening.JSON().Path("result.configOptions").Find("category", "mode")
		if id = "mode"; option.Exists() {
			id = option.Get("configId").Str()
		}
	})
	return id
}
