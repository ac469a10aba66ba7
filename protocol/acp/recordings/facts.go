package recordings

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// V1 returns the description of ACP version 1 for recordings.
func V1() replay.Protocol { return protocol{} }

type protocol struct {
	Agent
	acpframe.Classifier
}

// Version implements replay.Protocol.
func (protocol) Version() string { return "1" }

// Facts implements replay.Protocol.
func (protocol) Facts(e transcript.Entry) replay.Facts {
	f := replay.Facts{Lane: e.Session}
	opens := e.Method == "session/new" || e.Method == "session/fork"
	switch v := e.JSON(); {
	case opens && e.Kind == transcript.Response:
		f.Opened = v.Path("result.sessionId").Str()
	case e.Method == "session/list" && e.Kind == transcript.Response:
		f.Handed = v.Path("result.nextCursor").Str()
	case e.Method == "initialize":
		introduced(&f, v.Path("result.agentInfo"), v.Path("params.clientInfo"))
	case e.Kind == transcript.Request && e.Source == transcript.Editor:
		f.Dir = v.Path("params.cwd").Str()
		f.Loads = e.Method == "session/load" || e.Method == "session/resume"
	}
	if opens {
		f.Lane = ""
	}
	update := acpframe.Update(e)
	if update == "" {
		return f
	}
	f.Shows, f.What, f.State, f.Chunk = update, update, isState(update), isChunk(update)
	f.Message = strings.TrimSuffix(update, "_chunk")
	switch update {
	case "tool_call":
		f.Item = e.JSON().Path("params.update.toolCallId").Str()
	case "tool_call_update":
		f.What += " " + e.JSON().Path("params.update.status").Str()
	}
	return f
}

// Sight implements replay.Protocol.
func (protocol) Sight(e transcript.Entry) (s replay.Sight) {
	v := e.JSON()
	switch update := acpframe.Update(e); {
	case e.Source != transcript.Agent:
	case update == "agent_message_chunk":
		s.Text = v.Path("params.update.content.text").Str()
	case update == "tool_call":
		s.Call = v.Path("params.update.toolCallId").Str()
	case e.Kind == transcript.Request && e.Method == "session/request_permission":
		s.Ask = v.Path("params.toolCall.toolCallId").Str()
	}
	return s
}

// introduced stores the names and versions that both sides give in initialize.
func introduced(f *replay.Facts, agent, client wire.Value) {
	f.Agent, f.Client = agent.Get("name").Str(), client.Get("name").Str()
	f.Version = cmp.Or(agent.Get("version").Str(), client.Get("version").Str())
}

// isState reports whether an update may come at any time. Only a strict replay waits for such an update.
func isState(update string) bool {
	return slices.Contains([]string{"available_commands_update", "current_mode_update", "config_option_update",
		"session_info_update", "usage_update", "plan", "plan_update", "notice"}, update)
}

func isChunk(update string) bool { return strings.HasSuffix(update, "_chunk") }

// Improvise implements replay.Protocol.
func (protocol) Improvise(e transcript.Entry) [][]byte {
	switch e.Method {
	case "session/prompt":
		over := `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"The recording ends here."}}`
		return [][]byte{update(e.Session, over), serve.Result(e.ID, `{"stopReason":"end_turn"}`)}
	case "authenticate", "logout", "session/close", "session/set_mode":
		return [][]byte{serve.Result(e.ID, `{}`)}
	}
	return [][]byte{serve.Error(e.ID, "-32601", "the recording has no response to this request: "+e.Method)}
}

// EndTurn implements replay.Protocol.
func (protocol) EndTurn(answer []byte, cancelled bool) []byte {
	v, err := wire.Parse(answer)
	switch {
	case err == nil && cancelled:
		return serve.Result(wire.ID(v.Get("id").Raw()), `{"stopReason":"cancelled"}`)
	case err == nil && v.Path("result.stopReason").Is("cancelled"):
		return replaced(answer, "result.stopReason", `"end_turn"`)
	}
	return answer
}

// Side implements replay.Protocol.
func (protocol) Side(method string) transcript.Source { return side(schema.V1(), method) }

func side(v *schema.Version, method string) transcript.Source {
	m, ok := v.Method(method)
	switch {
	case !ok:
		return ""
	case m.Direction == schema.ToAgent:
		return transcript.Editor
	}
	return transcript.Agent
}

// Fits implements replay.Protocol.
func (protocol) Fits(method string, result wire.Value) bool {
	key := map[string]string{
		"session/request_permission": "outcome", "fs/read_text_file": "content", "terminal/create": "terminalId",
		"session/prompt": "stopReason", "session/new": "sessionId", "initialize": "protocolVersion",
		"terminal/output": "output", "terminal/wait_for_exit": "exitCode", "elicitation/create": "action",
	}[method]
	return key != "" && result.Get(key).Exists()
}

// HasText implements replay.Protocol.
func (protocol) HasText(e transcript.Entry) bool {
	return strings.HasPrefix(e.Method, "fs/") || slices.Contains([]string{"session/prompt", "session/update",
		"session/request_permission", "terminal/output"}, e.Method)
}

// Editor implements replay.Protocol.
func (protocol) Editor(a *transport.Agent, asked []string) replay.Editor {
	hold := []string{"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output",
		"terminal/wait_for_exit", "terminal/kill", "terminal/release", "elicitation/create"}
	for _, method := range asked {
		if method != "session/request_permission" { // left unanswered by the policy, even when a turn is cancelled
			hold = append(hold, method)
		}
	}
	never := mockclient.Always(mockclient.Answer{Never: true})
	return mockclient.NewEditor(a, mockclient.Options{Policy: never, Hold: hold, IgnoreCancelRequest: true})
}

// Answer implements replay.Protocol.
func (protocol) Answer(name string, asked, answer transcript.Entry) (value string, ok, known bool) {
	outcome := answer.JSON().Path("result.outcome")
	switch name {
	case "outcome":
		o := outcome.Get("outcome")
		return o.Text(), o.Exists(), true
	case "option":
		o := outcome.Get("optionId")
		if outcome.Get("outcome").Is("cancelled") {
			o = outcome.Get("outcome") // no option was selected
		}
		return o.Text(), o.Exists(), true
	case "kind":
		kind, _ := kindOf(asked.JSON().Get("params"), outcome.Get("optionId").Str())
		return kind, kind != "", true
	}
	return "", false, false
}

// Writes implements replay.Protocol.
func (protocol) Writes(e transcript.Entry) (path, text string, ok bool) {
	p := e.JSON().Get("params")
	return p.Get("path").Str(), p.Get("content").Str(), e.Method == "fs/write_text_file"
}

// Refuse implements replay.Protocol. It rejects permission requests and reports files as missing.
func (protocol) Refuse(e transcript.Entry) (answer []byte, always bool) {
	switch e.Method {
	case "session/request_permission":
		options := e.JSON().Path("params.options")
		once, always := options.Find("kind", "reject_once"), options.Find("kind", "reject_always")
		if option := cmp.Or(once.Get("optionId").Str(), always.Get("optionId").Str()); option != "" {
			return serve.Result(e.ID, `{"outcome":{"outcome":"selected","optionId":`+serve.Quote(option)+`}}`), true
		}
		return serve.Result(e.ID, `{"outcome":{"outcome":"cancelled"}}`), true
	case "fs/read_text_file":
		return serve.Error(e.ID, "-32002", "the recording has no such file"), false
	}
	return serve.Error(e.ID, "-32601", "the recording has no response to this request"), false
}

// Adapt implements replay.Protocol. In an answer to a permission request, it replaces the recorded option with an
// option of the current request that has the same kind. It prefers an option with the same id.
func (protocol) Adapt(answer []byte, then, now transcript.Entry) []byte {
	v, err := wire.Parse(answer)
	if err != nil || then.Method != "session/request_permission" {
		return answer
	}
	chosen := v.Path("result.outcome.optionId")
	if chosen.Kind() != wire.String {
		return answer
	}
	kind, nth := kindOf(then.JSON().Get("params"), chosen.Str())
	option := ""
	seen := 0
	for o := range now.JSON().Path("params.options").Items() {
		id := o.Get("optionId").Str()
		if o.Get("kind").Str() != kind {
			continue
		}
		if option == "" || id == chosen.Str() || seen == nth {
			option = id
		}
		if id == chosen.Str() {
			break
		}
		seen++
	}
	if kind == "" || option == "" {
		return answer // unchanged, so the agent gets an option that it did not offer
	}
	return replaced(answer, "result.outcome.optionId", serve.Quote(option))
}

// kindOf returns the kind of an option, and the number of earlier options of that kind.
func kindOf(params wire.Value, id string) (kind string, nth int) {
	count := map[string]int{}
	for o := range params.Get("options").Items() {
		k := o.Get("kind").Str()
		if o.Get("optionId").Is(id) {
			return k, count[k]
		}
		count[k]++
	}
	return "", 0
}

// About implements replay.Protocol.
func (protocol) About(e transcript.Entry) string { return about(e) }

func about(e transcript.Entry) string {
	p := e.JSON().Get("params")
	switch e.Method {
	case "fs/read_text_file", "fs/write_text_file":
		return p.Get("path").Str()
	case "terminal/create":
		text := p.Get("command").Str()
		for a := range p.Get("args").Items() {
			text += " " + a.Str()
		}
		return text
	case "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		return p.Get("terminalId").Str()
	case "session/request_permission":
		if title := p.Get("title").Str(); title != "" { // of version 2
			return title
		}
		return p.Path("toolCall.title").Str()
	}
	return ""
}

// ModelHere returns a recording's model script in which the recorded directories are replaced with those of a replay.
// more has further pairs of a recorded text and its replacement.
func ModelHere(src []byte, t *transcript.Transcript, work, home string, more ...[2]string) []byte {
	oldWork, oldHome := replay.Directories(V1(), t)
	return replay.Relocate(src, append([][2]string{{oldWork, work}, {oldHome, home}}, more...)...)
}

// Model returns the model's side of a recording, or nil if the recording has none.
func Model(t *transcript.Transcript) *fakellm.Recorded {
	return model(t, func(transcript.Entry) bool { return true })
}

// model is like Model, but uses only the prompts for which counts returns true.
func model(t *transcript.Transcript, counts func(prompt transcript.Entry) bool) *fakellm.Recorded {
	var prompts []fakellm.RecordedPrompt
	var acts []int
	for e := range t.All() {
		told := e.Source == transcript.Process && (e.Kind == transcript.Signalled || e.Kind == transcript.StdinClosed)
		if told || e.Source == transcript.Editor && (e.Kind == transcript.Request || e.Kind == transcript.Notification) {
			acts = append(acts, e.Seq)
		}
		if text, ok := V1().Prompt(e); ok && e.Source == transcript.Editor && e.Kind == transcript.Request &&
			counts(e) {
			prompts = append(prompts, fakellm.RecordedPrompt{Seq: e.Seq,
				Prompt: fakellm.Prompt{Session: e.Session, Index: len(prompts) + 1, Text: text}})
		}
	}
	return fakellm.ReadRecorded(t, prompts, acts)
}

// Prompts returns the texts of the recorded prompts, in order.
func Prompts(t *transcript.Transcript) []string {
	var out []string
	for e := range replay.Frames(t) {
		if text, ok := V1().Prompt(e); ok && e.Source == transcript.Editor && e.Kind == transcript.Request {
			out = append(out, text)
		}
	}
	return out
}

// Older returns the first session that the recorded agent loaded or resumed but did not create in the recording, or
// "".
func Older(t *transcript.Transcript) string {
	made := map[string]bool{}
	for e := range replay.Frames(t) {
		if e.Source != transcript.Agent || e.Kind != transcript.Response || !e.JSON().Get("result").Exists() {
			continue
		}
		opened := e.Method == "session/load" || e.Method == "session/resume"
		if opened && e.Session != "" && !made[e.Session] {
			return e.Session
		}
		made[e.Session] = true
	}
	return ""
}

// Server is an MCP server that a recorded editor gave to the agent.
type Server struct {
	Name, Command, URL string
	Args               []string
	// Typed says that the server's entry has the member type. In version 2, entries of stdio servers have it too.
	Typed bool
	// As is the environment variable that changes how a canary behaves, for example canary.Slow; "" if there is none.
	As string
	// Token is the first value of the server's environment or headers.
	Token string
}

// Canary reports whether the server is the canary, the MCP server that tests use.
func (s Server) Canary() bool {
	if s.Command != "" {
		return len(s.Args) > 0 && s.Args[0] == "canary"
	}
	return strings.HasPrefix(s.Name, "canary")
}

// Servers returns the MCP servers that the recorded editor gave to the agent, without duplicates.
func Servers(t *transcript.Transcript) (servers []Server) {
	known := map[string]bool{}
	for e := range replay.Frames(t) {
		for m := range e.JSON().Path("params.mcpServers").Items() {
			if e.Source == transcript.Editor && !known[string(m.Raw())] {
				known[string(m.Raw())] = true
				servers = append(servers, serverOf(m))
			}
		}
	}
	return servers
}

// serverOf reads an entry of mcpServers. It ignores the case of member names, as some agents do.
func serverOf(m wire.Value) (s Server) {
	for key, v := range m.Members() {
		switch strings.ToLower(key) {
		case "name":
			s.Name = v.Str()
		case "command":
			s.Command = cmp.Or(v.Str(), s.Command)
		case "url":
			s.URL = cmp.Or(v.Str(), s.URL)
		case "type":
			s.Typed = true
		case "args":
			s.Args = append(s.Args, lists.Collect(v.Items(), wire.Value.Str)...)
		case "env", "headers":
			for one := range v.Items() {
				s.Token = cmp.Or(s.Token, one.Get("value").Str())
				if name := one.Get("name").Str(); slices.Contains(canary.Ways, name) {
					s.As = name
				}
			}
		}
	}
	return s
}
