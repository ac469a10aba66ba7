package words

import (
	_ "embed"
	"slices"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/remote"
	"github.com/acp-test/acp-test/protocol/lexicon"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
)

//go:embed kinds.txt
var kindsOfBoth string

// kinds returns the patterns of ACP version 1: patterns for messages of the agent, and for messages on the streams and
// sockets that a script has opened.
func kinds() []language.Kind {
	all := lexicon.Kinds(kindsOfBoth, map[string]lexicon.Match{
		"update": update(), "tool": update("tool_call", "tool_call_update"),
		"content": update("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call",
			"tool_call_update", "plan"),
		"permission": asks("session/request_permission"), "elicitation": asks("elicitation/create"),
		"subagent": ofSubagent, "answer": ofAnswer, "terminal": ofTerminal,
		"event": opened(remote.Event), "stream-end": opened(transcript.Closed),
		"exchange": func(_ language.Bound, e transcript.Entry, _ bool) bool {
			return e.Source == transcript.Network && e.Kind == transcript.Exchanged
		},
	}, update)
	terminal := &all[slices.IndexFunc(all, func(k language.Kind) bool { return k.Name == "terminal" })]
	terminal.Of, terminal.Events = "a terminal", []string{"started", "output", "exit", "released"}
	return all
}

func ofSubagent(x language.Bound, e transcript.Entry, own bool) bool {
	state := e.JSON().Path("params.update.state")
	return own && e.Source == transcript.Agent && acpframe.Update(e) == "subagent_update" &&
		(x.Arg == "" || state.Get("state").Is(x.Arg) || state.Get("stopReason").Is(x.Arg))
}

func ofAnswer(x language.Bound, e transcript.Entry, own bool) bool {
	return own && e.Source == transcript.Editor && e.Kind == transcript.Response &&
		e.Method == "session/request_permission" && (x.Arg == "" || answered(e) == x.Arg)
}

func ofTerminal(x language.Bound, e transcript.Entry, _ bool) bool {
	return e.Source == transcript.Terminal && e.Kind == map[string]transcript.Kind{"started": transcript.TermStarted,
		"output": transcript.TermOutput, "exit": transcript.TermExit, "released": transcript.TermReleased}[x.Arg]
}

// opened returns a pattern for messages of a kind on the stream or socket that another script line has opened.
func opened(kind transcript.Kind) lexicon.Match {
	return func(x language.Bound, e transcript.Entry, _ bool) bool {
		return e.Source == transcript.Network && e.Kind == kind && e.Ref == x.Ref
	}
}

// update returns a pattern for session updates with one of the names. Without names, it matches all session updates.
func update(names ...string) lexicon.Match {
	return func(_ language.Bound, e transcript.Entry, own bool) bool {
		u := acpframe.Update(e)
		return own && e.Source == transcript.Agent && u != "" && (len(names) == 0 || slices.Contains(names, u))
	}
}

// asks returns a pattern for the agent's requests of a method.
func asks(method string) lexicon.Match {
	return func(_ language.Bound, e transcript.Entry, own bool) bool {
		return own && e.Source == transcript.Agent && e.Kind == transcript.Request && e.Method == method
	}
}

// answered returns the editor's answer to a permission request: the id of the chosen option, "cancelled" or "error".
func answered(e transcript.Entry) string {
	v := e.JSON()
	if v.Get("error").Exists() {
		return "error"
	}
	outcome := v.Get("result").Get("outcome")
	if outcome.Get("outcome").Is("selected") {
		return outcome.Get("optionId").Str()
	}
	return outcome.Get("outcome").Str()
}
