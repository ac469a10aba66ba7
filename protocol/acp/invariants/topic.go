package invariants

import "github.com/acp-test/acp-test/transcript"

// topic is what an entry is about, fine enough that a rule hears only of what
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

func verbOf(from transcript.Source, method string) verb {
	if from == transcript.Editor {
		switch method {
		case "initialize":
			return initialize
		case "authenticate":
			return authenticate
		case "logout":
			return logout
		case "session/new":
			return newSession
		case "session/load":
			return loadSession
		case "session/resume":
			return resumeSession
		case "session/fork":
			return forkSession
		case "session/list":
			return listSessions
		case "session/close":
			return closeSession
		case "session/delete":
			return deleteSession
		case "session/prompt":
			return prompt
		case "session/set_mode":
			return setMode
		case "session/set_config_option":
			return setOption
		}
		return otherOfEditor
	}
	switch method {
	case "session/request_permission":
		return permission
	case "fs/read_text_file":
		return readFile
	case "fs/write_text_file":
		return writeFile
	case "terminal/create":
		return createTerminal
	case "terminal/output":
		return terminalOutput
	case "terminal/wait_for_exit":
		return waitForExit
	case "terminal/kill":
		return killTerminal
	case "terminal/release":
		return releaseTerminal
	case "elicitation/create":
		return elicit
	}
	return otherOfAgent
}

func updateTopic(tag []byte) topic {
	switch string(tag) {
	case "user_message_chunk":
		return userChunk
	case "agent_message_chunk":
		return agentChunk
	case "agent_thought_chunk":
		return thoughtChunk
	case "tool_call":
		return toolCall
	case "tool_call_update":
		return toolUpdate
	case "plan":
		return planUpdate
	case "available_commands_update":
		return commandsUpdate
	case "current_mode_update":
		return modeUpdate
	case "config_option_update":
		return optionsUpdate
	case "session_info_update":
		return infoUpdate
	case "usage_update":
		return usageUpdate
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
