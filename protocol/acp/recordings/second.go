package recordings

import (
	"fmt"
	"regexp"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// V2 returns what recordings need to know of ACP version 2: what they need of version 1,
// with the messages that differ.
func V2() replay.Protocol { return second{} }

type second struct{ protocol }

// Version implements replay.Protocol.
func (second) Version() string { return "2" }

// Completes implements transcript.Completer: a turn ends with a state, not with the answer
// to its prompt.
func (second) Completes() func(e transcript.Entry, f wire.Frame) int {
	return acpframe.Second{}.Completes()
}

// asked2 and asked1 find a version that is asked for or answered.
var (
	asked2 = regexp.MustCompile(`"protocolVersion":\s*2\b`)
	asked1 = regexp.MustCompile(`"protocolVersion":\s*1\b`)
)

// LooksSecond reports whether the beginning of a recording is of version 2: that is asked
// for, and no answer is version 1.
func LooksSecond(head []byte) bool { return asked2.Match(head) && !asked1.Match(head) }

// Facts implements replay.Protocol.
func (p second) Facts(e transcript.Entry) replay.Facts {
	f := p.protocol.Facts(e)
	v := e.JSON()
	switch {
	case e.Method == "initialize" && e.Kind == transcript.Response:
		info := v.Path("result.info")
		f.Agent, f.Version = info.Get("name").Str(), info.Get("version").Str()
	case f.Loads:
		f.Loads = v.Path("params.replayFrom").Kind() == wire.Object
	}
	update := v.Path("params.update")
	f.State = f.State || f.Message == "user_message" // it may come before and after the answer
	switch f.Shows {
	case "tool_call_update":
		f.Item = update.Get("toolCallId").Str()
	case "terminal_update":
		f.Item = update.Get("terminalId").Str()
		if update.Get("exitStatus").Kind() == wire.Object {
			f.What += " exit"
		}
	case "state_update":
		f.What += " " + update.Get("state").Str()
	case "compaction_update":
		f.What += " " + update.Get("status").Str()
	}
	return f
}

// Improvise implements replay.Protocol.
func (p second) Improvise(e transcript.Entry) [][]byte {
	switch e.Method {
	case "session/prompt":
		return secondTurn(e, "The recording ends here.")
	case "auth/login", "auth/logout":
		return [][]byte{serve.Result(e.ID, `{}`)}
	}
	return p.protocol.Improvise(e)
}

// secondTurn is a turn in which the agent says a text.
func secondTurn(e transcript.Entry, text string) [][]byte {
	return [][]byte{
		serve.Result(e.ID, `{"messageId":"message-`+fmt.Sprint(e.Seq)+`"}`),
		update(e.Session, `{"sessionUpdate":"user_message","messageId":"message-`+fmt.Sprint(e.Seq)+`","content":`+
			string(e.JSON().Path("params.prompt").Raw())+`}`),
		update(e.Session, `{"sessionUpdate":"state_update","state":"running"}`),
		update(e.Session, `{"sessionUpdate":"agent_message","messageId":"answer-`+fmt.Sprint(e.Seq)+
			`","content":[{"type":"text","text":`+serve.Quote(text)+`}]}`),
		update(e.Session, `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`),
	}
}

// Side implements replay.Protocol.
func (second) Side(method string) transcript.Source { return side(schema.V2(), method) }

// Fits implements replay.Protocol.
func (p second) Fits(method string, result wire.Value) bool {
	if method == "session/prompt" {
		return result.Get("messageId").Exists()
	}
	return p.protocol.Fits(method, result)
}
