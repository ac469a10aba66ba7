package translate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/agui/fold"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// ToAGUI translates a recording of ACP into inputs and events of AG-UI.
func ToAGUI(t *transcript.Transcript) *Said {
	w := &web{t: t, threads: map[string]*thread{}}
	for e := range t.All() {
		if e.Frame() {
			w.frame(e)
		}
	}
	for _, t := range w.order {
		w.flush(t)
	}
	return &w.Said
}

// web translates ACP turns to AG-UI runs.
type web struct {
	Said
	t       *transcript.Transcript
	threads map[string]*thread
	order   []*thread
	ids     int
}

// thread is an ACP session, and the AG-UI thread to which it is translated.
type thread struct {
	fold.Thread
	id       string
	runs     int
	run      string // id of the open run, or ""
	prompt   int    // Seq of the prompt of the open run
	open     string // kind of the open message: "text", "thought", or "" if none is open
	message  string // id of the open message
	calls    map[string]bool
	asks     []int    // Seqs of the open permission requests
	answers  []any    // answers to some of these requests
	snapshot bool     // the state was sent
	lines    [][]byte // lines of the open run; kept apart from the runs of other threads
}

func (w *web) thread(session string) *thread {
	if w.threads[session] == nil {
		w.threads[session] = &thread{id: session, calls: map[string]bool{}}
		w.order = append(w.order, w.threads[session])
	}
	return w.threads[session]
}

// emit adds an event to the open run, and applies it to the thread.
func (w *web) emit(t *thread, kind string, members object) {
	members["type"] = kind
	raw := marshaled(members)
	if v, err := wire.Parse(raw); err == nil {
		_ = t.Apply(v) // cannot fail: patches are made for the current state
	}
	t.lines = append(t.lines, raw)
}

// flush appends the lines of a thread's open run to the output, and closes the run.
func (w *web) flush(t *thread) {
	w.Lines = append(w.Lines, t.lines...)
	t.run, t.lines = "", nil
}

// begin adds an input, and the event that begins its run. more has additional members of the input.
func (w *web) begin(t *thread, more object) {
	t.runs++
	t.run = fmt.Sprintf("%s-run-%d", t.id, t.runs)
	state := json.RawMessage("{}")
	if t.State != nil {
		state = t.State
	}
	messages := t.Messages
	if messages == nil {
		messages = []fold.Message{}
	}
	input := object{"threadId": t.id, "runId": t.run, "messages": messages, "tools": []any{}, "context": []any{},
		"state": state, "forwardedProps": object{}}
	maps.Copy(input, more)
	t.lines = append(t.lines, marshaled(input))
	w.emit(t, "RUN_STARTED", object{"threadId": t.id, "runId": t.run})
}

// finish adds RUN_FINISHED with the given members, and closes the run.
func (w *web) finish(t *thread, members object) {
	w.quiet(t)
	members["threadId"], members["runId"] = t.id, t.run
	w.emit(t, "RUN_FINISHED", members)
	w.flush(t)
}

func (w *web) frame(e transcript.Entry) {
	v := e.JSON()
	t := w.thread(e.Session)
	switch {
	case e.Method == "session/prompt" && e.Kind == transcript.Request:
		w.ids++
		t.prompt = e.Seq
		text := texts(v.Path("params.prompt"))
		if text == "" {
			w.leave("a prompt without text")
		}
		t.Messages = append(t.Messages, fold.Message{"id": fmt.Sprintf("user-%d", w.ids), "role": "user", "content": text})
		w.begin(t, nil)
	case e.Method == "session/prompt" && t.run != "" && e.Ref == t.prompt:
		w.ended(t, v)
	case e.Method == "session/request_permission" && e.Kind == transcript.Request && t.run != "":
		w.asked(t, e)
	case e.Method == "session/request_permission" && e.Kind == transcript.Response && slices.Contains(t.asks, e.Ref):
		w.answered(t, e)
	case acpframe.Update(e) != "" && (t.run != "" || state(acpframe.Update(e)) != ""):
		w.update(t, acpframe.Update(e), v.Path("params.update"))
	case acpframe.Update(e) != "":
		w.leave("an update outside of a turn (%s)", acpframe.Update(e))
	case e.Kind == transcript.Request && e.Method != "initialize" && e.Method != "session/new":
		w.leave("%s", e.Method)
	}
}

// ended translates the end of the turn of a prompt.
func (w *web) ended(t *thread, v wire.Value) {
	stop := v.Path("result.stopReason").Str()
	switch {
	case v.Get("error").Exists():
		w.quiet(t)
		w.emit(t, "RUN_ERROR", object{"message": v.Path("error.message").Str(), "code": v.Path("error.code").Text()})
		w.flush(t)
	case stop == "cancelled":
		w.finish(t, object{"outcome": object{"type": "cancelled"}})
	case stop == "end_turn":
		w.finish(t, object{"outcome": object{"type": "success"}})
	default:
		w.finish(t, object{"outcome": object{"type": "success"}, "result": object{"stopReason": stop}})
	}
}

// state returns the member of AG-UI's state that an update sets. It returns "" for updates that set none.
func state(update string) string {
	return map[string]string{"plan": "plan", "current_mode_update": "mode", "available_commands_update": "commands",
		"config_option_update": "options"}[update]
}

func (w *web) update(t *thread, kind string, u wire.Value) {
	switch {
	case kind == "agent_message_chunk":
		w.say(t, "text", u)
	case kind == "agent_thought_chunk":
		w.say(t, "thought", u)
	case kind == "tool_call", kind == "tool_call_update":
		w.call(t, u)
	case state(kind) != "":
		value := map[string]wire.Value{"plan": u.Get("entries"), "current_mode_update": u.Get("currentModeId"),
			"available_commands_update": u.Get("availableCommands"), "config_option_update": u.Get("configOptions")}[kind]
		if t.run == "" { // the next input has the new state
			if doc, err := fold.Patched(t.State, patch(state(kind), value)); err == nil {
				t.State = doc
			}
			return
		}
		if !t.snapshot { // a patch needs a state to which it applies
			t.snapshot = true
			snapshot := t.State
			if snapshot == nil {
				snapshot = json.RawMessage("{}")
			}
			w.emit(t, "STATE_SNAPSHOT", object{"snapshot": snapshot})
		}
		w.emit(t, "STATE_DELTA", object{"delta": json.RawMessage(patch(state(kind), value))})
	default:
		w.leave("the update %s", kind)
	}
}

func patch(name string, value wire.Value) []byte {
	return marshaled([]object{{"op": "add", "path": "/" + name, "value": decoded(value)}})
}

// say adds a chunk of a message. If no message of this kind is open, it first begins one.
func (w *web) say(t *thread, kind string, u wire.Value) {
	text := texts(u.Get("content"))
	if text == "" {
		w.leave("content that is no text")
		return
	}
	if t.open != kind {
		w.quiet(t)
		w.ids++
		t.open, t.message = kind, fmt.Sprintf("message-%d", w.ids)
		if kind == "text" {
			w.emit(t, "TEXT_MESSAGE_START", object{"messageId": t.message, "role": "assistant"})
		} else {
			w.emit(t, "REASONING_START", object{"messageId": t.message})
			w.emit(t, "REASONING_MESSAGE_START", object{"messageId": t.message, "role": "reasoning"})
		}
	}
	event := map[string]string{"text": "TEXT_MESSAGE_CONTENT", "thought": "REASONING_MESSAGE_CONTENT"}[kind]
	w.emit(t, event, object{"messageId": t.message, "delta": text})
}

// quiet ends the open message, if there is one.
func (w *web) quiet(t *thread) {
	switch t.open {
	case "text":
		w.emit(t, "TEXT_MESSAGE_END", object{"messageId": t.message})
	case "thought":
		w.emit(t, "REASONING_MESSAGE_END", object{"messageId": t.message})
		w.emit(t, "REASONING_END", object{"messageId": t.message})
	}
	t.open = ""
}

// call translates a tool call and its result.
func (w *web) call(t *thread, u wire.Value) {
	id := u.Get("toolCallId").Str()
	if !t.calls[id] {
		w.quiet(t)
		t.calls[id] = true
		about := object{}
		for _, name := range []string{"kind", "locations"} {
			if value := decoded(u.Get(name)); value != nil {
				about[name] = value
			}
		}
		start := object{"toolCallId": id, "toolCallName": u.Get("title").Str()}
		if len(about) > 0 {
			start["metadata"] = object{"acp": about}
		}
		w.emit(t, "TOOL_CALL_START", start)
		if args := u.Get("rawInput"); args.Exists() && !args.IsNull() {
			w.emit(t, "TOOL_CALL_ARGS", object{"toolCallId": id, "delta": string(args.Raw())})
		}
		w.emit(t, "TOOL_CALL_END", object{"toolCallId": id})
	}
	status := u.Get("status").Str()
	if status != "completed" && status != "failed" {
		return
	}
	w.ids++
	result := object{"messageId": fmt.Sprintf("result-%d", w.ids), "toolCallId": id, "role": "tool",
		"content": texts(u.Get("content"))}
	if status == "failed" {
		result["metadata"] = object{"acp": object{"status": status}}
	}
	w.emit(t, "TOOL_CALL_RESULT", result)
}

// asked records an open permission request.
func (w *web) asked(t *thread, e transcript.Entry) {
	call := e.JSON().Path("params.toolCall")
	if id := call.Get("toolCallId").Str(); !t.calls[id] {
		w.call(t, call)
	}
	t.asks = append(t.asks, e.Seq)
}

// answered records the answer to a permission request. The first answer ends the open run with an interrupt. When all
// requests have an answer, a new run begins that resumes the interrupted one.
func (w *web) answered(t *thread, e transcript.Entry) {
	if t.run != "" {
		var interrupts []any
		for _, seq := range t.asks {
			p := w.t.At(seq).JSON().Get("params")
			interrupts = append(interrupts, object{"id": fmt.Sprintf("permission-%d", seq), "reason": "tool_call",
				"toolCallId": p.Path("toolCall.toolCallId").Str(),
				"metadata":   object{"acp": object{"options": decoded(p.Get("options"))}}})
		}
		w.finish(t, object{"outcome": object{"type": "interrupt", "interrupts": interrupts}})
	}
	answer := object{"interruptId": fmt.Sprintf("permission-%d", e.Ref), "status": "cancelled"}
	outcome, chosen, kind := e.JSON().Path("result.outcome"), "", ""
	if outcome.Get("outcome").Is("selected") {
		chosen = outcome.Get("optionId").Str()
		kind = w.t.At(e.Ref).JSON().Path("params.options").Find("optionId", chosen).Get("kind").Str()
		answer["status"] = "resolved"
		answer["payload"] = object{"approved": kind == "allow_once" || kind == "allow_always", "optionId": chosen}
	}
	if !outcome.Exists() || chosen != "" && kind == "" {
		w.leave("an answer to a permission request with an error, or with an option that was not offered")
	}
	if t.answers = append(t.answers, answer); len(t.answers) == len(t.asks) {
		answers := t.answers
		t.asks, t.answers = nil, nil
		w.begin(t, object{"resume": answers})
	}
}
