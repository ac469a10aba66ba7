package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// topic is the kind of an entry. A rule registers for topics and gets only the entries of these topics.
type topic uint8

// Topics of entries that are neither requests nor answers.
const (
	nothing topic = iota

	agentNoise  // a line of the agent that is not a message
	editorNoise // a line of the editor that is not a message

	// Kinds of session/update.
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
	stateUpdate    // state of the session
	toolPiece      // a piece of the content of a tool call
	terminalUpdate // a terminal of the agent
	terminalPiece  // a piece of the output of such a terminal
	noticeUpdate
	compactionUpdate // a compaction, or a piece of its summary
	subagentUpdate   // a child session
	sessionMessage   // a message between sessions
	replayDone       // the end of a replay
	otherUpdate

	cancelTold        // session/cancel
	editorTakesBack   // $/cancel_request of the editor
	editorOtherTold   // any other notification of the editor
	agentTakesBack    // $/cancel_request of the agent
	elicitationDone   // elicitation/complete
	agentOtherTold    // any other notification of the agent
	agentAnswersNone  // a response of the agent that answers no request
	editorAnswersNone // a response of the editor that answers no request

	writeEnded
	processEvent
	modelEvent
	terminalEvent
	servedEvent    // an event of an MCP server that the harness runs
	workspaceEvent // files in the workspace at first, or files that a turn changed

	firstAsked
)

// verb is a kind of request. The editor sends the verbs up to otherOfEditor, the agent sends the later ones.
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
	cancelCall
	cancelTerminal
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

// asked returns the topic of a request, and answered the topic of the response to that request.
func asked(v verb) topic    { return firstAsked + topic(v) }
func answered(v verb) topic { return firstAsked + topic(verbs) + topic(v) }

// The functions below return groups of topics that many rules share.
func contentUpdates() []topic {
	return []topic{userChunk, agentChunk, thoughtChunk, toolCall, toolUpdate, planUpdate}
}

func allUpdates() []topic {
	return append(contentUpdates(), commandsUpdate, modeUpdate, optionsUpdate, infoUpdate, usageUpdate, stateUpdate,
		toolPiece, terminalUpdate, terminalPiece, noticeUpdate, compactionUpdate, subagentUpdate, sessionMessage, replayDone,
		otherUpdate)
}

func span(from, to verb, of func(verb) topic) []topic {
	var all []topic
	for v := from; v <= to; v++ {
		all = append(all, of(v))
	}
	return all
}

// setUps returns the topics of the requests that set up a session, or of their answers. messages returns the topics of
// messages and thoughts. listings returns the topics of messages with config options.
func setUps(of func(verb) topic) []topic { return span(newSession, forkSession, of) }
func messages() []topic                  { return []topic{userChunk, agentChunk, thoughtChunk} }
func listings() []topic                  { return append(setUps(answered), optionsUpdate, answered(setOption)) }

func editorRequests() []topic { return span(initialize, otherOfEditor, asked) }
func agentAnswers() []topic   { return span(initialize, otherOfEditor, answered) }
func agentRequests() []topic  { return span(permission, otherOfAgent, asked) }
func editorAnswers() []topic  { return span(permission, otherOfAgent, answered) }
func terminalUses() []topic   { return span(terminalOutput, releaseTerminal, asked) }

// agentCalls returns the topics of the agent's requests, notifications and updates.
func agentCalls() []topic { return append(append(allUpdates(), agentOtherTold), agentRequests()...) }

// agentMessages returns the topics of all well-formed frames of the agent.
func agentMessages() []topic {
	return append(append(agentCalls(), agentTakesBack, elicitationDone, agentAnswersNone), agentAnswers()...)
}

func isMessage(t topic) bool { return userChunk <= t && t <= thoughtChunk }
func isContent(t topic) bool { return userChunk <= t && t <= planUpdate }
func isUpdate(t topic) bool  { return userChunk <= t && t <= otherUpdate }

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

// event is one entry together with the part of the world's state that belongs to it, from before the entry.
type event struct {
	transcript.Entry
	topic   topic
	verb    verb
	conn    *conn
	session *session
	// request is the open request that a response answers, or nil.
	request *request
	// turn is the turn that a response to a prompt ends. For other entries it is the open turn, or nil.
	turn  *turn
	tool  *tool
	body  wire.Value
	frame wire.Frame
	// params, result and err are the parts of a frame; update is the update
	// of a session/update.
	params, result, err, update wire.Value
	options                     []option // config options in the frame
	hasOptions                  bool
	modes                       *modeState
	stop                        string
	problems                    []schema.Problem
	model                       *modelAsked
}

// modelAsked caches the content of a model request, because several rules read it.
type modelAsked struct {
	fakellm.Asked
	ok bool
}

// askedOfModel returns the contents of a model request. ok is false if the request expects no answer or cannot be read.
func (ev *event) askedOfModel() (fakellm.Asked, bool) {
	if ev.model == nil {
		a, ok := fakellm.ReadAsked(ev.Entry)
		ev.model = &modelAsked{a, ok}
	}
	return ev.model.Asked, ev.model.ok
}

// tag returns the kind of a session/update exactly as the agent sent it.
func (ev *event) tag() string { return ev.update.Get("sessionUpdate").Str() }

// text returns the text of a message, a thought or a chunk of them. It returns "" if the update has no text.
func (ev *event) text() string {
	content := ev.update.Get("content")
	if content.Kind() != wire.Array {
		return content.Get("text").Str()
	}
	text := ""
	for block := range content.Items() {
		text += block.Get("text").Str()
	}
	return text
}

// wholeMessage reports whether an update has a whole message instead of a chunk. Only version 2 has such updates.
func (ev *event) wholeMessage() bool {
	return isMessage(ev.topic) && !strings.HasSuffix(ev.tag(), "_chunk")
}

// succeeded reports whether a response has a result.
func (ev *event) succeeded() bool { return ev.result.Exists() }

// code returns the code of an error response, or 0 if the entry is not an error.
func (ev *event) code() int64 {
	n, _ := ev.err.Get("code").Int()
	return n
}
