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

// awaitTail adds lines that await the agent's last messages, so that a run does not end before these have come.
func (c *converter) awaitTail() {
	lines := lists.Map(c.tail, func(p pattern) *script.Line { return script.New("await %s", []script.Word(p)) })
	if len(lines) > 1 {
		lines = []*script.Line{script.New("group {").With(lines...)}
	}
	c.lines = append(c.lines, lines...)
}

// ended adds a line for the end of a process, if the process exited by itself. The end of the last process needs no
// line otherwise, because the run itself stops it.
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

// restart adds the lines that start the next process. If the recording does not show how the previous process ended,
// restart assumes an orderly exit.
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

// heard records a message of the agent, because later lines may await it.
func (c *converter) heard(e transcript.Entry) {
	update := acpframe.Update(e)
	if update != "" && c.strange[e.Session] {
		return // a replay of a conversation that the scenario does not have
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
			s.counts[p.String()] = 1 // the number of chunks is left to chance
		}
	case n == 0 || late[n-1].String() != p.String() || !chunk:
		c.late[e.Session] = append(late, p) // message by message, because no answer marks the last one
	}
}

// pattern returns the pattern by which an act waits for a message of the agent, or nil if acts do not wait for the
// message.
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
	case c.v2 && inTurn && strings.HasPrefix(update, "user_message"): // it may come before or after the answer
		return nil
	case update != "" && !isState(update):
		return kind(e)
	case e.Kind == transcript.Request && inTurn: // the agent may wait for the answer when an act comes
		return pattern{script.Text("request"), script.Text(e.Method)}
	}
	return nil
}

// works reports whether a line has awaited a gate that now holds the model for this session. This proves that the
// session is working.
func (c *converter) works(session string) bool {
	return slices.ContainsFunc(c.gates, func(g fakellm.RecordedGate) bool {
		return g.Session == session && g.Holds(c.at) && c.awaits[g.Name]
	})
}

// kind returns the pattern of an update. All chunks of a message have the same pattern, because how an agent cuts a
// message is left to chance.
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
	case e.Kind == transcript.Response && c.answers[e.Ref].Seq != e.Seq: // a second answer to the same request
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
			c.line("await response %s", ref) // messages that are awaited next come after the answer
		}
	case c.refs[asked.Seq] != "" && c.raw(asked) && e.JSON().Get("error").Exists():
		c.begun = true
		c.line("await response %s code=%s", c.refs[asked.Seq], e.JSON().Path("error.code").Text())
	case c.refs[asked.Seq] != "" && (c.raw(asked) || !waits(asked.Method)):
		c.begun = true
		c.line("await response %s", c.refs[asked.Seq])
	}
}

// followed reports whether the agent sends content of the session after the answer to a load. Only content before the
// editor's next act in that session counts.
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

// waits reports whether the scenario command for a request also awaits the answer.
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

// awaitSeen adds lines that await the content that came before an act. During a turn, only the latest content is
// awaited; between turns, all of it.
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
		s.pattern, s.counts = nil, map[string]int{} // later acts wait for later content only
	}
	if len(waits) > 1 && waits[0].Says("await", "gate") { // their order is left to chance
		waits = []*script.Line{script.New("group {").With(waits...)}
	}
	c.lines = append(c.lines, waits...)
}

// awaitAll adds lines that await the content that came before an act, for all sessions.
func (c *converter) awaitAll() {
	for _, session := range slices.Sorted(maps.Keys(c.seen)) {
		c.awaitSeen(session)
	}
}
