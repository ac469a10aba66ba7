package invariants

import (
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// promptText is how much of a prompt's text is kept to recognise its echo.
const promptText = 16 << 10

// read takes an entry apart, before anything about it is remembered.
func (w *world) read(e transcript.Entry, ev *event) {
	*ev = event{Entry: e}
	switch {
	case e.Kind == transcript.Written:
		ev.topic = writeEnded
		ev.conn = w.conn(e.Conn)
	case e.Frame():
		w.readFrame(ev)
	case e.Source == transcript.Model:
		ev.topic, ev.body = modelEvent, e.JSON()
		ev.conn = w.conn(e.Conn)
	case e.Source == transcript.Process:
		ev.topic = processEvent
		ev.conn = w.conn(e.Conn)
	case e.Source == transcript.Terminal:
		ev.topic, ev.body = terminalEvent, e.JSON()
		ev.conn = w.conn(e.Conn)
	}
}

func (w *world) readFrame(ev *event) {
	ev.conn = w.conn(ev.Conn)
	fromAgent := ev.Source == transcript.Agent
	ev.body = ev.JSON()
	ev.frame = wire.Frame{}
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
		ev.verb = verbOf(ev.Source, ev.Method)
		ev.topic = asked(ev.verb)
	case transcript.Notification:
		if fromAgent && ev.Method == "session/update" {
			ev.update = ev.params.Get("update")
			tag, _ := ev.update.Get("sessionUpdate").Plain()
			ev.topic = updateTopic(tag)
		} else {
			ev.topic = noticeTopic(ev.Source, ev.Method)
		}
	case transcript.Response:
		w.readResponse(ev, fromAgent)
	}
	if ev.session == nil {
		ev.session = ev.conn.session(ev.Session)
	}
	if ev.turn == nil {
		ev.turn = ev.session.turn()
	}
	switch ev.topic {
	case toolCall:
		ev.tool = ev.session.announced(ev.update.Get("toolCallId"))
	case toolUpdate:
		ev.tool = ev.session.tool(ev.update.Get("toolCallId"))
	case asked(permission):
		ev.tool = ev.session.tool(ev.params.Get("toolCall").Get("toolCallId"))
	case optionsUpdate:
		ev.options, ev.hasOptions = readOptions(ev.update)
	case answered(newSession), answered(loadSession), answered(resumeSession), answered(forkSession):
		ev.options, ev.hasOptions = readOptions(ev.result)
		ev.modes = readModes(ev.result.Get("modes"))
	case answered(setOption):
		ev.options, ev.hasOptions = readOptions(ev.result)
	}
}

func (w *world) readResponse(ev *event, fromAgent bool) {
	ev.topic = editorAnswersNone
	asker := transcript.Agent
	if fromAgent {
		ev.topic, asker = agentAnswersNone, transcript.Editor
	}
	if ev.Ref == 0 {
		return
	}
	r := ev.conn.open[ev.Ref]
	if r == nil { // answered before
		return
	}
	ev.request = r
	ev.verb = verbOf(asker, r.method)
	ev.topic = answered(ev.verb)
	ev.session, ev.tool = r.session, r.tool
	if ev.verb == newSession || ev.verb == forkSession {
		ev.session = nil // the one in the result
	}
	if ev.verb == prompt {
		ev.turn = r.turn
		ev.stop = ev.result.Get("stopReason").Str()
	}
}

// fold remembers what an entry changed.
func (w *world) fold(ev *event) {
	c := ev.conn
	switch {
	case ev.topic == nothing:
	case ev.topic == writeEnded:
		if a := c.lastAct; a != nil && a.seq == ev.Ref {
			a.ended, a.failed = ev.Seq, ev.Problem != ""
		}
	case ev.topic == modelEvent:
		w.models.fold(ev)
	case ev.topic == terminalEvent:
		if t := c.terminals[ev.body.Get("terminalId").Str()]; t != nil && ev.Kind == transcript.TermExit {
			t.exited = true
		}
	case ev.topic == processEvent:
		switch ev.Kind {
		case transcript.StdinClosed:
			c.closedIn, c.closedAt = ev.Seq, ev.At
		case transcript.Signalled:
			c.signalled = ev.Seq
		case transcript.Exited:
			c.exited, c.exitedAt = ev.Seq, ev.At
		}
	case isUpdate(ev.topic):
		w.foldUpdate(ev)
	case ev.Kind == transcript.Request && ev.Source == transcript.Editor:
		w.foldEditorRequest(ev)
	case ev.Kind == transcript.Request:
		w.foldAgentRequest(ev)
	case ev.topic == cancelTold:
		a := &act{seq: ev.Seq, at: ev.At}
		c.lastAct = a
		if ev.session != nil {
			for _, t := range ev.session.open {
				if t.cancel == nil {
					t.cancel = a
				}
			}
		}
	case ev.topic == editorTakesBack:
		a := &act{seq: ev.Seq, at: ev.At}
		c.lastAct = a
		c.takeBack(rules.OfClient, ev, a)
	case ev.topic == agentTakesBack:
		c.takeBack(rules.OfAgent, ev, &act{seq: ev.Seq, at: ev.At})
	case ev.request != nil:
		if ev.Source == transcript.Agent {
			w.foldAnswerOfAgent(ev)
		} else {
			w.foldAnswerOfEditor(ev)
		}
		c.settle(ev.request)
	}
}

func readPrompt(params wire.Value) string {
	var text []byte
	for block := range params.Get("prompt").Items() {
		if block.Get("type").Is("text") && len(text) < promptText {
			text = block.Get("text").AppendStr(text)
		}
	}
	return string(text)
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
