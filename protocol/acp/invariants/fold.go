package invariants

import (
	"strings"

	"cmp"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// promptText is how many bytes of a prompt's text are kept to recognise an echo of the prompt.
const promptText = 16 << 10

// read fills ev with the parts of an entry. It must run before fold updates the world with the same entry.
func (w *world) read(e transcript.Entry, ev *event) {
	*ev = event{Entry: e}
	switch {
	case e.Kind == transcript.Written:
		ev.topic = writeEnded
	case e.Frame():
		ev.conn = w.conn(e.Conn)
		w.readFrame(ev)
		return
	case e.Source == transcript.Model:
		ev.topic, ev.body = modelEvent, e.JSON()
	case e.Source == transcript.Process:
		ev.topic = processEvent
	case e.Source == transcript.Terminal:
		ev.topic, ev.body = terminalEvent, e.JSON()
	case e.Kind == transcript.Served:
		ev.topic, ev.body = servedEvent, e.JSON()
	case e.Kind == transcript.Places || e.Kind == transcript.Changed:
		ev.topic, ev.body = workspaceEvent, e.JSON()
	default:
		return
	}
	ev.conn = w.conn(e.Conn)
}

func (w *world) readFrame(ev *event) {
	fromAgent := ev.Source == transcript.Agent
	ev.body = ev.JSON()
	if ev.Kind != transcript.Malformed {
		ev.frame = ev.Message()
		ev.params, ev.result, ev.err = ev.frame.Params, ev.frame.Result, ev.frame.Error
	}
	switch ev.Kind {
	case transcript.Malformed:
		ev.topic = editorNoise
		if fromAgent {
			ev.topic = agentNoise
		}
		return
	case transcript.Request:
		ev.verb = w.version.verbOf(ev.Source, ev.Method)
		ev.topic = asked(ev.verb)
	case transcript.Notification:
		if fromAgent && ev.Method == "session/update" {
			ev.update = ev.params.Get("update")
			tag, _ := ev.update.Get("sessionUpdate").Plain()
			ev.topic = w.version.updateTopic(tag)
		} else {
			ev.topic = noticeTopic(ev.Source, ev.Method)
		}
	case transcript.Response:
		w.readResponse(ev, fromAgent)
	}
	if ev.session == nil {
		ev.session = ev.conn.session(ev.Session)
	}
	if s := ev.session; s != nil && s.first == 0 {
		s.first = ev.Seq
	}
	if ev.turn == nil {
		ev.turn = ev.session.turn()
	}
	if w.version.states && ev.topic != answered(prompt) {
		ev.turn = ev.session.working()
	}
	if w.version.states && ev.topic == stateUpdate {
		ev.endOfWork()
	}
	w.readParts(ev)
}

// readParts reads the tool call, the options and the modes in a frame.
func (w *world) readParts(ev *event) {
	switch ev.topic {
	case toolCall:
		ev.tool = ev.session.announced(ev.update.Get("toolCallId"))
	case toolUpdate:
		if ev.tool = ev.session.announced(ev.update.Get("toolCallId")); ev.tool == nil && !w.version.states {
			ev.tool = ev.session.tool(ev.update.Get("toolCallId"))
		}
	case asked(permission):
		ev.tool = ev.session.tool(ev.params.Path(w.version.call + ".toolCallId"))
	case optionsUpdate:
		ev.options, ev.hasOptions = readOptions(ev.update, w.version.optionID)
	case answered(newSession), answered(loadSession), answered(resumeSession), answered(forkSession):
		ev.options, ev.hasOptions = readOptions(ev.result, w.version.optionID)
		ev.modes = readModes(ev.result.Get("modes"))
	case answered(setOption):
		ev.options, ev.hasOptions = readOptions(ev.result, w.version.optionID)
	case answered(initialize):
		chosen, whole := ev.result.Get("protocolVersion").Int()
		ev.conn.foreign = whole && chosen > 0 && chosen != int64(w.version.number)
	}
}

func (w *world) readResponse(ev *event, fromAgent bool) {
	ev.topic = pick(fromAgent, agentAnswersNone, editorAnswersNone)
	r := ev.conn.open[ev.Ref]
	if r == nil { // answers no open request
		return
	}
	ev.request = r
	ev.verb = r.verb
	ev.topic = answered(ev.verb)
	ev.session, ev.tool = r.session, r.tool
	if ev.verb == newSession || ev.verb == forkSession {
		ev.session = nil // the session is named in the result
	}
	if ev.verb == prompt {
		ev.turn = r.turn
		ev.stop = ev.result.Get("stopReason").Str()
	}
}

// fold updates the world with an entry.
func (w *world) fold(ev *event) {
	c := ev.conn
	c.foldParting(ev)
	switch {
	case ev.topic == nothing:
	case ev.topic == writeEnded:
		if a := c.lastAct; a != nil && a.seq == ev.Ref {
			a.ended, a.failed = ev.Seq, ev.Problem != ""
		}
	case ev.topic == modelEvent:
		w.foldReply(ev)
		w.models.fold(ev)
	case ev.topic == terminalEvent:
		c.exitOf(ev.body.Get("terminalId").Str(), ev.Kind == transcript.TermExit)
	case ev.Source == transcript.Process:
		c.foldProcess(ev)
	case isUpdate(ev.topic):
		w.foldUpdate(ev)
	case ev.Kind == transcript.Request && ev.Source == transcript.Editor:
		w.foldEditorRequest(ev)
	case ev.Kind == transcript.Request:
		w.foldAgentRequest(ev)
	case ev.Kind == transcript.Notification:
		w.foldNotice(ev)
	case ev.request != nil && ev.Source == transcript.Agent:
		w.foldAnswerOfAgent(ev)
		c.settle(ev.request)
	case ev.request != nil:
		w.foldAnswerOfEditor(ev)
		c.settle(ev.request)
	}
	if w.version.states && ev.session != nil {
		w.foldWork(ev.session, ev)
	}
}

// foldProcess remembers the start and the end of the agent's process.
func (c *conn) foldProcess(ev *event) {
	switch {
	case ev.Kind == transcript.Started:
		c.started = true
	case ev.Kind == transcript.StdinClosed:
		c.closedIn, c.closedAt = ev.Seq, ev.At
	case ev.Kind == transcript.Signalled && !ev.JSON().Get("server").Exists():
		c.signalled = ev.Seq
	case ev.Kind == transcript.Exited:
		c.exited, c.exitedAt = ev.Seq, ev.At
	}
}

// foldNotice updates the world with a notification other than session/update.
func (w *world) foldNotice(ev *event) {
	c := ev.conn
	switch ev.topic {
	case cancelTold:
		c.lastAct = ev.act()
		for _, t := range ev.session.turns() {
			t.cancel = cmp.Or(t.cancel, c.lastAct)
		}
	case editorTakesBack:
		c.lastAct = ev.act()
		c.takeBack(rules.OfClient, ev, c.lastAct)
	case agentTakesBack:
		c.takeBack(rules.OfAgent, ev, ev.act())
	}
}

// act returns the entry as a frame that stops a turn.
func (ev *event) act() *act { return &act{seq: ev.Seq, at: ev.At} }

func readPrompt(params wire.Value) string {
	var text []byte
	for block := range params.Get("prompt").Items() {
		if block.Get("type").Is("text") && len(text) < promptText {
			text = block.Get("text").AppendStr(text)
		}
	}
	return string(text)
}

// headSize is the size in bytes of the beginning that tells a text block of a prompt from others.
const headSize = 40

// heads returns the beginnings of the first text blocks of a prompt, without white space.
func heads(params wire.Value) (all []string) {
	const most = 32
	for block := range params.Get("prompt").Items() {
		if block.Get("type").Is("text") && len(all) < most {
			text := block.Get("text").Str()
			head := bare(text[:min(len(text), 8*headSize)])
			all = append(all, strings.Clone(head[:min(len(head), headSize)]))
		}
	}
	return all
}

func idOf(v wire.Value) wire.ID {
	switch v.Kind() {
	case wire.String:
		return wire.ID(wire.AppendString(nil, v.Str()))
	case wire.Number, wire.Null:
		return wire.ID(v.Raw())
	}
	return ""
}
