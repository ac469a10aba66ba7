package words

import (
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
)

// further prompts for one more turn in the session that was prompted last, if that
// one is open and nothing else goes on.
func further(b *scenarios.Branch, p fakellm.Prompt) (transcript.Entry, bool) {
	id := idle(b.Transcript())
	editor, err := live(b, language.Implied[*scenarios.Branch]("a plain turn after the last line"))
	if id == "" || err != nil {
		return transcript.Entry{}, false
	}
	p.Session = id
	b.Model().Begin(p)
	call := editor.Call("session/prompt", map[string]any{"sessionId": id,
		"prompt": []any{map[string]any{"type": "text", "text": p.Text}}})
	return call.Entry, call.Entry.Seq > 0
}

// idle is the session of the last connection that was prompted last, else the one
// opened last: "" if that one is closed, if a turn goes on in any, or after a logout.
func idle(t *transcript.Transcript) string {
	var order []string // as opened and prompted, the last one last
	open, asked := map[string]bool{}, map[int]string{}
	conn, out := -1, false
	for e := range t.All() {
		if e.Source != transcript.Editor && e.Source != transcript.Agent {
			continue
		}
		if e.Conn != conn {
			conn, out, order, open, asked = e.Conn, false, nil, map[string]bool{}, map[int]string{}
		}
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			id := e.JSON().Path("params.sessionId").Str()
			asked[e.Seq] = id
			switch e.Method {
			case "session/prompt":
				order = append(order, id)
			case "session/close", "session/delete":
				delete(open, id)
			case "logout", "auth/logout":
				out = true
			}
		case e.Source == transcript.Agent && e.Kind == transcript.Notification && e.Ref > 0:
			delete(asked, e.Ref) // the prompt of version 2 whose work is over
		case e.Source == transcript.Agent && e.Kind == transcript.Response:
			id := asked[e.Ref]
			if e.Method == "session/prompt" && e.JSON().Path("result.messageId").Exists() {
				continue // which goes on
			}
			delete(asked, e.Ref)
			if !e.JSON().Get("result").Exists() {
				continue
			}
			switch e.Method {
			case "session/new":
				id = e.JSON().Path("result.sessionId").Str()
				fallthrough
			case "session/load", "session/resume":
				order = append(order, id)
				open[id] = true
			}
		}
	}
	if out || len(asked) > 0 || len(order) == 0 {
		return ""
	}
	if id := order[len(order)-1]; open[id] {
		return id
	}
	return ""
}
