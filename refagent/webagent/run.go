package webagent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/refagent"
)

// run is the state of one run.
type run struct {
	*server
	ctx    context.Context
	in     *Input
	w      http.ResponseWriter
	port   *Port
	number int
	buf    bytes.Buffer
	binary bool // events use the binary encoding

	state      any
	messages   []Message       // messages of this run
	chunked    string          // item of the latest chunk; "" after other events
	tagged     map[string]bool // messages whose first event had the subagent's name
	sent, made int64
}

// newID returns a new random id that begins with kind.
func newID(kind string) string {
	return fmt.Sprintf("%s-%016x", kind, rand.Uint64())
}

// send applies the habits to an event and sends the result. If there is a Send hook, the hook gets the events
// instead.
func (r *run) send(kind string, members ...any) {
	e := Event{"type": kind}
	for i := 0; i < len(members); i += 2 {
		e[members[i].(string)] = members[i+1]
	}
	if r.gone() {
		return
	}
	for _, e := range r.dressed(e) {
		if r.Hooks.Send != nil {
			r.Hooks.Send(r.port, e)
			continue
		}
		r.write(e)
	}
}

// write writes an event to the response.
func (r *run) write(e Event) {
	data, err := json.Marshal(e)
	if err != nil {
		fmt.Fprintln(r.Log, "an event cannot be written:", err)
		return
	}
	if r.binary {
		frame := binaryOf(data)
		if r.Hooks.Binary != nil {
			frame = r.Hooks.Binary(frame)
		}
		r.raw(frame)
		return
	}
	r.buf.Reset()
	if r.Habits.Comments {
		r.buf.WriteString(": still here\n\n")
	}
	if r.Habits.Fields {
		fmt.Fprintf(&r.buf, "event: %s\nid: %d\n", e.Type(), r.number)
	}
	if r.Habits.Split {
		data = append([]byte("{\ndata: "), data[1:]...)
	}
	r.buf.WriteString("data: ")
	r.buf.Write(data)
	r.buf.WriteString("\n\n")
	if r.Habits.Spaced {
		r.buf.WriteString("\n")
	}
	frame := r.buf.Bytes()
	if r.Hooks.Frame != nil {
		frame = r.Hooks.Frame(frame)
	}
	r.raw(frame)
}

func (r *run) raw(b []byte) {
	_, _ = r.w.Write(b) // r.ctx ends if the client disconnects
	_ = http.NewResponseController(r.w).Flush()
}

// interrupted is the error that ends a run because the agent needs answers from the user.
type interrupted struct{ list []map[string]any }

func (interrupted) Error() string { return "the run waits for answers" }

// pending is the error that ends a run because the model called tools of the front end.
type pending struct{ ids []string }

func (pending) Error() string { return "the run waits for the front end's tools" }

// play executes the run from RUN_STARTED to its last event.
func (r *run) play() {
	started := []any{"threadId", r.in.ThreadID, "runId", r.in.RunID}
	if v := cmp.Or(r.Habits.Version, Version); v != "none" {
		started = append(started, "protocolVersion", v)
	}
	if r.Habits.Echo {
		started = append(started, "input", r.in.Whole)
	}
	r.send("RUN_STARTED", started...)
	if when := r.Habits.State; when == "" || when == "initial" || when == "all" {
		r.send("STATE_SNAPSHOT", "snapshot", r.state)
	}
	if r.Habits.Customs {
		r.send("CUSTOM", "name", "acp-test.hello", "value", map[string]any{"run": r.number})
	}
	err := r.converse()
	var waits interrupted
	var front pending
	finished := []any{"threadId", r.in.ThreadID, "runId", r.in.RunID}
	switch {
	case r.gone():
		return
	case errors.As(err, &waits):
		r.snapshots(true)
		finished = append(finished, "outcome", map[string]any{"type": "interrupt", "interrupts": waits.list})
	case err != nil && !errors.As(err, &front):
		r.fail(err)
		return
	default:
		r.snapshots(false)
		outcome := map[string]any{"type": "success"}
		if front.ids != nil && !r.Habits.NoPending && !r.Habits.NoResults { // the list needs all calls without a result
			outcome["pendingToolCallIds"] = front.ids
		}
		if !r.Habits.NoOutcome {
			finished = append(finished, "outcome", outcome)
		}
	}
	if r.sent+r.made > 0 && !r.Habits.NoUsage {
		finished = append(finished, "usage", []any{map[string]any{"inputTokens": r.sent, "outputTokens": r.made,
			"totalTokens": r.sent + r.made}})
	}
	r.send("RUN_FINISHED", finished...)
}

// fail ends the run with an error event whose message contains no internal details.
func (r *run) fail(err error) {
	message := "the model request failed"
	if status := refagent.Refused(err); status > 0 {
		message = fmt.Sprintf("the model answered with HTTP status %d", status)
	}
	if r.Habits.Terse {
		message = "the run failed"
	}
	fmt.Fprintln(r.Log, "the run failed:", err)
	members := []any{"message", message}
	if code := cmp.Or(r.Habits.Code, "MODEL_INVOCATION_ERROR"); code != "-" {
		members = append(members, "code", code)
	}
	r.send("RUN_ERROR", members...)
}

// snapshots sends the snapshots at the end of a run. must is true if the client needs both snapshots.
func (r *run) snapshots(must bool) {
	if when := r.Habits.State; must || when == "final" || when == "all" {
		r.send("STATE_SNAPSHOT", "snapshot", r.state)
	}
	if must || !r.Habits.NoMessages {
		all := append(append([]Message{}, r.in.Messages...), r.messages...)
		r.send("MESSAGES_SNAPSHOT", "messages",
			slices.DeleteFunc(all, func(m Message) bool { return m.Role == "activity" }))
	}
}

// maxRequests is the maximum number of model requests in one run.
const maxRequests = 20

// converse first handles the open tool calls of earlier runs. It then sends model requests and runs the tools that
// the model calls, until the model calls no more tools.
func (r *run) converse() error {
	if err := r.resume(); err != nil {
		return err
	}
	for range maxRequests {
		calls, err := r.reply()
		if err == nil && len(calls) > 0 {
			err = r.carryOut(calls)
		}
		if err != nil || len(calls) == 0 {
			return err
		}
	}
	return errors.New("the model asked for tools too many times in a row")
}

// history returns the messages for the next model request.
func (r *run) history() (list []refagent.ModelMessage) {
	for _, c := range r.in.Context {
		list = append(list, refagent.ModelMessage{Role: "system", Text: c.Description + ": " + c.Value})
	}
	for _, m := range slices.Concat(r.in.Messages, r.messages) {
		n := refagent.ModelMessage{Role: m.Role, Text: m.text(), CallID: m.ToolCallID}
		switch m.Role {
		case "reasoning", "activity":
			continue
		case "developer":
			n.Role = "system"
		}
		for _, c := range m.ToolCalls {
			n.Calls = append(n.Calls, refagent.ModelCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		list = append(list, n)
	}
	if r.Hooks.Request != nil {
		list = r.Hooks.Request(r.in, list)
	}
	return list
}

// step sends the events for the start or the end of a phase of the run.
func (r *run) step(kind, name string) {
	activity := []any{"messageId", "act-" + r.in.RunID, "activityType", "PLAN"}
	switch {
	case r.Habits.Activities && kind == "STEP_STARTED":
		r.send("ACTIVITY_SNAPSHOT", append(activity, "content", map[string]any{"step": name})...)
	case r.Habits.Activities:
		r.send("ACTIVITY_DELTA", append(activity, "patch",
			[]any{map[string]any{"op": "add", "path": "/done", "value": true}})...)
	}
	if !r.Habits.NoSteps {
		r.send(kind, "stepName", name)
	}
}

// speaker sends one reply of the model as events.
type speaker struct {
	run     *run
	text    string // id of the open message
	thought string // id of the open reasoning
	message Message
	calls   []Call
	open    []bool
	said    strings.Builder
	held    strings.Builder // text that is sent in one piece later
}

// reply sends one model request and passes the model's output to the client as it arrives. It returns the model's
// tool calls.
func (r *run) reply() ([]Call, error) {
	r.step("STEP_STARTED", "model")
	sp := &speaker{run: r, message: Message{ID: newID("msg"), Role: "assistant"}}
	sub := ""
	if r.Habits.Announces {
		sub = newID("sub")
		r.send("SUBAGENT_STARTED", "subagentRunId", sub, "name", "writer")
	}
	if r.Habits.Silent {
		sp.say("")
	}
	n := 0
	answer, err := r.model.Ask(r.ctx, r.history(), r.offers(), func(p refagent.Piece) {
		n++
		list := []refagent.Piece{p}
		if r.Hooks.Piece != nil {
			list = r.Hooks.Piece(n, p)
		}
		for _, p := range list {
			sp.piece(p)
		}
	})
	r.sent, r.made = r.sent+answer.Sent, r.made+answer.Made
	sp.close()
	if sub != "" {
		r.send("SUBAGENT_FINISHED", "subagentRunId", sub)
	}
	r.step("STEP_FINISHED", "model")
	if err != nil {
		return nil, err
	}
	if sp.said.Len() > 0 || len(sp.calls) > 0 {
		m := sp.message
		if sp.said.Len() > 0 {
			m.Content, _ = json.Marshal(sp.said.String()) // a string can always be encoded
		}
		if m.ToolCalls = sp.calls; sp.said.Len() == 0 && !r.Habits.Silent {
			m.ID = sp.calls[0].ID // clients use this id for calls without a message
		}
		r.messages = append(r.messages, m)
	}
	return sp.calls, nil
}

// piece sends the events for a piece of the reply.
func (sp *speaker) piece(p refagent.Piece) {
	switch {
	case p.Call:
		sp.endThought()
		if !sp.run.Habits.Late {
			sp.endText()
		}
		sp.call(p)
	case p.Thought != "":
		sp.think(p.Thought)
	default:
		sp.endThought()
		sp.said.WriteString(p.Text)
		sp.say(p.Text)
	}
}

func (sp *speaker) say(text string) {
	r := sp.run
	if sp.text == "" {
		sp.text = sp.message.ID
		r.send("TEXT_MESSAGE_START", "messageId", sp.text, "role", "assistant")
	}
	switch {
	case text == "":
	case r.Habits.Whole:
		sp.held.WriteString(text)
	default:
		r.send("TEXT_MESSAGE_CONTENT", "messageId", sp.text, "delta", text)
	}
}

func (sp *speaker) endText() {
	if sp.text == "" {
		return
	}
	if sp.held.Len() > 0 {
		sp.run.send("TEXT_MESSAGE_CONTENT", "messageId", sp.text, "delta", sp.held.String())
		sp.held.Reset()
	}
	sp.run.send("TEXT_MESSAGE_END", "messageId", sp.text)
	sp.text = ""
}

func (sp *speaker) think(text string) {
	if sp.thought == "" {
		sp.thought = newID("think")
		sp.run.send("REASONING_START", "messageId", sp.thought)
		sp.run.send("REASONING_MESSAGE_START", "messageId", sp.thought, "role", "reasoning")
	}
	sp.run.send("REASONING_MESSAGE_CONTENT", "messageId", sp.thought, "delta", text)
}

func (sp *speaker) endThought() {
	if sp.thought != "" {
		sp.run.send("REASONING_MESSAGE_END", "messageId", sp.thought)
		sp.run.send("REASONING_END", "messageId", sp.thought)
		sp.thought = ""
	}
}

// call sends the events for a piece of a tool call. If the piece has another id than the call at its index, it starts
// a new call.
func (sp *speaker) call(p refagent.Piece) {
	at := p.Index
	if at >= len(sp.calls) || p.ID != "" && sp.calls[at].ID != p.ID {
		at = len(sp.calls)
		c := Call{ID: cmp.Or(p.ID, newID("call")), Type: "function"}
		c.Function.Name = p.Name
		sp.calls, sp.open = append(sp.calls, c), append(sp.open, true)
		members := []any{"toolCallId", c.ID, "toolCallName", p.Name}
		if !sp.run.Habits.Own && (sp.said.Len() > 0 || sp.run.Habits.Silent) {
			members = append(members, "parentMessageId", sp.message.ID)
		}
		sp.run.send("TOOL_CALL_START", members...)
	}
	if p.Arguments != "" {
		sp.calls[at].Function.Arguments += p.Arguments
		sp.run.send("TOOL_CALL_ARGS", "toolCallId", sp.calls[at].ID, "delta", p.Arguments)
	}
}

// close ends all open items.
func (sp *speaker) close() {
	sp.endThought()
	for i, open := range sp.open {
		if open {
			sp.run.send("TOOL_CALL_END", "toolCallId", sp.calls[i].ID)
			sp.open[i] = false
		}
	}
	sp.endText()
}
