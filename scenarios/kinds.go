package scenarios

import (
	"slices"

	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
)

// anyKinds returns the kinds of patterns that any protocol has, in the order of the help.
func (p *Protocol) anyKinds() []language.Kind {
	of := func(source transcript.Source, kinds ...transcript.Kind) func(language.Bound, transcript.Entry, bool) bool {
		return func(x language.Bound, e transcript.Entry, own bool) bool {
			return own && e.Source == source && slices.Contains(kinds, e.Kind) && (x.Arg == "" || OneOf(e.Method, x.Arg))
		}
	}
	request, agent := *p.methodKind(), transcript.Agent
	request.Name, request.Arg, request.Help = "request", "METHOD", "a request of the agent; METHOD may be a|b"
	request.Match = of(agent, transcript.Request)
	return []language.Kind{
		request,
		{Name: "notification", Arg: "METHOD", Help: "a notification of the agent", Match: of(agent, transcript.Notification)},
		{Name: "turn", Arg: "?", Help: "the end of a turn with one of the stop reasons given (a|b), any, or error",
			Effect: true,
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				_, ends := p.TurnEnd(e)
				return own && ends && !slices.Contains(x.Over, e.Ref)
			}},
		{Name: "response", Arg: "REF", Help: "the response to the request a line named with as",
			Match: func(x language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == agent && e.Kind == transcript.Response && e.Ref == x.Ref
			}},
		{Name: "malformed", Help: "a line of the agent that is no message",
			Match: func(_ language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == agent && e.Kind == transcript.Malformed
			}},
		{Name: "sent", Arg: "METHOD", Help: "a request or notification of the editor",
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				return own && e.Source == transcript.Editor && e.Kind != transcript.Response &&
					(e.Method == x.Arg || p.SentAs != nil && p.SentAs(e) == x.Arg)
			}},
		{Name: "gate", Arg: "NAME", Help: "the model holds its reply at this gate", Inner: true, Opens: true, Outlives: true,
			Match: func(x language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == transcript.Model && e.Kind == transcript.Gate && e.JSON().Get("gate").Is(x.Arg)
			}},
		{Name: "model", Arg: "EVENT", Help: "request, done, aborted, fault or unmatched: what the model server saw",
			Of: "the model", Events: modelEvents(), Effect: true, Outlives: true,
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				return own && e.Source == transcript.Model && e.Kind == modelEvent(x.Arg)
			}},
		{Name: "exit", Arg: "?", Help: "the agent's exit, with this status", Effect: true, Alone: true,
			Match: func(_ language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == transcript.Process && e.Kind == transcript.Exited
			}},
		{Name: "stderr", Help: "something the agent wrote to stderr; text is what", Alone: true,
			Match: func(_ language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == transcript.Stderr
			}},
		{Name: "note", Help: "a remark of the editor or the model server",
			Match: func(_ language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == transcript.Note && e.Kind == transcript.Noted
			}},
	}
}

// methodKind is the kind of a pattern that is a method.
func (p *Protocol) methodKind() *language.Kind {
	return &language.Kind{Name: "method", Match: func(x language.Bound, e transcript.Entry, own bool) bool {
		return own && e.Source == transcript.Agent && OneOf(e.Method, x.Arg) &&
			(e.Kind == transcript.Request || e.Kind == transcript.Notification)
	}, InnerArg: func(method string) bool { return p.Inner(method) }}
}

func modelEvents() []string {
	return []string{"request", "done", "aborted", "fault", "unmatched", "released"}
}

func modelEvent(name string) transcript.Kind {
	return map[string]transcript.Kind{"request": transcript.ModelRequest, "done": transcript.ModelDone,
		"aborted": transcript.ModelAborted,
		"fault":   transcript.ModelFault, "unmatched": transcript.ModelUnmatched, "released": transcript.GateReleased}[name]
}

// endsTurn reports whether an entry is the end of a turn.
func (r *run) endsTurn(e transcript.Entry) bool {
	_, ok := r.protocol().TurnEnd(e)
	return ok
}

// endedWithoutError reports whether an entry is the end of a turn, and no error.
func (r *run) endedWithoutError(e transcript.Entry) bool {
	reason, ok := r.protocol().TurnEnd(e)
	return ok && reason != "error"
}

// stopReason is the reason with which an entry ends a turn, or "error".
func (r *run) stopReason(e transcript.Entry) string {
	reason, _ := r.protocol().TurnEnd(e)
	return reason
}
