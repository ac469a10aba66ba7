package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/transcript"
)

// version has all differences between protocol versions that matter to the rules: the names of methods and members,
// and the messages that begin and end a turn.
type version struct {
	number  int
	schema  *schema.Version
	editor  map[string]verb // verbs of the editor's requests, by method
	agent   map[string]verb // verbs of the agent's requests, by method
	updates map[string]topic
	// optional lists the editor's requests that need a capability of the agent, each with the id of its requirement.
	// The id is "" if one requirement covers several requests.
	optional []optional
	// Names of members of initialize, of its result, of a login method and of a config option.
	clientCaps, agentCaps, loginID, optionID string
	// Capabilities for additional folders of a session, for a system prompt, and for logins in a terminal.
	folders, instructions, terminalLogin string
	// call is the path of the tool call in a permission request.
	call string
	// states says that a session reports its work by state updates. The response to a prompt then does not end the
	// turn.
	states bool
}

// optional is a request that needs a capability.
type optional struct {
	verb        verb
	requirement string
}

// editorVerbs adds the editor's requests whose names are the same in both versions to more, and returns more.
func editorVerbs(more map[string]verb) map[string]verb {
	for name, v := range map[string]verb{"initialize": initialize, "session/new": newSession,
		"session/resume": resumeSession, "session/fork": forkSession, "session/list": listSessions,
		"session/close": closeSession, "session/delete": deleteSession, "session/prompt": prompt,
		"session/set_config_option": setOption} {
		more[name] = v
	}
	return more
}

func version1() *version {
	return &version{
		number: 1, schema: schema.V1(),
		editor: editorVerbs(map[string]verb{"authenticate": authenticate, "logout": logout, "session/load": loadSession,
			"session/set_mode": setMode}),
		agent: map[string]verb{"session/request_permission": permission, "fs/read_text_file": readFile,
			"fs/write_text_file": writeFile, "terminal/create": createTerminal, "terminal/output": terminalOutput,
			"terminal/wait_for_exit": waitForExit, "terminal/kill": killTerminal, "terminal/release": releaseTerminal,
			"elicitation/create": elicit},
		updates: map[string]topic{"user_message_chunk": userChunk, "agent_message_chunk": agentChunk,
			"agent_thought_chunk": thoughtChunk, "tool_call": toolCall, "tool_call_update": toolUpdate, "plan": planUpdate,
			"available_commands_update": commandsUpdate, "current_mode_update": modeUpdate,
			"config_option_update": optionsUpdate, "session_info_update": infoUpdate, "usage_update": usageUpdate,
			"notice": noticeUpdate, "compaction_update": compactionUpdate, "compaction_summary_chunk": compactionUpdate,
			"subagent_update": subagentUpdate, "session_message": sessionMessage, "session_message_chunk": sessionMessage},
		optional: []optional{{loadSession, "LOAD-001"}, {resumeSession, "RESUME-001"}, {listSessions, "LIST-001"},
			{closeSession, "CLOSE-001"}, {deleteSession, "DELETE-001"}, {logout, "AUTH-010"}},
		clientCaps: "clientCapabilities", agentCaps: "agentCapabilities", loginID: "id", optionID: "id",
		folders:       "agentCapabilities.sessionCapabilities.additionalDirectories",
		instructions:  "agentCapabilities.sessionCapabilities.systemPrompt",
		terminalLogin: "clientCapabilities.auth.terminal", call: "toolCall",
	}
}

func version2() *version {
	return &version{
		number: 2, schema: schema.V2(),
		editor: editorVerbs(map[string]verb{"auth/login": authenticate, "auth/logout": logout,
			"tool_call/cancel": cancelCall, "terminal/cancel": cancelTerminal}),
		agent: map[string]verb{"session/request_permission": permission, "elicitation/create": elicit},
		updates: map[string]topic{"user_message": userChunk, "user_message_chunk": userChunk, "agent_message": agentChunk,
			"agent_message_chunk": agentChunk, "agent_thought": thoughtChunk, "agent_thought_chunk": thoughtChunk,
			"tool_call_update": toolUpdate, "tool_call_content_chunk": toolPiece, "plan_update": planUpdate,
			"terminal_update": terminalUpdate, "terminal_output_chunk": terminalPiece, "state_update": stateUpdate,
			"config_option_update": optionsUpdate, "available_commands_update": commandsUpdate,
			"notice": noticeUpdate, "compaction_update": compactionUpdate, "compaction_summary_chunk": compactionUpdate,
			"subagent_update": subagentUpdate, "session_message": sessionMessage, "session_message_chunk": sessionMessage,
			"usage_update": usageUpdate, "replay_complete": replayDone},
		optional:   []optional{{resumeSession, ""}, {listSessions, ""}, {closeSession, ""}, {deleteSession, "DELETE-001"}},
		clientCaps: "capabilities", agentCaps: "capabilities", loginID: "methodId", optionID: "configId",
		folders:       "capabilities.session.additionalDirectories",
		instructions:  "capabilities.session.systemPrompt",
		terminalLogin: "capabilities.auth.terminal", call: "subject.toolCall", states: true,
	}
}

// verbOf returns the verb of a request from the given side.
func (v *version) verbOf(from transcript.Source, method string) verb {
	known, other := v.agent, otherOfAgent
	if from == transcript.Editor {
		known, other = v.editor, otherOfEditor
	}
	if verb, ok := known[method]; ok {
		return verb
	}
	return other
}

func (v *version) updateTopic(tag []byte) topic {
	if t, ok := v.updates[string(tag)]; ok {
		return t
	}
	return otherUpdate
}

// gate returns the capability that a request needs, or "".
func (v *version) gate(method string) string {
	m, _ := v.schema.Method(method)
	return m.Gate
}

// gates returns the capability that each variant of a schema type needs, by the tag of the variant. The capability is
// "" if the variant needs none.
func (v *version) gates(typeName string) map[string]string {
	all := map[string]string{}
	for _, form := range v.schema.Variants(typeName) {
		all[form.Tag] = form.Gate
	}
	return all
}

// capability returns the path of a capability without its first part, which depends on the side that advertises it.
func capability(path string) string {
	_, path, _ = strings.Cut(path, ".")
	return path
}
