package recordings

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// V2 returns the description of ACP version 2 for recordings. It extends that of version 1.
func V2() replay.Protocol { return version2{} }

type version2 struct{ protocol }

// Version implements replay.Protocol.
func (version2) Version() string { return "2" }

// Completes implements transcript.Completer. An idle state ends a turn; the answer to the prompt does not.
func (version2) Completes() func(e transcript.Entry, f wire.Frame) int {
	return acpframe.V2{}.Completes()
}

// asked2 and asked1 match the protocol version in initialize or its answer: version 2 and version 1.
var (
	asked2 = lazy.Regexp(`"protocolVersion":\s*2\b`)
	asked1 = lazy.Regexp(`"protocolVersion":\s*1\b`)
)

// LooksV2 reports whether the beginning of a recording looks like version 2: it names version 2 and never version 1.
func LooksV2(head []byte) bool { return asked2().Match(head) && !asked1().Match(head) }

// Facts implements replay.Protocol.
func (p version2) Facts(e transcript.Entry) replay.Facts {
	f := p.protocol.Facts(e)
	v := e.JSON()
	switch {
	case e.Method == "initialize":
		introduced(&f, v.Path("result.info"), v.Path("params.info"))
	case f.Loads:
		f.Loads = v.Path("params.replayFrom").Kind() == wire.Object
	}
	update := v.Path("params.update")
	f.State = f.State || f.Message == "user_message" // a user_message may come before or after the answer
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

// Sight implements replay.Protocol. A whole message counts as text, like a chunk.
func (p version2) Sight(e transcript.Entry) replay.Sight {
	s := p.protocol.Sight(e)
	update := e.JSON().Path("params.update")
	switch {
	case e.Source != transcript.Agent:
	case update.Get("sessionUpdate").Is("agent_message"):
		for block := range update.Get("content").Items() {
			s.Text += block.Get("text").Str()
		}
	case e.Kind == transcript.Request && e.Method == "session/request_permission":
		s.Ask = e.JSON().Path("params.subject.toolCall.toolCallId").Str()
	}
	return s
}

// Improvise implements replay.Protocol.
func (p version2) Improvise(e transcript.Entry) [][]byte {
	switch e.Method {
	case "session/prompt":
		return slices.Concat(p.Taken(e), said(e, "The recording ends here."), ended(e.Session, "end_turn"))
	case "auth/login", "auth/logout":
		return [][]byte{serve.Result(e.ID, `{}`)}
	}
	return p.protocol.Improvise(e)
}

// Plain implements serve.Protocol.
func (p version2) Plain(e transcript.Entry, capabilities map[string]string) [][]byte {
	switch e.Method {
	case "initialize":
		return [][]byte{greeted(e, capabilities)}
	case "session/prompt":
		return slices.Concat(p.Taken(e), said(e, "Done."), ended(e.Session, "end_turn"))
	case "session/resume":
		return append(ended(e.Session, ""), serve.Result(e.ID, `{}`))
	case "session/set_config_option":
		return [][]byte{serve.Result(e.ID, `{"configOptions":[]}`)}
	case "auth/login", "auth/logout", "tool_call/cancel", "terminal/cancel":
		return [][]byte{serve.Result(e.ID, `{}`)}
	case "session/load", "session/set_mode", "authenticate", "logout":
		return [][]byte{serve.Error(e.ID, "-32601", "version 2 has no "+e.Method)}
	}
	return p.protocol.Plain(e, capabilities)
}

// Owed implements serve.Protocol.
func (p version2) Owed(e transcript.Entry, capabilities map[string]string) [][]byte {
	if e.Method == "session/prompt" {
		return slices.Concat(p.Taken(e), ended(e.Session, "end_turn"))
	}
	return p.Plain(e, capabilities)
}

// greeted answers initialize. If the editor asks for version 2 or later, the answer is version 2, else an error.
func greeted(e transcript.Entry, capabilities map[string]string) []byte {
	asked := e.JSON().Path("params.protocolVersion")
	if n, ok := asked.Int(); ok && n < 2 {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"unsupported protocol version",`+
			`"data":{"requested":%d,"supported":[2]}}}`, e.ID, n)
	}
	offered := nested(capabilities)
	if _, ok := offered["session"]; !ok {
		offered["session"] = map[string]any{}
	}
	return serve.Result(e.ID, object(map[string]any{"protocolVersion": 2, "capabilities": offered,
		"info": map[string]any{"name": scripted, "version": "1"}, "authMethods": []any{}}))
}

// Taken implements serve.Protocol. The frames tell the editor that the agent has accepted the prompt and is working on
// it.
func (version2) Taken(e transcript.Entry) [][]byte {
	id := serve.Quote(fmt.Sprintf("prompt-%d", e.Seq))
	return [][]byte{
		serve.Result(e.ID, `{"messageId":`+id+`}`),
		update(e.Session, `{"sessionUpdate":"user_message","messageId":`+id+`,"content":`+
			string(e.JSON().Path("params.prompt").Raw())+`}`),
		update(e.Session, `{"sessionUpdate":"state_update","state":"running"}`),
	}
}

// ended returns an idle state with a stop reason. If reason is "", the state has none.
func ended(session, reason string) [][]byte {
	if reason != "" {
		reason = `,"stopReason":` + serve.Quote(reason)
	}
	return [][]byte{update(session, `{"sessionUpdate":"state_update","state":"idle"`+reason+`}`)}
}

// said returns a message of the agent with a text.
func said(e transcript.Entry, text string) [][]byte {
	return [][]byte{update(e.Session, fmt.Sprintf(`{"sessionUpdate":"agent_message","messageId":"answer-%d",`+
		`"content":[{"type":"text","text":%s}]}`, e.Seq, serve.Quote(text)))}
}

// Side implements replay.Protocol.
func (version2) Side(method string) transcript.Source { return side(schema.V2(), method) }

// Fits implements replay.Protocol.
func (p version2) Fits(method string, result wire.Value) bool {
	if method == "session/prompt" {
		return result.Get("messageId").Exists()
	}
	return p.protocol.Fits(method, result)
}
