package invariants

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// modelSide is the topic of the entries of the model server about a run.
const modelSide = "model"

// modelText checks that the model's text in a run reaches the stream: complete, once, and as the right kind of item.
func modelText(w *watch) {
	points := [...]string{hearing.Missing: "missing", hearing.Joined: "missing", hearing.Disordered: "missing",
		hearing.Doubled: "twice", hearing.Other: "kind"}
	w.On((*event).listen, modelSide)
	w.On((*event).show, anyEvent)
	w.On(func(ev *event) {
		if ev.phase != finished || !ev.heard.Clear() || !ev.v.Get("end").Is(endpoint.Closed) {
			return
		}
		w.Saw("missing", "twice", "kind")
		ev.heard.Judge(func(what hearing.Fault, request int, format string, args ...any) {
			w.find(points[what], ev, "", []int{request}, format, args...)
		})
		given := values(string(ev.given))
		if len(given) != len(ev.calls) { // some calls do not come from the model
			return
		}
		for _, id := range ev.calls {
			call := ev.items[key{tool, id}]
			got := append(values(call.text.String()), "{}")[0]
			w.judge("arguments", !slices.Contains(given, got), ev, id, call.begun(),
				"Tool call %q has arguments that the model sent for no call: %s.",
				id, wire.Clip(call.text.String(), 120))
		}
	}, ended)
}

// modelFailed checks that a run does not end as a success if the model's last reply failed or broke off. The run may
// end so if the agent tells the user about the failure.
func modelFailed(w *watch) {
	w.On((*event).fails, modelSide)
	w.On(func(ev *event) {
		if ev.reply.failed > 0 && ev.family == text &&
			!strings.Contains(ev.reply.said.String(), hearing.Bare(ev.v.Get("delta").Str())) {
			ev.reply.failed = 0 // the agent reports the failure
		}
	}, anyItem)
	w.On(func(ev *event) {
		outcome := ev.v.Get("outcome").Str()
		success := ev.phase == finished && (outcome == "" || outcome == "success") && !ev.heard.Unclear
		w.judge("silent", success && ev.reply.failed > 0, ev, ev.runID, []int{ev.reply.failed},
			"The model's last reply %s, but the run ended as a success without telling the user.", ev.reply.how)
	}, ended)
}

// fails updates ev.reply, the model's last reply, from an entry of the model server.
func (ev *event) fails() {
	n, _ := ev.v.Get("n").Int()
	status, _ := ev.v.Get("status").Int()
	switch {
	case ev.Kind == transcript.ModelRequest && ev.v.Get("lane").Is("main"):
		ev.reply = lastReply{n: n}
	case n != ev.reply.n:
	case ev.Kind == transcript.ModelChunk && ev.reply.said.Len() < hearing.Remembered:
		ev.reply.said.WriteString(hearing.Bare(fakellm.ChunkText(ev.v)))
	case ev.Kind != transcript.ModelDone:
	case status >= 400:
		ev.reply.failed, ev.reply.how = ev.Seq, fmt.Sprintf("failed with status %d", status)
	case ev.v.Get("stop").Str() == "" && ev.v.Get("why").Is("truncate"):
		ev.reply.failed, ev.reply.how = ev.Seq, "broke off"
	}
}

// listen passes an entry of the model server to ev.heard.
func (ev *event) listen() {
	switch {
	case ev.Kind != transcript.ModelRequest:
		ev.heard.Say(ev.Entry, ev.v)
	case ev.v.Get("lane").Is("main"):
		ev.heard.Ask(ev.Entry, ev.v)
	}
	if ev.Kind == transcript.ModelChunk && ev.v.Get("says").Is("tool") {
		ev.given = append(ev.given, fakellm.ChunkText(ev.v)...)
	}
}

// show passes an event that the front end received to ev.heard.
func (ev *event) show() {
	if len(ev.Redacted) > 0 || ev.runs > 1 || ev.v.Path("outcome.type").Is("cancelled") {
		ev.heard.Unclear = true
	}
	switch delta := ev.v.Get("delta").Str(); {
	case ev.family == text && ev.verb != other:
		ev.heard.Show(delta, "", false)
	case ev.family == thought && ev.verb != other:
		ev.heard.Think(delta)
	default: // a snapshot, a state or a widget may show the text too
		mention(&ev.heard, ev.v)
	}
}

// mention passes each text in a JSON value to h.
func mention(h *hearing.Turn, v wire.Value) {
	if v.Kind() == wire.String {
		h.Mention(v.Str())
	}
	for inner := range v.Items() {
		mention(h, inner)
	}
	for _, inner := range v.Members() {
		mention(h, inner)
	}
}

// values returns the JSON values in a text, each in a normal form. It returns nil if the text is not a sequence of
// JSON values.
func values(text string) (all []string) {
	in := json.NewDecoder(strings.NewReader(text))
	for in.More() {
		var v any
		if in.Decode(&v) != nil {
			return nil
		}
		one, _ := json.Marshal(v) // cannot fail: the value was JSON
		all = append(all, string(one))
	}
	return all
}

// modelContext checks that the messages and the context of the input reach the model. It judges the first model
// request of a run.
func modelContext(w *watch) {
	w.On(func(ev *event) {
		if ev.Kind != transcript.ModelRequest || !ev.v.Get("lane").Is("main") || ev.asked || ev.heard.Unclear ||
			ev.thread.left && !ev.asksForInput() {
			return
		}
		ev.asked = true // later requests of the run may have a summary
		a, ok := fakellm.ReadAsked(ev.Entry)
		if !ok || a.Partial || len(ev.Redacted) > 0 || len(ev.input.Raw()) > 4*hearing.Remembered {
			return
		}
		told := hearing.Loose(a.System())
		for _, p := range a.Conversation() {
			told += hearing.Loose(p.Text)
		}
		messagesReach(w, ev, told)
		for c := range ev.input.Get("context").Items() {
			text := c.Get("value").Str()
			w.judge("context", !holds(told, text), ev, "", []int{ev.ref},
				"The model request lacks the context %q of the input: %q.",
				c.Get("description").Str(), wire.Clip(text, 120))
		}
	}, modelSide)
}

// messagesReach checks that the model gets each message of the input. If the user said a text several times, the model
// must get the text as many times. told is the text of the model request.
func messagesReach(w *watch, ev *event, told string) {
	times := map[string]int{} // how many times the user said each text
	for m := range ev.input.Get("messages").Items() {
		point, what := "history", "the message"
		if of := m.Get("toolCallId").Str(); of != "" {
			if what = "the result"; ev.hasFrontTool(ev.inputCall(of).Path("function.name").Str()) {
				point = "answer"
			}
		}
		texts := []string{m.Get("content").Str()}
		for part := range m.Get("content").Items() {
			texts = append(texts, part.Get("text").Str())
		}
		for _, text := range texts {
			if m.Get("role").Is("user") {
				times[text]++
			}
			again := times[text] > 1 && strings.Count(told, hearing.Loose(text)) < times[text]
			w.judge(point, ev.owes(m) && (again || !holds(told, text)), ev, m.Get("id").Str(), []int{ev.ref},
				"The model request lacks %s %q of the input: %q.", what, m.Get("id").Str(), wire.Clip(text, 120))
		}
	}
}

// asksForInput reports whether a model request has the last user message of this input. It returns true if the log
// lacks the text of the request.
func (ev *event) asksForInput() bool {
	said, last := ev.v.Get("user"), ""
	for m := range ev.input.Get("messages").Items() {
		if m.Get("role").Is("user") {
			last = m.Get("content").Str()
		}
	}
	return !said.Exists() || holds(hearing.Loose(said.Str()), last)
}

// owes reports whether the agent must send a message of the input to the model. It need not send a tool result whose
// call the input lacks.
func (s *stream) owes(m wire.Value) bool {
	role := m.Get("role").Str()
	return role == "tool" && s.inputCall(m.Get("toolCallId").Str()).Exists() ||
		slices.Contains([]string{"user", "assistant", "developer", "system"}, role)
}

// holds reports whether told contains each line of text. Lines are compared one by one, because an agent may put a
// result into JSON, which escapes line ends.
func holds(told, text string) bool {
	return !lists.Any(strings.Lines(text), func(line string) bool {
		return !strings.Contains(told, hearing.Loose(line))
	})
}
