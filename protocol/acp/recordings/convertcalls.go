package recordings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// call adds the line for a request, which also waits for the answer.
func (c *converter) call(e transcript.Entry) ([]byte, error) {
	p := e.JSON().Get("params")
	verb := strings.TrimPrefix(e.Method, "session/")
	if e.Session == "" {
		c.awaitAll()
	}
	c.awaitSeen(e.Session)
	switch e.Method {
	case "authenticate", "auth/login":
		c.named(e, "authenticate %s", c.word(p.Get("methodId").Str()))
	case "logout", "auth/logout":
		c.named(e, "logout")
	case "tool_call/cancel":
		c.named(e, "cancel-tool %s %s", c.name(e.Session), script.Variable(c.ids["toolCallId "+p.Get("toolCallId").Str()]))
	case "terminal/cancel":
		c.named(e, "cancel-terminal %s %s", c.name(e.Session),
			script.Variable(c.ids["terminalId "+p.Get("terminalId").Str()]))
	case "session/list":
		c.need("agent:sessionCapabilities.list")
		var options []script.Word
		for _, key := range []string{"cwd", "cursor"} {
			if ref := c.cursors[e.Seq]; ref != "" && key == "cursor" {
				options = append(options, script.Option(key, script.Variable(ref+".nextCursor")))
			} else if value := p.Get(key).Str(); value != "" {
				options = append(options, script.Option(key, c.word(value)))
			}
		}
		c.named(e, "session list %s", options)
	case "session/set_mode":
		c.named(e, "set-mode %s %s", c.name(e.Session), c.word(p.Get("modeId").Str()))
	case "session/set_config_option":
		c.named(e, "set-option %s %s %s", c.name(e.Session), c.word(p.Get("configId").Str()), c.word(p.Get("value").Text()))
	case "session/new":
		return c.open(e, verb)
	case "session/load", "session/resume":
		if p.Path("replayFrom.type").Is("start") {
			verb = "load"
		}
		c.need(map[string]string{"load": "agent:loadSession", "resume": "agent:sessionCapabilities.resume"}[verb])
		c.tag("load")
		return c.open(e, verb)
	default:
		c.need("agent:sessionCapabilities." + verb)
		c.tag("close")
		c.named(e, "session %s %s", verb, c.name(e.Session))
	}
	return e.Raw, nil
}

// open adds the line for session/new, load or resume.
func (c *converter) open(e transcript.Entry, verb string) ([]byte, error) {
	p := e.JSON().Get("params")
	var options []script.Word
	if cwd := p.Get("cwd").Str(); cwd != c.out.work {
		rel, below := strings.CutPrefix(cwd, strings.TrimSuffix(c.out.work, "/")+"/")
		if !below || rel != path.Clean(rel) || strings.HasPrefix(rel, "../") {
			c.leave("the folder %s, outside of the first session's folder %s: the session that the editor opens "+
				"at #%d has the first session's folder instead", cwd, c.out.work, e.Seq)
			c.out.NoGolden = true
		} else {
			options = append(options, script.Option("cwd", c.word(rel)))
		}
	}
	for d := range p.Get("additionalDirectories").Items() {
		options = append(options, script.Option("add", c.word(d.Str())))
	}
	options = c.meta(e, options)
	answer := c.answers[e.Seq]
	session := cmp.Or(e.Session, answer.JSON().Path("result.sessionId").Str())
	name := ""
	if session == "" {
		c.failed++
		name = fmt.Sprintf("failed%d", c.failed)
	} else {
		name = c.name(session)
		c.current = session
	}
	if !p.Get("mcpServers").Exists() {
		c.leave("the missing mcpServers of the editor's #%d: the scenario sends an empty list", e.Seq)
	}
	if answer.Seq == 0 {
		options = append(options, script.Option("wait", "no"))
	}
	c.named(e, "session %s %s %s", verb, name, options)
	return c.mcp(e), nil
}

// meta appends the option with the _meta of the editor's message, if the message has one.
func (c *converter) meta(e transcript.Entry, options []script.Word) []script.Word {
	switch meta := e.JSON().Path("params._meta"); {
	case meta.Kind() == wire.Object:
		return append(options, script.Option("meta", c.json(string(meta.Raw()))))
	case meta.Exists():
		c.leave("_meta of the editor's #%d, which is not an object", e.Seq)
	}
	return options
}

// mcp returns a message that opens a session, as the scenario will send it. The scenario can have only the MCP servers
// of tests, so mcp adds set-up lines for these and leaves out others.
func (c *converter) mcp(e transcript.Entry) []byte {
	servers := e.JSON().Path("params.mcpServers")
	given := 0
	for s := range servers.Items() {
		what := ""
		switch {
		case s.Path("args.0").Is("canary"):
			what = "canary stdio"
			c.rename(s.Get("command").Str(), "$$SELF")
			c.rename(s.Path("env.0.value").Str(), canary.Token(c.t.Header().Seed))
		case strings.HasPrefix(s.Get("name").Str(), "canary") && s.Get("type").Is("http"):
			what = "canary http"
			c.rename(s.Get("url").Str(), "$$CANARY")
			c.rename(s.Path("headers.0.value").Str(), canary.Token(c.t.Header().Seed))
		case s.Get("name").Is("broken") && c.places.Temp != "" && strings.HasPrefix(s.Get("command").Str(), c.places.Temp):
			what = "broken"
			c.rename(s.Path("env.0.value").Str(), canary.Token(c.t.Header().Seed))
		default:
			c.leave("the MCP server %s that the editor's #%d named", s.Get("name").Str(), e.Seq)
			continue
		}
		given++
		c.servers = lists.With(c.servers, what)
	}
	if given == servers.Len() {
		return e.Raw
	}
	return replaced(e.Raw, "params.mcpServers", "[]")
}

// rename records that a text of the recording is different in a run of the scenario. The golden shows to instead of
// from.
func (c *converter) rename(from, to string) {
	if from != "" {
		c.out.renamed = append(c.out.renamed, [2]string{from, to})
	}
}

// prompt adds the line for a prompt. Before it, prompt adds lines for the permission answers until the next prompt.
func (c *converter) prompt(e transcript.Entry) ([]byte, error) {
	text, _ := V1().Prompt(e)
	c.alike(e, text)
	delete(c.strange, e.Session)
	c.awaitSeen(e.Session)
	c.permissions(e.Seq)
	var options []script.Word
	blocks := e.JSON().Path("params.prompt")
	if plain := `[{"type":"text","text":` + serve.Quote(text) + `}]`; !sameJSON(blocks.Raw(), plain) {
		options = append(options, script.Option("blocks", c.json(string(blocks.Raw()))))
	}
	options = c.meta(e, options)
	c.named(e, "prompt %s %s %s", c.name(e.Session), c.word(text), options)
	c.current = e.Session
	c.seen[e.Session] = &seen{counts: map[string]int{}}
	return e.Raw, nil
}

// alike notes that two sessions had the same prompt at the same time. A model script finds its turns by the text of
// the prompt, so the scenario cannot tell which of these prompts a reply answers.
func (c *converter) alike(e transcript.Entry, text string) {
	if p, ok := c.prompts[text]; ok && p.Session != e.Session && c.seen[p.Session] != nil {
		c.leave("which of the prompts #%d and #%d each model reply answers: two sessions sent the same text at the "+
			"same time", p.Seq, e.Seq)
	}
	c.prompts[text] = e
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a []byte, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

func (c *converter) need(what string) {
	c.needs = lists.With(c.needs, what)
}

func (c *converter) tag(name string) {
	c.tags = lists.With(c.tags, name)
}

// replaced returns a JSON text in which value replaces the value at path. If there is none, it returns raw.
func replaced(raw []byte, path, value string) []byte {
	v, err := wire.Parse(raw)
	if err != nil {
		return raw
	}
	at := v.Path(path)
	if !at.Exists() {
		return raw
	}
	from := at.Offset()
	return slices.Concat(raw[:from], []byte(value), raw[from+len(at.Raw()):])
}
