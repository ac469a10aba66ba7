package invariants

import "github.com/acp-test/acp-test/transcript"

// topic is what an entry is about, fine enough that a rule is called only for what
// concerns it.
type topic uint8

// Entries that are no requests and no answers.
const (
	nothing topic = iota

	agentNoise  // a line of the agent that is no message
	editorNoise // a line of the editor that is no message

	// session/update, by kind
	userChunk
	agentChunk
	thoughtChunk
	toolCall
	toolUpdate
	planUpdate
	commandsUpdate
	modeUpdate
	optionsUpdate
	infoUpdate
	usageUpdate
	otherUpdate

	cancelTold        // session/cancel
	editorTakesBack   // $/cancel_request of the editor
	editorOtherTold   // any other notification of the editor
	agentTakesBack    // $/cancel_request of the agent
	elicitationDone   // elicitation/complete
	agentOtherTold    // any other notification of the agent
	agentAnswersNone  // a response of the agent to no request
	editorAnswersNone // a response of the editor to no request

	writeEnded
	processEvent
	modelEvent
	terminalEvent

	firstAsked
)

// verb is a request. Those before otherOfEditor are the editor's, those after
// it the agent's.
type verb uint8

const (
	initialize verb = iota
	authenticate
	logout
	newSession
	loadSession
	resumeSession
	forkSession
	listSessions
	closeSession
	deleteSession
	prompt
	setMode
	setOption
	otherOfEditor

	permission
	readFile
	writeFile
	createTerminal
	terminalOutput
	waitForExit
	killTerminal
	releaseTerminal
	elicit
	otherOfAgent

	verbs
)

const topics = int(firstAsked) + 2*int(verbs)

// asked is the topic of a request, answered that of its response.
func asked(v verb) topic    { return firstAsked + topic(v) }
func answered(v verb) topic { return firstAsked + topic(verbs) + topic(v) }

// Groups of topics that many rules share.
func contentUpdates() []topic {
	return []topic{userChunk, agentChunk, thoughtChunk, toolCall, toolUpdate, planUpdate}
}

func allUpdates() []topic {
	return append(contentUpdates(), commandsUpdate, modeUpdate, optionsUpdate, infoUpdate, usageUpdate, otherUpdate)
}

func span(from, to verb, of func(verb) topic) []topic {
	var all []topic
	for v := from; v <= to; v++ {
		all = append(all, of(v))
	}
	return all
}

func editorRequests() []topic { return span(initialize, otherOfEditor, asked) }
func agentAnswers() []topic   { return span(initialize, otherOfEditor, answered) }
func agentRequests() []topic  { return span(permission, otherOfAgent, asked) }
func editorAnswers() []topic  { return span(permission, otherOfAgent, answered) }
func terminalUses() []topic   { return span(terminalOutput, releaseTerminal, asked) }

// agentMessages are all frames of the agent that are well formed.
func agentMessages() []topic {
	all := append(allUpdates(), agentTakesBack, elicitationDone, agentOtherTold, agentAnswersNone)
	return append(append(all, agentRequests()...), agentAnswers()...)
}

func isContent(t topic) bool { return userChunk <= t && t <= planUpdate }
func isUpdate(t topic) bool  { return userChunk <= t && t <= otherUpdate }

// verbsOfEditor and verbsOfAgent are the requests of the two sides by their methods.
var verbsOfEditor = map[string]verb{
	"initialize": initialize, "authenticate": authenticate, "logout": logout, "session/new": newSession,
	"session/load": loadSession, "session/resume": resumeSession, "session/fork": forkSession,
	"session/list": listSessions, "session/close": closeSession, "session/delete": deleteSession,
	"session/prompt": prompt, "session/set_mode": setMode, "session/set_config_option": setOption,
}

var verbsOfAgent = map[string]verb{
	"session/request_permission": permission, "fs/read_text_file": readFile, "fs/write_text_file": writeFile,
	"terminal/create": createTerminal, "terminal/output": terminalOutput, "terminal/wait_for_exit": waitForExit,
	"terminal/kill": killTerminal, "terminal/release": releaseTerminal, "elicitation/create": elicit,
}

func verbOf(from transcript.Source, method string) verb {
	known, other := verbsOfAgent, otherOfAgent
	if from == transcript.Editor {
		known, other = verbsOfEditor, otherOfEditor
	}
	if v, ok := known[method]; ok {
		return v
	}
	return other
}

// updates are the kinds of session/update.
var updates = map[string]topic{
	"user_message_chunk": userChunk, "agent_message_chunk": agentChunk, "agent_thought_chunk": thoughtChunk,
	"tool_call": toolCall, "tool_call_update": toolUpdate, "plan": planUpdate,
	"available_commands_update": commandsUpdate, "current_mode_update": modeUpdate,
	"config_option_update": optionsUpdate, "session_info_update": infoUpdate, "usage_update": usageUpdate,
}

func updateTopic(tag []byte) topic {
	if t, ok := updates[string(tag)]; ok {
		return t
	}
	return otherUpdate
}

func noticeTopic(from transcript.Source, method string) topic {
	switch {
	case from == transcript.Editor && method == "session/cancel":
		return cancelTold
	case from == transcript.Editor && method == "$/cancel_request":
		return editorTakesBack
	case from == transcript.Editor:
		return editorOtherTold
	case method == "$/cancel_request":
		return agentTakesBack
	case method == "elicitation/complete":
		return elicitationDone
	}
	return agentOtherTold
}
