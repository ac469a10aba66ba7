package recordings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// lookAhead collects what later entries say about earlier ones: the answers, the ends of processes, and the requests
// that need a name because the editor cancels them or uses their cursor.
func (c *converter) lookAhead() {
	asked := map[wire.ID]int{}    // by id, the editor's requests to the current process
	handed := map[string]string{} // by cursor, the name of the request whose answer has the cursor
	for e := range c.t.All() {
		c.count(e)
		c.linkCursor(e, handed)
		for len(c.ends) <= e.Conn {
			c.ends = append(c.ends, ending{})
		}
		switch {
		case e.Source == transcript.Process && e.Kind == transcript.Started:
			asked = map[wire.ID]int{}
		case e.Source == transcript.Process:
			c.ends[e.Conn].note(e)
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

// linkCursor gives a name to the request whose answer has the cursor that a later request uses.
func (c *converter) linkCursor(e transcript.Entry, handed map[string]string) {
	if given := V1().Facts(e).Handed; given != "" && e.Ref > 0 {
		handed[given] = fmt.Sprintf("R%d", e.Ref)
	}
	if ref := handed[e.JSON().Path("params.cursor").Str()]; ref != "" && e.Source == transcript.Editor {
		seq := 0
		_, _ = fmt.Sscanf(ref, "R%d", &seq)
		c.refs[seq], c.cursors[e.Seq] = ref, ref
	}
}

// note records how the process ended. Only the first entry about the end counts.
func (end *ending) note(e transcript.Entry) {
	if end.at > 0 {
		return
	}
	switch e.Kind {
	case transcript.StdinClosed:
		end.at = e.Seq
	case transcript.Signalled:
		end.at, end.killed = e.Seq, e.JSON().Get("signal").Is("SIGKILL")
	case transcript.Exited:
		end.at, end.alone, end.status = e.Seq, true, e.JSON().Get("code").Text()
	}
}

// acts adds a line for each message of the editor, and for each answer that the editor waited for. It also collects
// the messages that a run of the scenario should log.
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
			continue // no line waits for messages after the end
		case e.Conn < conn:
			return fmt.Errorf("#%d: two agent processes run at the same time; a scenario starts one at a time", e.Seq)
		case e.Conn > conn:
			conn = e.Conn
			c.restart(e)
		}
		if err := c.frame(e); err != nil {
			return err
		}
	}
	if len(c.lines) == 0 {
		c.line("initialize")
	}
	c.awaitTail()
	return nil
}

// frame adds the lines for one message. It also collects the message that a run of these lines should log.
func (c *converter) frame(e transcript.Entry) error {
	if e.Source == transcript.Agent {
		c.out.frames = append(c.out.frames, e)
		if c.hand[e.Seq] != "" {
			c.asks(e)
		} else {
			c.heard(e)
		}
		return nil
	}
	c.tail = nil
	if e.Method == "session/prompt" && len(c.seen) == 0 {
		c.turns++
		name := "recorded"
		if c.turns > 1 {
			name = fmt.Sprintf("turn-%d", c.turns)
		}
		c.lines = append(c.lines, &script.Line{Kind: script.Blank}, script.New("check "+name))
	}
	said, err := c.said(e)
	if said != nil {
		e.Raw = said
		c.out.frames = append(c.out.frames, e)
	}
	return err
}

// of returns the option that names a session, or the zero Word if lines without the option mean that session.
func (c *converter) of(session string) script.Word {
	if c.names[session] == "" || len(c.names) == 1 && session == c.current {
		return script.Word{}
	}
	return script.Option("session", c.names[session])
}

// said adds the line for a message of the editor. It returns the message that the line sends, or nil if there is no
// such line.
func (c *converter) said(e transcript.Entry) ([]byte, error) {
	switch {
	case e.Kind == transcript.Response && c.answersByHand(e):
		return e.Raw, nil
	case e.Kind == transcript.Response:
		return c.reply(e), nil
	case e.Kind == transcript.Malformed:
		return c.noJSON(e), nil
	case e.Method == "$/cancel_request":
		return c.takesBack(e), nil
	case c.stranger(e):
		c.leave("the earlier conversation of the session that the editor opens at #%d, which the recording lacks: the "+
			"scenario opens a new session instead, and has no golden", e.Seq)
		c.out.NoGolden = true
		c.strange[e.Session] = true
		return c.open(e, "new")
	case c.raw(e):
		return c.asIs(e), nil
	case e.Method == "initialize":
		return c.greeting(e), nil
	case e.Method == "session/prompt":
		return c.prompt(e)
	case e.Method == "session/cancel":
		c.tag("cancel")
		c.awaitSeen(e.Session)
		c.line("cancel %s", c.name(e.Session))
		c.current = e.Session
		return e.Raw, nil
	case waits(e.Method):
		return c.call(e)
	}
	return c.asIs(e), nil
}

// asIs adds a line that sends a message exactly as recorded.
func (c *converter) asIs(e transcript.Entry) []byte {
	c.awaitSeen(e.Session)
	if e.Kind != transcript.Request {
		c.line("notify %s %s", e.Method, c.json(params(e.JSON())))
		return e.Raw
	}
	if c.answers[e.Seq].Seq > 0 && c.refs[e.Seq] == "" {
		c.refs[e.Seq] = fmt.Sprintf("R%d", e.Seq)
	}
	c.named(e, "request %s %s", e.Method, c.json(params(e.JSON())))
	return e.Raw
}

// noJSON adds a line that sends a recorded line which is not JSON. It leaves out lines that are not valid text.
func (c *converter) noJSON(e transcript.Entry) []byte {
	if len(strings.TrimSpace(string(e.Raw))) == 0 {
		return nil
	}
	if e.Size > 0 || strings.ContainsAny(string(e.Raw), "\r\x00") || !utf8.Valid(e.Raw) {
		c.leave("the editor's line #%d, which is not text", e.Seq)
		return nil
	}
	c.line("send %s", c.word(string(e.Raw)))
	return e.Raw
}

// takesBack adds the line for a $/cancel_request of the editor.
func (c *converter) takesBack(e transcript.Entry) []byte {
	ref := c.cancelled(e)
	if ref == "" {
		c.leave("the editor's $/cancel_request #%d, which names none of the editor's requests", e.Seq)
		return nil
	}
	c.awaitSeen(c.current)
	c.line("cancel-request %s", ref)
	return e.Raw
}

// greeting adds the line for initialize. The line is omitted if the next line sends initialize anyway.
func (c *converter) greeting(e transcript.Entry) []byte {
	implied := !c.ready && (e.Conn > 0 || c.greets(e))
	c.ready = true
	if n, ok := e.JSON().Path("params.protocolVersion").Int(); ok && int(n) != c.version() {
		c.named(e, "initialize %s", script.Option("version", n))
	} else if !implied {
		c.named(e, "initialize")
	}
	return c.initialize(e)
}

// greets reports whether a line sends initialize by itself, so that no line for initialize is needed.
func (c *converter) greets(e transcript.Entry) bool {
	if c.begun { // an earlier line does
		return true
	}
	for next := range c.t.From(e.Seq + 1) {
		if next.Source == transcript.Editor && next.Frame() {
			return next.Conn == e.Conn && strings.HasPrefix(next.Method, "session/") && waits(next.Method) && !c.raw(next)
		}
	}
	return false
}

// raw reports whether the scenario must send a message exactly as recorded, because the agent refused the message or
// its session was never opened. The language's commands only send messages that an agent may accept.
func (c *converter) raw(e transcript.Entry) bool {
	a, ok := c.answers[e.Seq]
	if e.Session != "" && c.names[e.Session] == "" && e.Method != "session/new" || c.v2 && c.odd(e) {
		return true
	}
	return ok && a.JSON().Get("error").Exists() &&
		slices.Contains([]string{"session/new", "session/load", "session/resume"}, e.Method)
}

// odd reports whether the scenario language has no command for a request of version 2.
func (c *converter) odd(e transcript.Entry) bool {
	p := e.JSON().Get("params")
	switch e.Method {
	case "initialize":
		return p.Path("info.name").Kind() != wire.String || p.Get("protocolVersion").Kind() != wire.Number ||
			c.answers[e.Seq].JSON().Path("result.protocolVersion").Text() == "1"
	case "authenticate", "logout", "session/load", "session/set_mode": // methods of version 1
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

// count numbers the tool calls and terminals of version 2 as the variables TOOL(n) and TERMINAL(n) do.
func (c *converter) count(e transcript.Entry) {
	for key, variable := range map[string]string{"toolCallId": "TOOL", "terminalId": "TERMINAL"} {
		id := e.JSON().Path("params.update." + key).Str()
		if id == "" || !c.v2 || c.ids[key+" "+id] != "" {
			continue
		}
		known := lists.Having(maps.Keys(c.ids), func(known string) bool { return strings.HasPrefix(known, key+" ") })
		c.ids[key+" "+id] = fmt.Sprintf("%s(%d)", variable, len(known)+1)
	}
}

// stranger reports whether a request opens a session that was created before the recording began.
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

// as returns the name of the line for a request, or "". A line needs a name if another line refers to the request. It
// also needs one if the answer was an error, because an error would end the script.
func (c *converter) as(e transcript.Entry) string {
	a := c.answers[e.Seq]
	loaded := e.Method == "session/load" || e.Method == "session/resume"
	if waits(e.Method) && a.JSON().Get("error").Exists() || loaded && !c.strange[e.Session] && c.followed(e) {
		c.refs[e.Seq] = fmt.Sprintf("R%d", e.Seq)
	}
	return c.refs[e.Seq]
}

// beside adds lines for what the user did and the protocol does not show, such as changes of files.
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
