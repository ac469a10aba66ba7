package scenarios

import (
	"slices"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
)

// anyKinds returns the kinds of patterns that any protocol has, in the order of the help.
func (p *Protocol) anyKinds() []language.Kind {
	const agent = transcript.Agent
	request := *p.methodKind()
	request.Name, request.Arg, request.Help = "request", "METHOD", "a request of the agent; METHOD may be a|b"
	request.Match = ofAgent(transcript.Request)
	return []language.Kind{
		request,
		{Name: "notification", Arg: "METHOD", Help: "a notification of the agent", Match: ofAgent(transcript.Notification)},
		{Name: "turn", Arg: "?", Help: "the end of a turn with one of these stop reasons (a|b), any, or error",
			Effect: true,
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				_, ends := p.TurnEnd(e)
				return own && ends && !slices.Contains(x.Over, e.Ref)
			}},
		{Name: "response", Arg: "REF", Help: "the response to the request that a line named with as",
			Match: func(x language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == agent && e.Kind == transcript.Response && e.Ref == x.Ref
			}},
		{Name: "malformed", Help: "an agent's line that is not a message", Match: anywhere(agent, transcript.Malformed)},
		{Name: "sent", Arg: "METHOD", Help: "a request or notification of the editor",
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				return own && e.Source == transcript.Editor && e.Kind != transcript.Response &&
					(e.Method == x.Arg || p.SentAs != nil && p.SentAs(e) == x.Arg)
			}},
		{Name: "gate", Arg: "NAME", Help: "the model holds its reply at this gate", Inner: true, Opens: true, Outlives: true,
			Match: func(x language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == transcript.Model && e.Kind == transcript.Gate && e.JSON().Get("gate").Is(x.Arg)
			}},
		{Name: "model", Arg: "EVENT", Help: "an event of the model server: request, done, aborted, fault or unmatched",
			Of: "the model", Events: lists.Map(modelEvents, func(m modelEvent) string { return m.name }),
			Effect: true, Outlives: true,
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				return own && e.Source == transcript.Model && slices.Contains(modelEvents, modelEvent{x.Arg, e.Kind})
			}},
		{Name: "exit", Arg: "?", Help: "the agent's exit, with this status", Effect: true, Alone: true,
			Match: anywhere(transcript.Process, transcript.Exited)},
		{Name: "stderr", Help: "a piece of the agent's stderr output, in the field text", Alone: true,
			Match: anywhere(transcript.Stderr, transcript.Chunk)},
		{Name: "note", Help: "a remark of the editor or the model server",
			Match: anywhere(transcript.Note, transcript.Noted)},
	}
}

// ofAgent returns a function that matches the agent's frames of this kind, in the pattern's session, with the
// pattern's method.
func ofAgent(kind transcript.Kind) func(language.Bound, transcript.Entry, bool) bool {
	return func(x language.Bound, e transcript.Entry, own bool) bool {
		return own && e.Source == transcript.Agent && e.Kind == kind && (x.Arg == "" || OneOf(e.Method, x.Arg))
	}
}

// anywhere returns a function that matches entries with this source and kind, in any session.
func anywhere(source transcript.Source, kind transcript.Kind) func(language.Bound, transcript.Entry, bool) bool {
	return func(_ language.Bound, e transcript.Entry, _ bool) bool { return e.Source == source && e.Kind == kind }
}

// methodKind returns the kind of patterns that begin with a method.
func (p *Protocol) methodKind() *language.Kind {
	return &language.Kind{Name: "method", Match: func(x language.Bound, e transcript.Entry, own bool) bool {
		return own && e.Source == transcript.Agent && OneOf(e.Method, x.Arg) &&
			(e.Kind == transcript.Request || e.Kind == transcript.Notification)
	}, InnerArg: func(method string) bool { return p.Inner(method) }}
}

// modelEvent is an event of the model server, by its name in scripts.
type modelEvent struct {
	name string
	kind transcript.Kind
}

var modelEvents = []modelEvent{
	{"request", transcript.ModelRequest}, {"done", transcript.ModelDone}, {"aborted", transcript.ModelAborted},
	{"fault", transcript.ModelFault}, {"unmatched", transcript.ModelUnmatched}, {"released", transcript.GateReleased},
}

// endsTurn reports whether an entry ends a turn.
func (r *run) endsTurn(e transcript.Entry) bool {
	_, ok := r.protocol().TurnEnd(e)
	return ok
}

// endedWithoutError reports whether an entry ends a turn without an error.
func (r *run) endedWithoutError(e transcript.Entry) bool {
	reason, ok := r.protocol().TurnEnd(e)
	return ok && reason != "error"
}

// stopReason returns the stop reason of the turn that an entry ends, or "error". It returns "" if the entry ends no
// turn.
func (r *run) stopReason(e transcript.Entry) string {
	reason, _ := r.protocol().TurnEnd(e)
	return reason
}
