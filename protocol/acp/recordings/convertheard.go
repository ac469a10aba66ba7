package recordings

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// awaitTail adds lines that await the last messages, so that a run does not end before they come.
func (c *converter) awaitTail() {
	lines := lists.Map(c.tail, func(p pattern) *script.Line { return script.New("await %s", []script.Word(p)) })
	if len(lines) > 1 {
		lines = []*script.Line{script.New("group {").With(lines...)}
	}
	c.lines = append(c.lines, lines...)
}

// ended records the end of a process. The run itself stops the last process, unless that process exited by itself.
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

// restart adds the lines that start the next process. If the recording shows no end of the previous process, restart
// invents an orderly one.
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

// heard keeps a message of the agent that later lines may wait for.
func (c *converter) heard(e transcript.Entry) {
	update := acpframe.Update(e)
	if update != "" && c.strange[e.Session] {
		return // what is replayed of a conversation that the scenario does not have
	}
	chunk := isChunk(update)
	if update != "" {
		one := append(kind(e), c.of(e.Session))
		if n := len(c.tail); n == 0 || !chunk || c.tail[n-1].String() != one.String() {
			c.tail = append(c.tail, one)
		}
	}
	if e.Kind == transcript.Response || e.Kind == transcript.Notification && e.Ref > 0 {
		c.tail = nil
		c.answered(e)
		return
	}
	p := c.pattern(e, update)
	if p == nil {
		return
	}
	late := c.late[e.Session]
	switch s, n := c.seen[e.Session], len(late); {
	case s != nil:
		s.pattern, s.text, s.state = p, chunk, update == "state_update"
		if s.counts[p.String()]++; chunk {
			s.counts[p.String()] = 1 // how a text is cut is chance
		}
	case n == 0 || late[n-1].String() != p.String() || !chunk:
		c.late[e.Session] = append(late, p) // message by message: there is nothing else to tell the last by
	}
}

// pattern returns the pattern by which an act waits for a message of the agent; nil if no act should wait.
func (c *converter) pattern(e transcript.Entry, update string) pattern {
	inTurn := c.seen[e.Session] != nil
	switch {
	case e.Method == "session/request_permission":
		return pattern{script.Text("permission")}
	case update == "tool_call_update":
		p := kind(e)
		if status := e.JSON().Path("params.update.status").Str(); status != "" {
			p = append(p, script.Option("status", status))
		}
		return p
	case c.v2 && inTurn && strings.HasPrefix(update, "user_message"): // before or after the answer
		return nil
	case update != "" && !isState(update):
		return kind(e)
	case e.Kind == transcript.Request && inTurn: // what the agent waits for when an act comes
		return pattern{script.Text("request"), script.Text(e.Method)}
	}
	return nil
}

// works reports whether a line has already awaited a gate that holds the model for this session, which proves that the
// session is working.
func (c *converter) works(session string) bool {
	return slices.ContainsFunc(c.gates, func(g fakellm.RecordedGate) bool {
		return g.Session == session && g.Holds(c.at) && c.awaits[g.Name]
	})
}

// kind returns the pattern of an update. The pattern ignores how a message is cut into chunks, because that varies by
// chance.
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

func (c *converter) answered(e transcript.Entry) {
	asked := c.t.At(e.Ref)
	stop, over := c.p.TurnEnd(e)
	switch {
	case e.Ref == 0:
	case e.Kind == transcript.Response && c.answers[e.Ref].Seq != e.Seq: // one that was answered is over
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

// followed reports whether content of the session comes after the answer to a load and before the editor's next act
// in that session.
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

// waits reports whether the script line for a method waits for the answer.
func waits(method string) bool {
	return slices.Contains([]string{"initialize", "authenticate", "logout", "auth/login", "auth/logout", "session/new",
		"session/load", "session/resume", "session/close", "session/delete", "tool_call/cancel", "terminal/cancel",
		"session/list", "session/set_mode", "session/set_config_option"}, method)
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

// awaitSeen adds lines that await the content that came before an act: in a turn only the latest, between turns all of
// it.
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

// awaitAll adds lines that await the content that came in all sessions before an act.
func (c *converter) awaitAll() {
	for _, session := range slices.Sorted(maps.Keys(c.seen)) {
		c.awaitSeen(session)
	}
}
