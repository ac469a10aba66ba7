package recordings

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// lookAhead finds the answers, how the processes ended, and the requests that
// are cancelled later, which need a name.
func (c *converter) lookAhead() {
	asked := map[wire.ID]int{}    // the editor's, of the process at hand
	handed := map[string]string{} // what answers have for later requests
	for e := range c.t.All() {
		c.count(e)
		if given := V1().Facts(e).Handed; given != "" && e.Ref > 0 {
			handed[given] = fmt.Sprintf("R%d", e.Ref)
		}
		if ref := handed[e.JSON().Path("params.cursor").Str()]; ref != "" && e.Source == transcript.Editor {
			seq := 0
			_, _ = fmt.Sscanf(ref, "R%d", &seq)
			c.refs[seq], c.cursors[e.Seq] = ref, ref
		}
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
	conn := 0
	for e := range c.t.All() {
		c.release(e)
		switch {
		case e.Source == transcript.Process && e.Kind != transcript.Started && e.Kind != transcript.Written:
			c.ended(e)
			continue
		case e.Source == transcript.Note:
			c.beside(e)
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
			if c.hand[e.Seq] != "" {
				c.asks(e)
			} else {
				c.heard(e)
			}
			continue
		}
		c.tail = nil
		if e.Source == transcript.Editor && e.Method == "session/prompt" && len(c.seen) == 0 {
			c.turns++
			name := "recorded"
			if c.turns > 1 {
				name = fmt.Sprintf("turn-%d", c.turns)
			}
			c.lines = append(c.lines, &script.Line{Kind: script.Blank}, script.New("check "+name))
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
	if len(c.lines) == 0 {
		c.line("initialize")
	}
	c.awaitTail()
	return nil
}

// awaitTail waits for what came last, so that a run does not end before it.
func (c *converter) awaitTail() {
	var lines []*script.Line
	for _, p := range c.tail {
		lines = append(lines, script.New("await %s", []script.Word(p)))
	}
	if len(lines) > 1 {
		lines = []*script.Line{script.New("group {").With(lines...)}
	}
	c.lines = append(c.lines, lines...)
}

// ended keeps how a process ended: the last one is ended by the run itself,
// unless it ended alone.
func (c *converter) ended(e transcript.Entry) {
	c.awaitAll()
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
	c.ready = false
	c.seen = map[string]*seen{}
}

// heard makes the line for what the script has to wait for.
func (c *converter) heard(e transcript.Entry) {
	var p pattern
	update := acpframe.Update(e)
	if update != "" {
		one := append(kind(e), c.of(e.Session))
		if n := len(c.tail); n == 0 || !isChunk(update) || c.tail[n-1].String() != one.String() {
			c.tail = append(c.tail, one)
		}
	}
	switch {
	case e.Kind == transcript.Response, e.Kind == transcript.Notification && e.Ref > 0:
		c.tail = nil
		c.answered(e)
		return
	case e.Method == "session/request_permission":
		p = pattern{script.Text("permission")}
	case update == "tool_call_update":
		p = kind(e)
		if status := e.JSON().Path("params.update.status").Str(); status != "" {
			p = append(p, script.Option("status", status))
		}
	case c.second && c.seen[e.Session] != nil && strings.HasPrefix(update, "user_message"): // before or after the answer
	case update != "" && !isState(update):
		p = kind(e)
	case e.Kind == transcript.Request && c.seen[e.Session] != nil: // what the agent waits for when an act comes
		p = pattern{script.Text("request"), script.Text(e.Method)}
	}
	s := c.seen[e.Session]
	switch late := c.late[e.Session]; {
	case p == nil:
	case s == nil: // message by message: there is nothing else to tell the last by
		if n := len(late); n == 0 || late[n-1].String() != p.String() || !isChunk(acpframe.Update(e)) {
			c.late[e.Session] = append(late, p)
		}
	default:
		s.pattern, s.text, s.state = p, isChunk(update), update == "state_update"
		if isChunk(acpframe.Update(e)) {
			s.counts[p.String()] = 1 // how a text is cut is chance
		} else {
			s.counts[p.String()]++
		}
	}
}

// works reports whether a line has awaited a gate at which the model is held for a session,
// so that it is known to be at work.
func (c *converter) works(session string) bool {
	return slices.ContainsFunc(c.gates, func(g fakellm.RecordedGate) bool {
		return g.Session == session && g.Holds(c.at) && c.awaits[g.Name]
	})
}

// kind is the pattern of an update: how a message is cut into pieces is chance.
func kind(e transcript.Entry) pattern {
	switch update := acpframe.Update(e); update {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		return pattern{script.Text(strings.TrimSuffix(update, "_chunk"))}
	case "state_update":
		return pattern{script.Text("state"), script.Text(e.JSON().Path("params.update.state").Str())}
	default:
		return pattern{script.Text(update)}
	}
}

// of names the session of a pattern where it is not the current one.
func (c *converter) of(session string) script.Word {
	if c.names[session] == "" || len(c.names) == 1 && session == c.current {
		return script.Word{}
	}
	return script.Option("session", c.names[session])
}

func (c *converter) answered(e transcript.Entry) {
	asked := c.t.At(e.Ref)
	stop, over := c.p.TurnEnd(e)
	switch {
	case e.Ref == 0:
	case over && !c.raw(asked):
		delete(c.seen, asked.Session)
		delete(c.late, asked.Session)
		if stop != "error" && !slices.Contains(c.p.StopReasons, stop) {
			stop = "any"
		}
		c.lines = append(c.lines, c.held()...)
		c.line("await turn %s %s", stop, c.of(asked.Session))
	case e.Method == "session/load", e.Method == "session/resume":
		delete(c.late, asked.Session)
		if s := c.seen[asked.Session]; s != nil {
			s.pattern = nil
		}
		if ref := c.refs[asked.Seq]; ref != "" {
			c.line("await response %s", ref) // what is awaited next comes after it
		}
	case c.refs[asked.Seq] != "" && c.raw(asked) && e.JSON().Get("error").Exists():
		c.begun = true
		c.line("await response %s code=%s", c.refs[asked.Seq], e.JSON().Path("error.code").Text())
	case c.refs[asked.Seq] != "" && (c.raw(asked) || !waits(asked.Method)):
		c.begun = true
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
	case "initialize", "authenticate", "logout", "auth/login", "auth/logout", "session/new", "session/load",
		"session/resume", "session/close", "session/delete", "tool_call/cancel", "terminal/cancel",
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
	case e.Kind == transcript.Response && c.answersByHand(e):
		return e.Raw, nil
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
	case e.Method == "initialize" && !c.raw(e):
		implied := !c.ready && (e.Conn > 0 || c.greets(e))
		c.ready = true
		if n, ok := v.Path("params.protocolVersion").Int(); ok && int(n) != c.version() {
			c.named(e, "initialize %s", script.Option("version", n))
		} else if !implied {
			c.named(e, "initialize")
		}
		return c.initialize(e), nil
	case e.Method == "session/prompt" && !c.raw(e):
		return c.prompt(e)
	case e.Method == "session/cancel" && !c.raw(e):
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
	case c.stranger(e):
		return nil, fmt.Errorf("#%d opens a session that was not made in this recording: record both in one process", e.Seq)
	case waits(e.Method) && !c.raw(e):
		return c.call(e)
	case e.Kind == transcript.Request:
		if c.answers[e.Seq].Seq > 0 && c.refs[e.Seq] == "" {
			c.refs[e.Seq] = fmt.Sprintf("R%d", e.Seq)
		}
		c.awaitSeen(e.Session)
		c.named(e, "request %s %s", e.Method, c.json(params(v)))
	default:
		c.awaitSeen(e.Session)
		c.line("notify %s %s", e.Method, c.json(params(v)))
	}
	return e.Raw, nil
}

// greets reports whether the next act sends initialize by itself.
func (c *converter) greets(e transcript.Entry) bool {
	if c.begun { // the line before it does
		return true
	}
	for next := range c.t.From(e.Seq + 1) {
		if next.Source == transcript.Editor && next.Frame() {
			return next.Conn == e.Conn && strings.HasPrefix(next.Method, "session/") && waits(next.Method) && !c.raw(next)
		}
	}
	return false
}

// raw reports whether a frame is sent as it is, since it was refused or speaks of a
// session that nobody opened: an act of the language sends what may be accepted.
func (c *converter) raw(e transcript.Entry) bool {
	a, ok := c.answers[e.Seq]
	if e.Session != "" && c.names[e.Session] == "" && e.Method != "session/new" || c.second && c.odd(e) {
		return true
	}
	return ok && a.JSON().Get("error").Exists() &&
		slices.Contains([]string{"session/new", "session/load", "session/resume"}, e.Method)
}

// odd reports whether no act of version 2 says what a request asks for.
func (c *converter) odd(e transcript.Entry) bool {
	p := e.JSON().Get("params")
	switch e.Method {
	case "initialize":
		return p.Path("info.name").Kind() != wire.String || p.Get("protocolVersion").Kind() != wire.Number ||
			c.answers[e.Seq].JSON().Path("result.protocolVersion").Text() == "1"
	case "authenticate", "logout", "session/load", "session/set_mode": // which are of version 1
		return true
	case "auth/login":
		return c.answers[e.Seq].JSON().Get("error").Exists()
	case "session/set_config_option":
		boolean := p.Get("value").Kind() == wire.Bool
		return !p.Get("type").Is("boolean") && boolean || !p.Get("type").Is("id") && !boolean
	case "session/resume":
		from := p.Get("replayFrom")
		return from.Exists() && (!from.Get("type").Is("start") || from.Len() != 1)
	case "tool_call/cancel":
		return c.ids["toolCallId "+p.Get("toolCallId").Str()] == ""
	case "terminal/cancel":
		return c.ids["terminalId "+p.Get("terminalId").Str()] == ""
	}
	return false
}

// count numbers the tool calls and the terminals of version 2, as scenarios name them.
func (c *converter) count(e transcript.Entry) {
	for key, variable := range map[string]string{"toolCallId": "TOOL", "terminalId": "TERMINAL"} {
		id := e.JSON().Path("params.update." + key).Str()
		if id == "" || !c.second || c.ids[key+" "+id] != "" {
			continue
		}
		n := 1
		for known := range c.ids {
			if strings.HasPrefix(known, key+" ") {
				n++
			}
		}
		c.ids[key+" "+id] = fmt.Sprintf("%s(%d)", variable, n)
	}
}

// stranger reports whether a session is opened that another recording has.
func (c *converter) stranger(e transcript.Entry) bool {
	opens := e.Method == "session/load" || e.Method == "session/resume"
	return opens && c.names[e.Session] == "" && c.answers[e.Seq].JSON().Get("result").Exists()
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
	waits := c.held()
	if s := c.seen[session]; s != nil && s.pattern != nil && !(s.state && c.works(session)) {
		for range s.counts[s.pattern.String()] {
			waits = append(waits, script.New("await %s %s", []script.Word(s.pattern), c.of(session)))
		}
		s.pattern, s.counts = nil, map[string]int{} // the next act waits for more
	}
	if len(waits) > 1 && waits[0].Says("await", "gate") { // in which order they come is chance
		waits = []*script.Line{script.New("group {").With(waits...)}
	}
	c.lines = append(c.lines, waits...)
}

// awaitAll makes an act wait for what had come in any session.
func (c *converter) awaitAll() {
	for _, session := range slices.Sorted(maps.Keys(c.seen)) {
		c.awaitSeen(session)
	}
}

// beside makes the lines for what the user did beside the wire.
func (c *converter) beside(e transcript.Entry) {
	v := e.JSON()
	text := v.Get("text").Str()
	switch {
	case e.Kind == transcript.FileWritten:
		c.line("write %s %s", c.word(v.Get("path").Str()), c.word(text))
	case e.Kind == transcript.Act && strings.HasPrefix(text, "write-shape "):
		c.line("write-shape %s", strings.TrimPrefix(text, "write-shape "))
	case e.Kind == transcript.Act && strings.HasPrefix(text, "stall "):
		c.line("stall %s", strings.TrimPrefix(text, "stall "))
	}
}

// call makes the line for a request whose answer the line waits for.
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
	options = c.meta(e, options)
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
	if !p.Get("mcpServers").Exists() {
		c.leave("that the editor's #%d has no mcpServers: the scenario's has an empty list", e.Seq)
	}
	if answer.Seq == 0 {
		options = append(options, script.Option("wait", "no"))
	}
	c.named(e, "session %s %s %s", verb, name, options)
	return c.mcp(e), nil
}

// meta adds the option for what an editor gives along.
func (c *converter) meta(e transcript.Entry, options []script.Word) []script.Word {
	switch meta := e.JSON().Path("params._meta"); {
	case meta.Kind() == wire.Object:
		return append(options, script.Option("meta", c.json(string(meta.Raw()))))
	case meta.Exists():
		c.leave("_meta of the editor's #%d, which is no object", e.Seq)
	}
	return options
}

// mcp is a frame that opens a session with the MCP servers that the scenario names:
// those of a test, which set-up lines give.
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
		if !slices.Contains(c.servers, what) {
			c.servers = append(c.servers, what)
		}
	}
	if given == servers.Len() {
		return e.Raw
	}
	return replaced(e.Raw, "params.mcpServers", "[]")
}

// rename shows a text of the recording in its golden as a run of the scenario has it.
func (c *converter) rename(from, to string) {
	if from != "" {
		c.out.renamed = append(c.out.renamed, [2]string{from, to})
	}
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

// sameJSON reports whether two JSON texts mean the same.
func sameJSON(a []byte, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
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
