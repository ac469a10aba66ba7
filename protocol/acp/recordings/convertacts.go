package recordings

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// lookAhead finds the answers, how the processes ended, and the requests that
// are cancelled later, which need a name.
func (c *converter) lookAhead() {
	asked := map[wire.ID]int{} // the editor's, of the process at hand
	for e := range c.t.All() {
		for len(c.ends) <= e.Conn {
			c.ends = append(c.ends, ending{})
		}
		end := &c.ends[e.Conn]
		switch {
		case e.Source == transcript.Process && e.Kind == transcript.Started:
			asked = map[wire.ID]int{}
		case e.Source == transcript.Process && end.at == 0 && e.Kind == transcript.StdinClosed:
			end.at = e.Seq
		case e.Source == transcript.Process && end.at == 0 && e.Kind == transcript.Signalled:
			end.at, end.killed = e.Seq, e.JSON().Get("signal").Is("SIGKILL")
		case e.Source == transcript.Process && end.at == 0 && e.Kind == transcript.Exited:
			end.at, end.alone, end.status = e.Seq, true, e.JSON().Get("code").Text()
		case !e.Frame():
		case e.Kind == transcript.Response && e.Ref > 0:
			if _, again := c.answers[e.Ref]; !again {
				c.answers[e.Ref] = e
			}
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			asked[e.ID] = e.Seq
		case e.Source == transcript.Editor && e.Method == "$/cancel_request":
			if seq := asked[wire.ID(e.JSON().Path("params.requestId").Raw())]; seq > 0 {
				c.refs[seq] = fmt.Sprintf("R%d", seq)
			}
		}
	}
}

// acts makes a line for each frame of the editor and for each answer it waited
// for, and keeps what a run of them should log.
func (c *converter) acts() error {
	conn, checked := 0, false
	for e := range c.t.All() {
		switch {
		case e.Source == transcript.Process && e.Kind != transcript.Started && e.Kind != transcript.Written:
			c.ended(e)
			continue
		case !e.Frame() || c.ends[e.Conn].at > 0 && e.Seq > c.ends[e.Conn].at && e.Conn == len(c.ends)-1:
			continue // nothing waits for what comes after the end
		case e.Conn < conn:
			return fmt.Errorf("#%d: two agent processes run at the same time; a scenario has one after the other", e.Seq)
		case e.Conn > conn:
			conn = e.Conn
			c.restart(e)
		}
		if e.Source == transcript.Agent {
			c.out.frames = append(c.out.frames, e)
			c.heard(e)
			continue
		}
		if !checked && e.Method == "session/prompt" {
			checked = true
			c.lines = append(c.lines, &script.Line{Kind: script.Blank}, script.New("check recorded"))
		}
		said, err := c.said(e)
		if err != nil {
			return err
		}
		if said != nil {
			e.Raw = said
			c.out.frames = append(c.out.frames, e)
		}
	}
	if !checked && len(c.lines) == 0 {
		c.line("initialize")
	}
	return nil
}

// ended keeps how a process ended: the last one is ended by the run itself,
// unless it ended alone.
func (c *converter) ended(e transcript.Entry) {
	last := e.Conn == len(c.ends)-1
	if end := c.ends[e.Conn]; end.alone && e.Seq == end.at {
		c.line("await exit %s", end.status)
	} else if last {
		return
	}
	c.out.frames = append(c.out.frames, e)
}

// restart begins a new process. Its predecessor's end is known only where the
// recording has one.
func (c *converter) restart(first transcript.Entry) {
	if end := c.ends[first.Conn-1]; end.killed {
		c.line("kill")
	} else if end.at == 0 {
		closed := first
		closed.Conn, closed.Source, closed.Kind, closed.Raw = first.Conn-1, transcript.Process, transcript.StdinClosed,
			[]byte("{}")
		closed.Method, closed.ID, closed.Session, closed.Ref = "", "", "", 0
		gone := closed
		gone.Kind, gone.Raw = transcript.Exited, []byte(`{"code":0}`)
		c.out.frames = append(c.out.frames, closed, gone)
	}
	c.line("restart")
	c.seen = map[string]*seen{}
}

// heard makes the line for what the script has to wait for.
func (c *converter) heard(e transcript.Entry) {
	var p pattern
	switch update := acpframe.Update(e); {
	case e.Kind == transcript.Response:
		c.answered(e)
		return
	case e.Method == "session/request_permission":
		p = pattern{script.Text("permission")}
	case update == "tool_call_update":
		p = pattern{script.Text(update)}
		if status := e.JSON().Path("params.update.status").Str(); status != "" {
			p = append(p, script.Option("status", status))
		}
	case update != "" && !isState(update):
		p = pattern{script.Text(strings.TrimSuffix(update, "_chunk"))}
	}
	s := c.seen[e.Session]
	switch late := c.late[e.Session]; {
	case p == nil:
	case s == nil: // message by message: there is nothing else to tell the last by
		if n := len(late); n == 0 || late[n-1].String() != p.String() || !isChunk(acpframe.Update(e)) {
			c.late[e.Session] = append(late, p)
		}
	default:
		s.pattern = p
		if isChunk(acpframe.Update(e)) {
			s.counts[p.String()] = 1 // how a text is cut is chance
		} else {
			s.counts[p.String()]++
		}
	}
}

// of names the session of a pattern where it is not the current one.
func (c *converter) of(session string) script.Word {
	if session == c.current || c.names[session] == "" {
		return script.Word{}
	}
	return script.Option("session", c.names[session])
}

func (c *converter) answered(e transcript.Entry) {
	asked := c.t.At(e.Ref)
	switch {
	case e.Ref == 0:
	case e.Method == "session/prompt":
		delete(c.seen, asked.Session)
		delete(c.late, asked.Session)
		stop := e.JSON().Path("result.stopReason").Str()
		switch {
		case e.JSON().Get("error").Exists():
			stop = "error"
		case !slices.Contains([]string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}, stop):
			stop = "any"
		}
		c.line("await turn %s %s", stop, c.of(asked.Session))
	case e.Method == "session/load", e.Method == "session/resume":
		delete(c.late, asked.Session)
		if ref := c.refs[asked.Seq]; ref != "" {
			c.line("await response %s", ref) // what is awaited next comes after it
		}
	case c.refs[asked.Seq] != "" && !waits(asked.Method):
		c.line("await response %s", c.refs[asked.Seq])
	}
}

// followed reports whether content comes after the answer to a load, before the
// editor does anything else in that session.
func (c *converter) followed(load transcript.Entry) bool {
	answer := c.answers[load.Seq].Seq
	if answer == 0 {
		return false
	}
	for e := range c.t.From(answer + 1) {
		switch {
		case e.Session != load.Session:
		case e.Source == transcript.Editor:
			return false
		case acpframe.Update(e) != "" && !isState(acpframe.Update(e)):
			return true
		}
	}
	return false
}

// waits reports whether the act for a request waits for the answer.
func waits(method string) bool {
	switch method {
	case "initialize", "authenticate", "logout", "session/new", "session/load", "session/resume", "session/close",
		"session/delete",
		"session/list", "session/set_mode", "session/set_config_option":
		return true
	}
	return false
}

// said makes the line for a frame of the editor, and returns the frame that the
// line will write; nil if there is no such line.
func (c *converter) said(e transcript.Entry) ([]byte, error) {
	v := e.JSON()
	switch {
	case e.Kind == transcript.Response:
		return c.reply(e), nil
	case e.Kind == transcript.Malformed:
		if len(strings.TrimSpace(string(e.Raw))) == 0 {
			return nil, nil
		}
		if e.Size > 0 || strings.ContainsAny(string(e.Raw), "\r\x00") ||
			!slices.Equal([]byte(strings.ToValidUTF8(string(e.Raw), "")), e.Raw) {
			c.leave("the editor's line #%d, which is no text", e.Seq)
			return nil, nil
		}
		c.line("send %s", c.word(string(e.Raw)))
		return e.Raw, nil
	case e.Method == "initialize":
		if n, ok := v.Path("params.protocolVersion").Int(); ok && n != 1 {
			c.named(e, "initialize %s", script.Option("version", n))
		}
		return c.initialize(e), nil
	case e.Method == "session/prompt":
		return c.prompt(e)
	case e.Method == "session/cancel":
		c.tag("cancel")
		c.awaitSeen(e.Session)
		c.line("cancel %s", c.name(e.Session))
		c.current = e.Session
		return e.Raw, nil
	case e.Method == "$/cancel_request":
		if ref := c.cancelled(e); ref != "" {
			c.awaitSeen(c.current)
			c.line("cancel-request %s", ref)
			return e.Raw, nil
		}
		c.leave("the editor's #%d, a $/cancel_request for no request of its own", e.Seq)
		return nil, nil
	case waits(e.Method):
		return c.call(e)
	case e.Kind == transcript.Request:
		if c.answers[e.Seq].Seq > 0 && c.refs[e.Seq] == "" {
			c.refs[e.Seq] = fmt.Sprintf("R%d", e.Seq)
		}
		c.named(e, "request %s %s", e.Method, c.json(params(v)))
	default:
		c.line("notify %s %s", e.Method, c.json(params(v)))
	}
	return e.Raw, nil
}

func params(v wire.Value) string {
	if p := v.Get("params"); p.Exists() {
		return string(p.Raw())
	}
	return "{}"
}

// as is the name of the request of a line, if another line speaks of it or its answer
// was an error, which a line without a name takes for a failure.
func (c *converter) as(e transcript.Entry) string {
	a := c.answers[e.Seq]
	loaded := e.Method == "session/load" || e.Method == "session/resume"
	if waits(e.Method) && a.JSON().Get("error").Exists() || loaded && c.followed(e) {
		c.refs[e.Seq] = fmt.Sprintf("R%d", e.Seq)
	}
	return c.refs[e.Seq]
}

func (c *converter) cancelled(e transcript.Entry) string {
	id := wire.ID(e.JSON().Path("params.requestId").Raw())
	for seq, ref := range c.refs {
		if r := c.t.At(seq); seq < e.Seq && r.ID == id && r.Conn == e.Conn {
			return ref
		}
	}
	return ""
}

// awaitSeen makes an act wait for what had come by then: in the middle of a turn
// for the newest, between turns for all.
func (c *converter) awaitSeen(session string) {
	for _, p := range c.late[session] {
		c.line("await %s %s", []script.Word(p), c.of(session))
	}
	delete(c.late, session)
	s := c.seen[session]
	if s == nil || s.pattern == nil {
		return
	}
	for range s.counts[s.pattern.String()] {
		c.line("await %s %s", []script.Word(s.pattern), c.of(session))
	}
	s.pattern, s.counts = nil, map[string]int{} // the next act waits for more
}

// call makes the line for a request whose answer the line waits for.
func (c *converter) call(e transcript.Entry) ([]byte, error) {
	p := e.JSON().Get("params")
	verb := strings.TrimPrefix(e.Method, "session/")
	c.awaitSeen(e.Session)
	switch e.Method {
	case "authenticate":
		c.named(e, "authenticate %s", c.word(p.Get("methodId").Str()))
	case "logout":
		c.named(e, "logout")
	case "session/list":
		c.need("agent:sessionCapabilities.list")
		var options []script.Word
		for _, key := range []string{"cwd", "cursor"} {
			if value := p.Get(key).Str(); value != "" {
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
		if c.names[e.Session] == "" {
			return nil, fmt.Errorf("#%d opens a session that was not made in this recording: record both in one process", e.Seq)
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

// open makes the line for session/new, load and resume.
func (c *converter) open(e transcript.Entry, verb string) ([]byte, error) {
	p := e.JSON().Get("params")
	var options []script.Word
	if cwd := p.Get("cwd").Str(); cwd != c.out.work {
		rel, below := strings.CutPrefix(cwd, strings.TrimSuffix(c.out.work, "/")+"/")
		if !below || rel != path.Clean(rel) || strings.HasPrefix(rel, "../") {
			return nil, fmt.Errorf("#%d opens a session in %s, which is not below the first session's folder %s: a "+
				"scenario has one workspace", e.Seq, cwd, c.out.work)
		}
		options = append(options, script.Option("cwd", c.word(rel)))
	}
	for d := range p.Get("additionalDirectories").Items() {
		options = append(options, script.Option("add", c.word(d.Str())))
	}
	if meta := p.Get("_meta"); meta.Kind() == wire.Object {
		options = append(options, script.Option("meta", script.Quote(string(meta.Raw()))))
	}
	answer := c.answers[e.Seq]
	session := e.Session
	if verb == "new" {
		session = answer.JSON().Path("result.sessionId").Str()
	}
	name := ""
	if session == "" {
		c.failed++
		name = fmt.Sprintf("failed%d", c.failed)
	} else {
		name = c.name(session)
		c.current = session
	}
	if answer.Seq == 0 {
		options = append(options, script.Option("wait", "no"))
	}
	c.named(e, "session %s %s %s", verb, name, options)
	raw := e.Raw
	if p.Get("mcpServers").Len() > 0 {
		c.leave("the MCP servers that the editor's #%d named", e.Seq)
		raw = replaced(raw, "params.mcpServers", "[]")
	}
	return raw, nil
}

// prompt makes the lines for a prompt and for the answers to the permissions
// asked for until the next one.
func (c *converter) prompt(e transcript.Entry) ([]byte, error) {
	text, _ := V1().Prompt(e)
	if c.prompts == nil {
		c.prompts = map[string]int{}
	}
	if first := c.prompts[text]; first > 0 {
		return nil, fmt.Errorf("the prompts #%d and #%d have the same text, by which a scenario tells the turns of "+
			"the model: change one of them in the recording", first, e.Seq)
	}
	c.prompts[text] = e.Seq
	c.awaitSeen(e.Session)
	c.permissions(e.Seq)
	c.named(e, "prompt %s %s", c.name(e.Session), c.word(text))
	c.current = e.Session
	c.seen[e.Session] = &seen{counts: map[string]int{}}
	for b := range e.JSON().Path("params.prompt").Items() {
		if !b.Get("type").Is("text") {
			c.leave("a %s in the prompt #%d; the word attach=FILE adds one", b.Get("type").Text(), e.Seq)
		}
	}
	return replaced(e.Raw, "params.prompt", `[{"type":"text","text":`+serve.Quote(text)+`}]`), nil
}

func (c *converter) need(what string) {
	if !slices.Contains(c.needs, what) {
		c.needs = append(c.needs, what)
	}
}

func (c *converter) tag(name string) {
	if !slices.Contains(c.tags, name) {
		c.tags = append(c.tags, name)
	}
}

// replaced is a JSON text with another value at a path that it has.
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
