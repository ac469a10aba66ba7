package words

import (
	"slices"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
)

type match = func(x language.Bound, e transcript.Entry, own bool) bool

// kinds are the patterns of what an agent sends in ACP version 1.
func kinds() []language.Kind {
	all := []language.Kind{
		{Name: "agent_message", Help: "a chunk of the agent's text; text is its text",
			Aliases: []string{"agent_message_chunk"}, Inner: true},
		{Name: "agent_thought", Help: "a chunk of the agent's thoughts; text is its text",
			Aliases: []string{"agent_thought_chunk"}, Inner: true},
		{Name: "user_message", Help: "a chunk of the user's text", Aliases: []string{"user_message_chunk"}, Inner: true},
		{Name: "tool_call", Help: "the first report of a tool call", Inner: true},
		{Name: "tool_call_update", Help: "a later report of a tool call", Inner: true},
		{Name: "plan", Help: "a plan", Inner: true},
		{Name: "available_commands_update", Help: "the agent's commands"},
		{Name: "current_mode_update", Help: "the session's mode"},
		{Name: "config_option_update", Help: "the session's options"},
		{Name: "session_info_update", Help: "title and time of the session"},
		{Name: "usage_update", Help: "tokens and cost"},
		{Name: "notice", Help: "a notice for the user"},
		{Name: "compaction_update", Help: "the state of a compaction"},
		{Name: "compaction_summary_chunk", Help: "a piece of a compaction's summary"},
		{Name: "session_message", Help: "a message between two sessions", Inner: true,
			Aliases: []string{"session_message_chunk"}},
	}
	for i := range all {
		all[i].Match = update(append(all[i].Aliases, all[i].Name)...)
	}
	return append(all, []language.Kind{
		{Name: "update", Help: "any session/update", Match: update()},
		{Name: "subagent", Arg: "?", Inner: true,
			Help: "what a session tells of a child: a state such as running, requires_action or idle, or a stop reason",
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				state := e.JSON().Path("params.update.state")
				return own && e.Source == transcript.Agent && acpframe.Update(e) == "subagent_update" &&
					(x.Arg == "" || state.Get("state").Is(x.Arg) || state.Get("stopReason").Is(x.Arg))
			}},
		{Name: "tool", Help: "any report of a tool call: an agent may tell of it in one or in many", Inner: true,
			Match: update("tool_call", "tool_call_update")},
		{Name: "content", Help: "any update that belongs to a turn: text, thought, tool call, plan", Inner: true,
			Match: update("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update",
				"plan")},
		{Name: "permission", Help: "a session/request_permission", Aliases: []string{"session/request_permission"},
			Inner: true, Opens: true, Answered: true, Match: asks("session/request_permission")},
		{Name: "answer", Arg: "?", Help: "the editor's answer to a permission: an option kind, cancelled, or error",
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				return own && e.Source == transcript.Editor && e.Kind == transcript.Response &&
					e.Method == "session/request_permission" &&
					(x.Arg == "" || answered(e) == x.Arg)
			}},
		{Name: "elicitation", Help: "an elicitation/create", Aliases: []string{"elicitation/create"}, Inner: true,
			Opens: true,
			Match: asks("elicitation/create")},
		{Name: "terminal", Arg: "EVENT", Help: "started, output, exit or released: what happened to a terminal",
			Of: "a terminal", Events: []string{"started", "output", "exit", "released"},
			Match: func(x language.Bound, e transcript.Entry, _ bool) bool {
				return e.Source == transcript.Terminal && e.Kind == map[string]transcript.Kind{"started": transcript.TermStarted,
					"output": transcript.TermOutput, "exit": transcript.TermExit, "released": transcript.TermReleased}[x.Arg]
			}},
	}...)
}

// update matches the session updates of some kinds, all if none is named.
func update(names ...string) match {
	return func(_ language.Bound, e transcript.Entry, own bool) bool {
		u := acpframe.Update(e)
		return own && e.Source == transcript.Agent && u != "" && (len(names) == 0 || slices.Contains(names, u))
	}
}

// asks matches the requests of a method.
func asks(method string) match {
	return func(_ language.Bound, e transcript.Entry, own bool) bool {
		return own && e.Source == transcript.Agent && e.Kind == transcript.Request && e.Method == method
	}
}

// answered is what the editor answered to a permission: the id of the option,
// cancelled, or error.
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
