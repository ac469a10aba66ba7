package recordings

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// conditions returns the lines with the scenario's tags and with the capabilities that the agent must have.
func (c *converter) conditions() (lines []*script.Line) {
	if len(c.tags) > 0 {
		lines = append(lines, script.New("tag %s", texts(c.tags)))
	}
	if len(c.needs) > 0 {
		lines = append(lines, script.New("needs %s", texts(c.needs)))
	}
	return lines
}

func texts(list []string) (words []script.Word) {
	return lists.Map(list, script.Text)
}

// setUp returns the lines that make the scenario's editor behave like the recorded one.
func (c *converter) setUp() []*script.Line {
	held := lists.Map(c.holds, func(m string) *script.Line { return script.New("hold %s", m) })
	return slices.Concat(c.surroundings(), held, c.elicitations(), c.terminals(), c.capabilities())
}

// surroundings returns the lines for the environment, the files of HOME and the MCP servers.
func (c *converter) surroundings() (lines []*script.Line) {
	for _, name := range slices.Sorted(maps.Keys(c.places.Set)) {
		lines = append(lines, script.New("env %s", script.Option(name, c.word(c.places.Set[name]))))
	}
	for _, f := range c.places.HomeFiles {
		if !f.Profile {
			lines = append(lines, script.New("home %s %s", c.word(f.Path), "@"+homeFile(f.Path)))
		}
	}
	lines = append(lines, lists.Map(c.servers, func(what string) *script.Line { return script.New("mcp " + what) })...)
	return lines
}

// homeFile returns the name that a file in HOME has in the scenario's archive.
func homeFile(name string) string { return "home/" + name }

// capabilities returns the line for the capabilities of the recorded editor that differ from the defaults.
func (c *converter) capabilities() []*script.Line {
	var got map[string]json.RawMessage
	for e := range replay.Frames(c.t) {
		if e.Source == transcript.Editor && e.Method == "initialize" {
			_ = json.Unmarshal([]byte(e.JSON().Path("params."+c.offers()).Raw()), &got) // without capabilities, got stays nil
			break
		}
	}
	if got == nil {
		return nil
	}
	want := map[string]string{}
	offered := mockclient.DefaultCapabilities()
	if c.v2 {
		offered = nil
	}
	for key, value := range offered {
		text, err := json.Marshal(value)
		if err != nil {
			continue
		}
		want[key] = string(text)
	}
	var words []script.Word
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if string(got[key]) == "null" {
			c.leave("the editor's capability %s, which is null", key)
		} else if v, err := json.Marshal(got[key]); err == nil && want[key] != string(v) {
			words = append(words, script.Option(key, script.Quote(string(v))))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, there := got[key]; !there {
			words = append(words, script.Option(key, "none"))
		}
	}
	_, told := got["elicitation"]
	c.asked("elicitation/create", func(transcript.Entry) {
		if !told { // elicit lines would advertise elicitation
			told, words = true, append(words, script.Option("elicitation", "none"))
		}
	})
	if words == nil {
		return nil
	}
	return []*script.Line{script.New("client %s", words)}
}

// initialize returns the initialize request that the scenario's editor sends instead of the recorded one.
func (c *converter) initialize(e transcript.Entry) []byte {
	p := e.JSON().Get("params")
	n, ok := p.Get("protocolVersion").Int()
	if !ok {
		n = int64(c.version())
	}
	name, offers := "clientInfo", `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}`
	if c.v2 {
		name, offers = "info", `{}`
	}
	if caps := p.Get(c.offers()); caps.Exists() {
		offers = string(caps.Raw())
	}
	me := `{"name":"acp-test","title":"acp-test","version":"1"}`
	return replaced(e.Raw, "params", fmt.Sprintf(`{"protocolVersion":%d,%q:%s,%q:%s}`, n, name, me, c.offers(), offers))
}

// offers returns the name of the member with the editor's capabilities in the params of initialize.
func (c *converter) offers() string {
	if c.v2 {
		return "capabilities"
	}
	return "clientCapabilities"
}

// permissions adds permit lines with the editor's answers to the permission requests after a prompt, up to the next
// prompt.
func (c *converter) permissions(prompt int) {
	var choices []string
	for e := range c.t.From(prompt + 1) {
		if e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt" {
			break
		}
		if e.Source == transcript.Agent && e.Kind == transcript.Request && e.Method == "session/request_permission" {
			choices = append(choices, c.choice(e))
		}
	}
	switch same := slices.Compact(slices.Clone(choices)); {
	case len(same) == 1 && same[0] != c.permit:
		c.permit = same[0]
		c.line("permit " + same[0])
	case len(same) > 1:
		c.permit = ""
		for i, choice := range choices {
			c.line("permit "+choice+" nth=%s", i+1)
		}
	}
}

// choice returns the editor's answer to a permission request, in the words of a permit line.
func (c *converter) choice(asked transcript.Entry) string {
	a, ok := c.answers[asked.Seq]
	v := a.JSON()
	switch {
	case c.hand[asked.Seq] != "" && c.cancelledBefore(asked, a):
		return "hold late"
	case !ok, c.hand[asked.Seq] != "":
		return "hold"
	case v.Get("error").Exists():
		return "error:" + v.Path("error.code").Text()
	case v.Path("result.outcome.outcome").Is("selected"):
		id := v.Path("result.outcome.optionId").Str()
		kind, nth := kindOf(asked.JSON().Get("params"), id)
		if kind == "" || nth > 0 { // the kind alone would mean the first option of this kind
			return c.word("option:" + id).String()
		}
		return kind
	case c.cancelledBefore(asked, a):
		return "hold"
	}
	return "cancelled"
}

// cancelledBefore reports whether the turn was cancelled between the request q and the answer a. On a cancel, the
// scenario's editor answers q by itself.
func (c *converter) cancelledBefore(q, a transcript.Entry) bool {
	return lists.Any(c.t.Between(q.Seq, a.Seq), func(e transcript.Entry) bool {
		return e.Method == "session/cancel" && e.Session == q.Session
	})
}

// asked calls f for each request of the agent with the given method. If method is "", it calls f for all requests.
func (c *converter) asked(method string, f func(transcript.Entry)) {
	for e := range replay.Frames(c.t) {
		if e.Source == transcript.Agent && e.Kind == transcript.Request && (method == "" || e.Method == method) {
			f(e)
		}
	}
}

// elicitations returns the lines with the editor's answers to elicitations.
func (c *converter) elicitations() (lines []*script.Line) {
	c.asked("elicitation/create", func(q transcript.Entry) {
		result := c.answers[q.Seq].JSON().Get("result")
		action := result.Get("action").Str()
		if c.hand[q.Seq] != "" || !slices.Contains([]string{"accept", "decline", "cancel"}, action) {
			action = "hold"
		}
		var options []script.Word
		if content := result.Get("content"); content.Kind() == wire.Object && action != "hold" {
			options = append(options, script.Option("content", script.Quote(string(content.Raw()))))
		}
		lines = append(lines, script.New("elicit %s mode=%s nth=%s %s", action, q.JSON().Path("params.mode").Text(),
			len(lines)+1, options))
	})
	return lines
}

// terminals returns the lines that script the commands which the agent ran in terminals.
func (c *converter) terminals() (lines []*script.Line) {
	c.asked("terminal/create", func(q transcript.Entry) {
		id := c.answers[q.Seq].JSON().Path("result.terminalId").Str()
		output, status := "", wire.Value{}
		c.asked("terminal/output", func(o transcript.Entry) {
			if r := c.answers[o.Seq].JSON().Get("result"); o.Conn == q.Conn && o.JSON().Path("params.terminalId").Is(id) {
				output = r.Get("output").Str()
				if s := r.Get("exitStatus"); s.Kind() == wire.Object {
					status = s
				}
			}
		})
		c.asked("terminal/wait_for_exit", func(o transcript.Entry) {
			if r := c.answers[o.Seq].JSON().Get("result"); o.Conn == q.Conn && o.JSON().Path("params.terminalId").Is(id) &&
				r.Kind() == wire.Object {
				status = r
			}
		})
		options := []script.Word{script.Option("match", c.word(strings.TrimSpace(about(q))))}
		if output != "" {
			options = append(options, script.Option("output", c.word(output)))
		}
		if signal := status.Get("signal").Str(); signal != "" {
			options = append(options, script.Option("signal", c.word(signal)))
		} else if code, ok := status.Get("exitCode").Int(); ok && code != 0 {
			options = append(options, script.Option("exit", code))
		}
		if !status.Exists() || c.killed(q, id) {
			options = append(options, script.Text("hold"))
		}
		line := script.New("terminal scripted %s", options)
		if !slices.ContainsFunc(lines, func(l *script.Line) bool { return l.String() == line.String() }) {
			lines = append(lines, line)
		}
	})
	return lines
}

// killed reports whether the agent sent terminal/kill for a terminal. The command in the terminal was then still
// running.
func (c *converter) killed(q transcript.Entry, id string) (killed bool) {
	c.asked("terminal/kill", func(k transcript.Entry) {
		killed = killed || k.Conn == q.Conn && k.JSON().Path("params.terminalId").Is(id)
	})
	return killed
}

// reply returns an answer as the scenario's editor gives it, which may differ from the recorded answer.
func (c *converter) reply(e transcript.Entry) []byte {
	v := e.JSON()
	failed := v.Get("error").Exists()
	fail := func(code int, message string) []byte {
		return serve.Error(e.ID, strconv.Itoa(code), message)
	}
	path := c.t.At(e.Ref).JSON().Path("params.path").Str()
	switch e.Method {
	case "fs/read_text_file":
		if failed {
			return fail(-32002, "Resource not found: "+path)
		}
		return serve.Result(e.ID, `{"content":`+string(v.Path("result.content").Raw())+`}`)
	case "fs/write_text_file":
		if failed {
			c.leave("the editor's error response #%d: the scenario's editor writes %s instead", e.Seq,
				c.vary(path, func(name string) string { return "$" + name }))
		}
		return serve.Result(e.ID, "{}")
	case "session/request_permission":
		if failed {
			return serve.Error(e.ID, v.Path("error.code").Text(), "the client failed, as the scenario says")
		}
		outcome := v.Path("result.outcome")
		if id := outcome.Get("optionId"); outcome.Get("outcome").Is("selected") {
			return serve.Result(e.ID, `{"outcome":{"outcome":"selected","optionId":`+string(id.Raw())+`}}`)
		}
		return serve.Result(e.ID, `{"outcome":{"outcome":"cancelled"}}`)
	case "terminal/kill", "terminal/release":
		return serve.Result(e.ID, "{}")
	case "terminal/create", "terminal/output", "terminal/wait_for_exit", "elicitation/create":
		return e.Raw
	}
	if !v.Path("error.code").Exists() || v.Path("error.code").Text() != "-32601" {
		c.leave("the editor's response #%d to %s: the scenario's editor does not know that method", e.Seq, e.Method)
	}
	return fail(-32601, "method not found: "+e.Method)
}

// files returns the known files of the workspace. Some texts cannot be stored in an archive unchanged: texts that do
// not end with a line break, or that contain a line like the header of a file. For these, writes has lines that write
// the files.
func (c *converter) files() (files []script.ArchiveFile, writes []*script.Line) {
	known := map[string][]byte{}
	if c.noted {
		c.listed(known, "", c.places.Files)
		c.listed(known, homeFile(""), c.places.HomeFiles)
		if c.places.Cut != "" {
			c.leave("files of the workspace: %s", c.places.Cut)
		}
	} else {
		known = Files(c.t)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		data := known[name]
		again := txtar.Parse(txtar.Format(&txtar.Archive{Files: []txtar.File{{Name: name, Data: data}}}))
		if len(again.Files) == 1 && string(again.Files[0].Data) == string(data) && name != "llm.yaml" &&
			!strings.HasPrefix(name, "want/") && (!strings.HasSuffix(name, ".base64") || c.noted) {
			files = append(files, script.ArchiveFile{File: txtar.File{Name: name, Data: data}})
			continue
		}
		writes = append(writes, script.New("write %s %s", c.word(name), c.word(string(data))))
	}
	return files, writes
}

// listed adds the files of a manifest to to, with below before each name.
func (c *converter) listed(to map[string][]byte, below string, files []workspace.Listed) {
	for _, f := range files {
		switch {
		case f.Profile:
		case f.Text != nil:
			to[below+f.Path] = []byte(c.placed(strings.ReplaceAll(*f.Text, "$", "$$")))
		case f.Link != "":
			c.leave("the link %s", f.Path)
		case f.Base64 != nil:
			to[below+f.Path+".base64"] = []byte(base64.StdEncoding.EncodeToString(f.Base64) + "\n")
		case f.Left != "":
			c.leave("the file %s: %s", f.Path, f.Left)
		}
	}
}
