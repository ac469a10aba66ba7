package translate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/protocol/agui/fold"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// ToACP translates a recording of AG-UI into messages of ACP version 1, all on one connection.
func ToACP(t *transcript.Transcript) *Said {
	w := &line{sessions: map[string]*session{}, runs: map[int]*session{}}
	w.request("initialize", object{"protocolVersion": 1, "clientCapabilities": object{}})
	w.answer(w.ids, object{"protocolVersion": 1, "agentCapabilities": object{}, "authMethods": []any{}})
	for e := range t.All() {
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			w.posted(e)
		case w.runs[e.Ref] == nil:
		case aguiframe.Event(e) != "":
			w.event(w.runs[e.Ref], e.Method, e.JSON())
		case e.Kind == transcript.Ended && endpoint.EndOf(e) == "hung-up":
			w.hungUp(w.runs[e.Ref])
		}
	}
	return &w.Said
}

// line translates AG-UI runs to ACP turns.
type line struct {
	Said
	sessions map[string]*session
	runs     map[int]*session // by Seq of the post
	ids      int              // number of requests of the editor so far
	asked    int              // number of requests of the agent so far
}

// session is an AG-UI thread, and the ACP session to which it is translated.
type session struct {
	fold.Thread
	id      string
	prompt  int // id of the open prompt, or 0
	args    map[string]string
	waits   []wait // open permission requests
	started map[string]object
	refused map[string]bool // tool calls that the user did not allow
}

// wait is an open permission request.
type wait struct {
	id      int // id of the request
	name    string
	call    string
	options []any
}

func (w *line) add(frame object) { w.Lines = append(w.Lines, marshaled(frame)) }

func (w *line) request(method string, params object) {
	w.ids++
	w.add(object{"jsonrpc": "2.0", "id": w.ids, "method": method, "params": params})
}

func (w *line) answer(id any, result object) {
	w.add(object{"jsonrpc": "2.0", "id": id, "result": result})
}

func (w *line) update(s *session, update object) {
	w.add(object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": s.id, "update": update}})
}

// posted opens a session for the thread if necessary. Then it sends a prompt, or answers the open permission requests.
func (w *line) posted(e transcript.Entry) {
	v := e.JSON()
	id := v.Get("threadId").Str()
	s := w.sessions[id]
	if s == nil {
		s = &session{id: id, args: map[string]string{}, started: map[string]object{}, refused: map[string]bool{}}
		w.sessions[id] = s
		w.request("session/new", object{"cwd": "/", "mcpServers": []any{}})
		w.answer(w.ids, object{"sessionId": id})
	}
	w.runs[e.Seq] = s
	text := ""
	for m := range v.Get("messages").Items() {
		text = ""
		if m.Get("role").Is("user") {
			text = cmp.Or(m.Get("content").Str(), texts(m.Get("content")))
		}
	}
	switch {
	case v.Get("resume").Len() > 0 && s.prompt > 0:
		w.resumed(s, v.Get("resume"))
	case text != "" && s.prompt == 0:
		w.request("session/prompt", object{"sessionId": id, "prompt": []any{object{"type": "text", "text": text}}})
		s.prompt = w.ids
	case s.prompt > 0:
		w.leave("a run that begins while another run of its thread is open")
	default:
		w.leave("a run whose input has no text of the user")
	}
}

// resumed answers the open permission requests.
func (w *line) resumed(s *session, answers wire.Value) {
	for _, wait := range s.waits {
		outcome := object{"outcome": "cancelled"}
		s.refused[wait.call] = true
		if !slices.ContainsFunc(slices.Collect(answers.Items()), func(a wire.Value) bool {
			return a.Get("interruptId").Is(wait.name)
		}) {
			w.leave("an interrupt without an answer, which becomes a cancelled one")
		}
		for a := range answers.Items() {
			if !a.Get("interruptId").Is(wait.name) || a.Get("status").Is("cancelled") {
				continue
			}
			kind := "reject"
			if approved, _ := a.Path("payload.approved").Bool(); approved {
				kind = "allow"
				s.refused[wait.call] = false
			}
			for _, o := range wait.options {
				option, _ := o.(map[string]any)
				chosen := a.Path("payload.optionId").Str()
				if of, _ := option["kind"].(string); option["optionId"] == chosen ||
					chosen == "" && strings.HasPrefix(of, kind) {
					outcome = object{"outcome": "selected", "optionId": option["optionId"]}
					break
				}
			}
		}
		w.answer(wait.id, object{"outcome": outcome})
	}
	s.waits = nil
}

// hungUp cancels the turn of a run whose client disconnected.
func (w *line) hungUp(s *session) {
	if s.prompt == 0 {
		return
	}
	w.add(object{"jsonrpc": "2.0", "method": "session/cancel", "params": object{"sessionId": s.id}})
	w.end(s, "cancelled")
}

func (w *line) end(s *session, reason string) {
	w.answer(s.prompt, object{"stopReason": reason})
	s.prompt = 0
}

// event translates an event of a turn.
func (w *line) event(s *session, kind string, v wire.Value) {
	before := s.State
	_ = s.Apply(v) // if a patch fails, the rules report it
	id, delta := v.Get("toolCallId").Str(), v.Get("delta").Str()
	switch kind {
	case "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK":
		w.say(s, "agent_message_chunk", delta)
	case "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK", "THINKING_TEXT_MESSAGE_CONTENT":
		w.say(s, "agent_thought_chunk", delta)
	case "TOOL_CALL_START":
		call := object{"sessionUpdate": "tool_call", "toolCallId": id, "title": v.Get("toolCallName").Str(),
			"status": "pending"}
		for _, name := range []string{"kind", "locations"} {
			if value := decoded(v.Path("metadata.acp." + name)); value != nil {
				call[name] = value
			}
		}
		s.started[id] = call
	case "TOOL_CALL_ARGS":
		s.args[id] += delta
	case "TOOL_CALL_END":
		w.called(s, id)
	case "TOOL_CALL_RESULT":
		w.result(s, id, v)
	case "STATE_SNAPSHOT", "STATE_DELTA":
		w.state(s, before)
	case "RUN_FINISHED":
		w.finished(s, v)
	case "RUN_ERROR":
		if s.prompt > 0 {
			w.add(object{"jsonrpc": "2.0", "id": s.prompt, "error": object{"code": code(v), "message": v.Get("message").Str()}})
			s.prompt = 0
		}
	case "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "REASONING_START", "REASONING_END",
		"REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "MESSAGES_SNAPSHOT":
	default:
		w.leave("the event %s", kind)
	}
}

// code returns the JSON-RPC error code for an error event.
func code(v wire.Value) (n int) {
	if _, err := fmt.Sscan(v.Get("code").Str(), &n); err != nil {
		return -32603
	}
	return n
}

func (w *line) say(s *session, update, text string) {
	if text != "" {
		w.update(s, object{"sessionUpdate": update, "content": object{"type": "text", "text": text}})
	}
}

// called announces a tool call whose arguments are complete.
func (w *line) called(s *session, id string) {
	call := s.started[id]
	if call == nil {
		return
	}
	delete(s.started, id)
	if args := []byte(s.args[id]); json.Valid(args) {
		call["rawInput"] = json.RawMessage(args)
	} else if s.args[id] != "" {
		w.leave("arguments that are no JSON")
	}
	w.update(s, call)
}

func (w *line) result(s *session, id string, v wire.Value) {
	content := cmp.Or(v.Get("content").Str(), texts(v.Get("content")))
	status := "completed"
	if v.Path("metadata.acp.status").Is("failed") || s.refused[id] {
		status = "failed"
	} else {
		w.update(s, object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"})
	}
	w.update(s, object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": []any{
		object{"type": "content", "content": object{"type": "text", "text": content}}}})
}

// state translates changes of the state's members that have a counterpart in ACP.
func (w *line) state(s *session, before json.RawMessage) {
	var old, now map[string]json.RawMessage
	_ = json.Unmarshal(before, &old)
	if json.Unmarshal(s.State, &now) != nil {
		w.leave("a state that is no object")
		return
	}
	for _, of := range []struct{ member, update, key string }{{"plan", "plan", "entries"},
		{"mode", "current_mode_update", "currentModeId"}, {"commands", "available_commands_update", "availableCommands"},
		{"options", "config_option_update", "configOptions"}} {
		if value := now[of.member]; value != nil && string(value) != string(old[of.member]) {
			w.update(s, object{"sessionUpdate": of.update, of.key: value})
		}
		delete(now, of.member)
	}
	if len(now) > 0 {
		w.leave("members of the state other than plan, mode, commands and options")
	}
}

// finished ends the turn, or sends the permission requests for which the run waits.
func (w *line) finished(s *session, v wire.Value) {
	if s.prompt == 0 {
		return
	}
	switch stop := v.Path("result.stopReason").Str(); {
	case v.Path("outcome.type").Is("interrupt"):
		for i := range v.Path("outcome.interrupts").Items() {
			w.ask(s, i)
		}
	case v.Path("outcome.type").Is("cancelled"):
		w.end(s, "cancelled")
	case stop != "":
		w.end(s, stop)
	default:
		w.end(s, "end_turn")
	}
}

// ask sends a permission request for an interrupt.
func (w *line) ask(s *session, interrupt wire.Value) {
	w.asked++
	options, _ := decoded(interrupt.Path("metadata.acp.options")).([]any)
	if options == nil {
		options = []any{object{"optionId": "allow", "name": "Allow", "kind": "allow_once"},
			object{"optionId": "reject", "name": "Reject", "kind": "reject_once"}}
	}
	id := 1_000_000 + w.asked
	s.waits = append(s.waits, wait{id, interrupt.Get("id").Str(), interrupt.Get("toolCallId").Str(), options})
	w.add(object{"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": object{"sessionId": s.id,
		"toolCall": object{"toolCallId": interrupt.Get("toolCallId").Str()}, "options": options}})
}
