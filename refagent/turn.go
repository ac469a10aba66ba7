package refagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"
)

// The stop reasons of the protocol.
const (
	stopEndTurn   = "end_turn"
	stopMaxTokens = "max_tokens"
	stopRequests  = "max_turn_requests"
	stopRefusal   = "refusal"
	stopCancelled = "cancelled"
)

// maxRequests is the maximum number of model requests in one turn.
const maxRequests = 20

// contextSize is the size of the context window, in tokens, that the agent reports.
const contextSize = 128_000

// prompt handles session/prompt and starts a turn. It registers the turn before it returns, which is before the next
// line is read. A cancel that follows immediately therefore finds the turn.
func (a *agent) prompt(r *request, s *session, params json.RawMessage) *rpcError {
	var p struct {
		Prompt         []json.RawMessage
		IdempotencyKey *string
	}
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	if len(p.Prompt) == 0 {
		return badParams("prompt has to hold at least one content block")
	}
	message, err := promptMessage(p.Prompt, a.habits.NamesFiles)
	if err != nil {
		return err
	}

	t := &turn{request: r, done: make(chan struct{}), blocks: p.Prompt, message: message}
	if key := p.IdempotencyKey; key != nil && a.v2() {
		if t.key = *key; t.key == "" || utf8.RuneCountInString(t.key) > 255 {
			return badParams("idempotencyKey must have 1 to 255 characters")
		}
		if s.sentBefore(t) {
			return nil
		}
	}
	t.ctx, t.stop = context.WithCancel(a.ctx)
	s.mu.Lock()
	busy := s.turn != nil
	if a.hooks.Busy != nil {
		busy = a.hooks.Busy(s.id, busy)
	}
	if busy && (a.habits.Queues || a.v2() && a.habits.BusyCode == 0) {
		s.queue = append(s.queue, t)
		s.mu.Unlock()
		a.conn.cancelable(r, func() { a.cancelOne(s, t) })
		return nil
	}
	if busy {
		delete(s.keyed, t.key)
		s.mu.Unlock()
		t.stop()
		refusal := fault(cmp.Or(a.habits.BusyCode, codeInvalidRequest), "a prompt is already running in this session")
		if a.habits.TakeUpDelay == 0 {
			return refusal
		}
		a.spawn(func() {
			a.pause(a.habits.TakeUpDelay)
			a.conn.respond(r, nil, refusal)
		})
		return nil
	}
	s.turn = t
	s.mu.Unlock()
	a.conn.cancelable(r, func() { a.cancelOne(s, t) })
	a.spawn(func() { a.run(s, t) })
	return nil
}

// cancelOne handles $/cancel_request for a prompt.
func (a *agent) cancelOne(s *session, t *turn) {
	if a.v2() {
		s.dropOne(t) // a prompt in the conversation is already answered and continues
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.cancelled = true
	t.stop()
}

// run runs a turn from the prompt to the response.
func (a *agent) run(s *session, t *turn) {
	defer close(t.done)
	defer t.stop()
	a.pause(a.habits.TakeUpDelay)
	if a.habits.TakeUpDelay > 0 && a.tookBack(s, t) {
		return
	}
	s.mu.Lock()
	id := s.rec.messageID()
	s.writeLocked(event{Type: eventPrompt, Blocks: t.blocks, MessageID: id, Key: t.key, Message: &t.message})
	if a.v2() {
		s.inserted(t, id)
	}
	s.mu.Unlock()
	if a.hooks.TurnStart != nil {
		a.hooks.TurnStart(t.ctx, s.id)
	}

	a.lookUp(t.ctx, s, a.habits.AtPrompt)
	if a.habits.Asides {
		a.aside(t.ctx, s, "In three words, what is this about?\n\n"+plainText(t.blocks))
	}
	stop, err := a.converse(s, t, plainText(t.blocks))
	if err == nil || t.ctx.Err() != nil {
		a.nameSession(t.ctx, s, plainText(t.blocks))
	}
	if t.ctx.Err() != nil {
		a.pause(a.habits.CancelDelay)
	}

	// Choose and queue the response while holding the lock that a cancel needs. Either the cancel comes first and the
	// turn is cancelled, or the cancel finds no running turn.
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.cancelled || t.ctx.Err() != nil {
		stop, err = stopCancelled, nil
	}
	if a.hooks.Stop != nil {
		stop, err = a.hooks.Stop(s.id, stop, err)
	}
	if err != nil {
		stop = ""
	}
	s.writeLocked(event{Type: eventEnd, Stop: stop})
	a.next(s, t)
	if a.v2() {
		s.settled(stop, err)
		return
	}
	if err != nil {
		a.conn.respond(t.request, nil, turnError(err))
		return
	}
	a.conn.respond(t.request, object{"stopReason": stop}, nil)
}

// tookBack rejects a prompt that was withdrawn before the work on it began, and reports whether it did. In version 1,
// the prompt is withdrawn if its session was closed. In version 2, it is withdrawn if it was cancelled.
func (a *agent) tookBack(s *session, t *turn) bool {
	closed := a.find(s.id) != s
	s.mu.Lock()
	defer s.mu.Unlock()
	var err *rpcError
	switch {
	case a.v2() && (t.cancelled || t.ctx.Err() != nil):
		err = errTakenBack()
	case !a.v2() && closed:
		err = fault(cmp.Or(a.habits.UnknownCode, codeUnknownSession), "session %q is closed", s.id)
	default:
		return false
	}
	a.next(s, t)
	s.answer(t, nil, err)
	return true
}

// next ends a turn and starts the next waiting prompt. The caller holds s.mu.
func (a *agent) next(s *session, t *turn) {
	if s.turn != t {
		return
	}
	s.turn = nil
	if len(s.queue) > 0 {
		next := s.queue[0]
		s.turn, s.queue = next, s.queue[1:]
		a.spawn(func() { a.run(s, next) })
	}
}

func turnError(err error) *rpcError {
	if own, ok := errors.AsType[*rpcError](err); ok {
		return own
	}
	return modelError(err)
}

// nameSession gives the session a title, unless it has one.
func (a *agent) nameSession(ctx context.Context, s *session, prompt string) {
	title := titleOf(prompt)
	if title == "" || a.habits.Untitled || locked(s, func() string { return s.rec.title }) != "" {
		return
	}
	if a.habits.TitleByModel {
		title = cmp.Or(titleOf(a.aside(ctx, s, "Write a title of at most five words for this request:\n\n"+prompt)), title)
	}
	s.write(event{Type: eventState, Title: title})
	a.tell(s, update{Tag: "session_info_update", Title: title})
}

// converse sends model requests and runs the tools that the model calls, until the model calls no more tools or a
// limit is reached. It returns the stop reason.
func (a *agent) converse(s *session, t *turn, prompt string) (stop string, err error) {
	if name, ok := slashCommand(prompt); ok {
		return a.runCommand(s, t, name)
	}
	if !s.greeted.Swap(true) {
		a.say(s, a.habits.Greeting)
	}
	tools := a.tools(t.ctx, s)
	for _, server := range s.mcp.failures() {
		a.warn(s, "The MCP server "+server+" did not start")
	}
	for range maxRequests {
		if t.ctx.Err() != nil {
			return stopCancelled, nil
		}
		r, err := a.reply(s, t, tools)
		if err != nil {
			return "", err
		}
		message := ModelMessage{Role: roleAssistant, Text: r.Text}
		if r.Finish != "length" && r.Finish != "content_filter" && !r.Refused {
			for _, c := range r.Calls {
				if c.Name != "" {
					message.Calls = append(message.Calls, c)
				}
			}
		}
		s.write(event{Type: eventMessage, Message: &message})
		switch {
		case r.Finish == "length":
			return stopMaxTokens, nil
		case r.Finish == "content_filter" || r.Refused:
			return stopRefusal, nil
		case len(message.Calls) == 0:
			if !s.noticed.Swap(true) {
				a.say(s, a.habits.Notice)
			}
			return stopEndTurn, nil
		}
		rejected, err := a.runTools(s, t, tools, message.Calls)
		if err != nil || rejected && a.habits.RejectionEnds {
			return stopEndTurn, err
		}
	}
	return stopRequests, nil
}

// say sends a text as a message from the agent. It does nothing if the text is "".
func (a *agent) say(s *session, words string) {
	if words != "" {
		a.record(s, update{Tag: "agent_message_chunk", MessageID: s.messageID(), Content: text(words)})
	}
}

// context returns the messages to send in the session's next model request.
func (a *agent) context(s *session) []ModelMessage {
	history := locked(s, func() []ModelMessage { return slices.Clone(s.rec.history) })
	if a.habits.FormerTexts {
		history = withoutFormerCalls(history)
	}
	if s.system != "" {
		history = slices.Insert(history, 0, ModelMessage{Role: roleSystem, Text: s.system})
	}
	if a.hooks.Request != nil {
		history = a.hooks.Request(s.id, history)
	}
	return history
}

// reply sends one model request and passes the model's output to the editor as it arrives.
func (a *agent) reply(s *session, t *turn, tools []tool) (Reply, error) {
	thoughts := locked(s, func() bool { return s.rec.thoughts })
	history := a.context(s)
	tag, id := "", ""
	r, err := a.model.Ask(t.ctx, history, offers(tools), func(p Piece) {
		kind := "agent_message_chunk"
		if p.Thought != "" {
			kind = "agent_thought_chunk"
		}
		if t.ctx.Err() != nil || p.Call || p.Thought != "" && !thoughts {
			return
		}
		if kind != tag {
			tag, id = kind, s.messageID()
		}
		a.record(s, update{Tag: tag, MessageID: id, Content: text(p.Thought + p.Text)})
		a.conn.out.drain(t.ctx, maxQueued)
	})
	if r.Used > 0 && t.ctx.Err() == nil {
		size := int64(contextSize)
		a.record(s, update{Tag: "usage_update", Used: &r.Used, Size: &size})
	}
	return r, err
}

// aside asks the model a question outside of the conversation and returns the answer, or "" after an error.
func (a *agent) aside(ctx context.Context, s *session, question string) string {
	r, err := a.model.Ask(ctx, []ModelMessage{{Role: roleUser, Text: question}}, nil, func(Piece) {})
	if err != nil {
		a.log.Printf("session %s: a model request outside the conversation failed: %v", s.id, err)
	}
	return r.Text
}
