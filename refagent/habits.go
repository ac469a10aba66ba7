package refagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Habits are the ways in which one correct agent differs from another. The zero
// value is this agent as it is; each field alone, and all of them together, leave
// it correct. Package liberties names them.
type Habits struct {
	// Changes are what happens to messages, under one lock: to those of the agent behind the
	// hooks in this order, to those of the editor before the hooks in the other order.
	Changes []Change `json:"-"`
	// Spell writes a message in another way, as the same JSON on one line; nil: as it is.
	Spell func(frame []byte) []byte `json:"-"`
	// RequestIDs are the ids of the agent's requests; nil: 1, 2, 3.
	RequestIDs *RequestIDs

	// FormerTexts shows the model of earlier turns the texts alone, without tool calls.
	FormerTexts bool
	// Without are the capabilities that are not there: load, list, resume, close,
	// delete, directories, image, audio, embedded, http.
	Without []string
	// Logins are the ids of the authentication methods on offer. LoginFirst wants
	// one of them before a session is made.
	Logins     []string
	LoginFirst bool
	// Unadvertised leaves capabilities out that are not there, instead of saying
	// false.
	Unadvertised bool

	// Modes are the modes that a session has, in this order; nil: all.
	// NoModes leaves a session without modes and without their option.
	Modes   []string
	NoModes bool
	// ModesOnly and OptionsOnly leave one of the two forms of modes out.
	ModesOnly, OptionsOnly bool
	// Settings are options beside those of the reference agent.
	Settings []Setting
	// GroupedOptions puts the values of selects into groups.
	GroupedOptions bool

	// Asks are the patterns of tools that need permission; nil: those of the
	// reference agent. An empty one is no tool at all.
	Asks []string
	// AskOrder is how permissions of one reply are asked: "first" asks for all
	// calls before it runs one of them, "together" asks for all at the same time,
	// "reversed" from the last to the first. "": each before its call.
	AskOrder string
	// PerFile remembers an answer for always for the file it was given for.
	PerFile bool
	// ExtraQuestion asks in each turn whether tools may be used at all.
	ExtraQuestion bool
	// RejectionEnds ends the turn when the user rejects a call.
	RejectionEnds bool
	// DismissalCancels takes the outcome cancelled of a permission for the cancel of its turn.
	DismissalCancels bool

	// Tools are the agent's own tools that it has, in this order; nil: all.
	Tools []string
	// Names are other names of tools, Arguments of their arguments.
	Names, Arguments map[string]string
	// PatchTool changes files by a patch instead of a pair of texts.
	PatchTool bool
	// KeepsFiles does not overwrite files, KeepsFolders makes no folders,
	// FinalNewline ends each file with one.
	KeepsFiles, KeepsFolders, FinalNewline bool
	// ReadLimit is the number of bytes beyond which a file is not read; 0: none. With
	// LimitIsResult the call is completed, and that is what it brings.
	ReadLimit     int
	LimitIsResult bool
	// NamesFiles tells the model the path of an embedded file that lies on the disk as it
	// is, instead of its text.
	NamesFiles bool
	// ReadsDisk and WritesDisk do not go through the editor.
	ReadsDisk, WritesDisk bool
	// Whole reads whole files always; Page, if not 0, so many lines first, and twice
	// as many each time.
	Whole bool
	Page  int
	// ReadsBefore reads a file before it is written.
	ReadsBefore bool
	// OwnShell runs commands itself. Polls asks for a terminal's output until it
	// ends, Kills ends a terminal before it is released, Direct gives the command
	// without a shell of the agent's, Later releases it beside the turn.
	OwnShell, Polls, Kills, Direct, Later bool
	// AtNew and AtPrompt are files that are read through the editor after a
	// session is set up, and at the begin of each turn; those that begin with ~
	// are in HOME.
	AtNew, AtPrompt []string

	// Whole replies instead of streams; a request beside the conversation after
	// the first turn, before each, or when a session begins; retries of 5xx.
	NoStream                     bool
	TitleByModel, Asides, WarmUp bool
	Retries                      bool
	// Parallel runs the calls of one reply at the same time.
	Parallel bool
	// ErrorsEnd makes an error of the editor the error of the prompt.
	ErrorsEnd bool

	// Queues keeps a prompt until the one before has ended.
	Queues bool
	// BusyCode, UnknownCode, ValueCode and EarlyCode are the errors of a second
	// prompt, an unknown session, an unknown mode or value, and a request before
	// initialize; 0: those of the reference agent.
	BusyCode, UnknownCode, ValueCode, EarlyCode int
	// Forgets keeps no session beyond the process.
	Forgets bool
	// ItemsFirst looks for what is to be cancelled before it looks for its session.
	ItemsFirst bool
	// Version is the one version of the protocol that is spoken; 0: both.
	Version int
	// Once refuses a second initialize.
	Once bool

	// LeavesCalls and CompletesCalls are what a cancel does to calls that run.
	LeavesCalls, CompletesCalls bool
	// DeafToRequestCancels ignores $/cancel_request.
	DeafToRequestCancels bool
	// CancelDelay, StartDelay and EndDelay are waited before a cancelled turn
	// ends, before the first line is read, and after the end of input.
	CancelDelay, StartDelay, EndDelay time.Duration
	// TakeUpDelay is waited before a prompt is worked on, or part of the conversation.
	TakeUpDelay time.Duration

	// Trims and AsSent say how a text is replayed: without white space around it,
	// or in its pieces.
	Trims, AsSent bool
	// HidesEmpty lists no session without a prompt, OldestFirst turns the order
	// around, PageSize is the length of a page; 0: ten.
	HidesEmpty, OldestFirst bool
	PageSize                int
	// Untitled gives sessions no title.
	Untitled bool

	// RealPaths resolves links in the paths of a session.
	RealPaths bool
	// LateServers connects MCP servers in the first turn, EarlyServers before a
	// session's setup is answered.
	LateServers, EarlyServers bool
	// Greeting and Notice are said at the beginning of the first turn of a session and at
	// its end; "": nothing is.
	Greeting, Notice string
	// Noise is written to Log at each message of the editor.
	Noise string
}

// Setting is a select, or without values a boolean, that a session has beside the
// reference agent's options.
type Setting struct {
	ID, Name, Category string
	Values             []string // the first is the one set at first
}

func (h *Habits) lacks(capability string) bool { return slices.Contains(h.Without, capability) }

// Change gives a message on its way, Out of the agent or In to it, what is sent instead; nil
// leaves it.
type Change struct{ Out, In func(m Message) []Message }

// RequestIDs makes From + Step*n of the n-th request an id; with a Form it is a text in that
// form of package fmt.
type RequestIDs struct {
	Form       string
	From, Step int64
}

func (r *RequestIDs) id(n int64) json.RawMessage {
	if r != nil {
		n = r.From + r.Step*n
		if r.Form != "" {
			return json.RawMessage(strconv.Quote(fmt.Sprintf(r.Form, n)))
		}
	}
	return json.RawMessage(strconv.FormatInt(n, 10))
}

// dress applies the habits that concern messages as such.
type dress struct {
	mu      sync.Mutex
	changes []Change
	spell   func(frame []byte) []byte // may be nil
}

// out passes a message of the agent through the changes and hands on what comes out.
func (d *dress) out(m Message, pass func(Message)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []Message{m}
	for _, c := range d.changes {
		list = through(list, c.Out)
	}
	for _, m := range list {
		pass(m)
	}
}

// in passes a line of the editor through the changes and returns what comes out.
func (d *dress) in(line []byte) (lines [][]byte) {
	var m Message
	if len(d.changes) > 0 {
		m = Decode(line)
	}
	if m == nil {
		return [][]byte{line}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []Message{m}
	for _, c := range slices.Backward(d.changes) { // what goes out last comes in first
		list = through(list, c.In)
	}
	for _, m := range list {
		lines = append(lines, bytes.TrimSpace(encode(m)))
	}
	return lines
}

func through(list []Message, change func(m Message) []Message) (next []Message) {
	if change == nil {
		return list
	}
	for _, m := range list {
		next = append(next, change(m)...)
	}
	return next
}
