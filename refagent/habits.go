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
// value is the reference agent. With any of the fields set, alone or together,
// the agent stays correct. Package liberties names them.
type Habits struct {
	// Changes change messages, under one lock: messages of the agent after the
	// hooks in this order, messages of the editor before the hooks in reverse
	// order.
	Changes []Change `json:"-"`
	// Spell returns a message as equivalent JSON in another spelling, on one
	// line; nil changes nothing.
	Spell func(frame []byte) []byte `json:"-"`
	// RequestIDs are the ids of the agent's requests; nil: 1, 2, 3.
	RequestIDs *RequestIDs

	// FormerTexts shows the model only the texts of earlier turns, without tool
	// calls.
	FormerTexts bool
	// Without are the missing capabilities: load, list, resume, close, delete,
	// directories, image, audio, embedded, http.
	Without []string
	// Logins are the ids of the offered authentication methods. LoginFirst
	// requires a login before a session is made.
	Logins     []string
	LoginFirst bool
	// Unadvertised leaves missing capabilities out, instead of saying false.
	Unadvertised bool

	// Modes are the modes of a session, in this order; nil: all. NoModes leaves a
	// session without modes and without their option.
	Modes   []string
	NoModes bool
	// ModesOnly offers modes without their option, OptionsOnly the option without
	// modes.
	ModesOnly, OptionsOnly bool
	// Settings are options in addition to those of the reference agent.
	Settings []Setting
	// GroupedOptions puts the values of selects into groups.
	GroupedOptions bool

	// Asks are the patterns of tools that need permission; nil: those of the
	// reference agent. An empty list means no tool.
	Asks []string
	// AskOrder is the order of a reply's permission requests. "first" asks for
	// all calls before it runs one of them, "together" asks for all at the same
	// time, "reversed" from the last to the first. "" asks for each before its
	// call.
	AskOrder string
	// PerFile remembers an *_always answer only for the file it was given for.
	PerFile bool
	// ExtraQuestion asks in each turn whether the agent may use tools at all.
	ExtraQuestion bool
	// RejectionEnds ends the turn when the user rejects a call.
	RejectionEnds bool
	// DismissalCancels treats the outcome cancelled of a permission as a cancel
	// of its turn.
	DismissalCancels bool

	// Tools are the agent's own tools, in this order; nil: all.
	Tools []string
	// Names maps names of tools to other names, Arguments names of their arguments.
	Names, Arguments map[string]string
	// PatchTool changes files by a patch instead of a pair of texts.
	PatchTool bool
	// KeepsFiles does not overwrite files, KeepsFolders creates no folders,
	// FinalNewline ends each file with a newline.
	KeepsFiles, KeepsFolders, FinalNewline bool
	// ReadLimit is the size in bytes beyond which a file is not read; 0: no
	// limit. With LimitIsResult such a call is completed, with the limit as its
	// result.
	ReadLimit     int
	LimitIsResult bool
	// NamesFiles gives the model the path of an embedded file instead of its
	// text, if the file on the disk has the same text.
	NamesFiles bool
	// ReadsDisk and WritesDisk use the disk directly, not the editor.
	ReadsDisk, WritesDisk bool
	// Whole always reads whole files. Page, if not 0, is the number of lines in
	// the first read; each further read doubles it.
	Whole bool
	Page  int
	// ReadsBefore reads a file before writing it.
	ReadsBefore bool
	// OwnShell runs commands without the editor. Polls asks for a terminal's
	// output until its command ends, Kills kills a terminal before releasing it,
	// Direct passes the command without a shell, Later releases the terminal
	// while the turn goes on.
	OwnShell, Polls, Kills, Direct, Later bool
	// AtNew and AtPrompt are files that the agent reads through the editor after
	// a session is set up, and at the beginning of each turn. A leading ~ is
	// HOME.
	AtNew, AtPrompt []string

	// NoStream asks for whole replies instead of streams. TitleByModel adds a side
	// request after the first turn, Asides before each turn, WarmUp when a session
	// begins. Retries tries again after a 5xx.
	NoStream                     bool
	TitleByModel, Asides, WarmUp bool
	Retries                      bool
	// Parallel runs the calls of one reply at the same time.
	Parallel bool
	// ErrorsEnd ends the turn when the editor answers a request with an error, and
	// answers the prompt with that error.
	ErrorsEnd bool

	// Queues keeps a prompt waiting until the one before has ended.
	Queues bool
	// BusyCode, UnknownCode, ValueCode and EarlyCode are the error codes for a
	// second prompt, an unknown session, an unknown mode or value, and a request
	// before initialize; 0: those of the reference agent.
	BusyCode, UnknownCode, ValueCode, EarlyCode int
	// Forgets does not store sessions.
	Forgets bool
	// ItemsFirst looks for the item to cancel before it looks for its session.
	ItemsFirst bool
	// Version is the only version of the protocol that the agent speaks; 0: both.
	Version int
	// Once refuses a second initialize.
	Once bool

	// LeavesCalls makes a cancel leave running calls unchanged, CompletesCalls
	// makes it complete them.
	LeavesCalls, CompletesCalls bool
	// DeafToRequestCancels ignores $/cancel_request.
	DeafToRequestCancels bool
	// CancelDelay, StartDelay and EndDelay are waits before a cancelled turn
	// ends, before the first line is read, and after the end of input.
	CancelDelay, StartDelay, EndDelay time.Duration
	// TakeUpDelay is the wait before the agent starts work on a prompt or, in
	// version 2, makes it part of the conversation.
	TakeUpDelay time.Duration

	// Trims replays a text without white space around it, AsSent in its original
	// pieces.
	Trims, AsSent bool
	// HidesEmpty lists no session without a prompt, OldestFirst reverses the
	// order of the list, PageSize is the length of a page; 0: ten.
	HidesEmpty, OldestFirst bool
	PageSize                int
	// Untitled gives sessions no title.
	Untitled bool

	// RealPaths resolves links in the paths of a session.
	RealPaths bool
	// LateServers connects MCP servers in the first turn, EarlyServers before it
	// answers the request that sets up a session.
	LateServers, EarlyServers bool
	// Greeting and Notice are messages at the beginning and the end of a
	// session's first turn; "": none.
	Greeting, Notice string
	// Noise is written to Log for each message of the editor.
	Noise string
}

// Setting is an additional option of a session: a select or, without values, a
// boolean.
type Setting struct {
	ID, Name, Category string
	Values             []string // the first is the initial value
}

func (h *Habits) lacks(capability string) bool { return slices.Contains(h.Without, capability) }

// Change returns the messages to send instead of a message, nil to leave it. Out
// changes messages of the agent, In messages to the agent.
type Change struct{ Out, In func(m Message) []Message }

// RequestIDs makes From + Step*n the id of the n-th request. With a Form, the id
// is a string in that format of package fmt.
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

// dress applies the habits that change messages.
type dress struct {
	mu      sync.Mutex
	changes []Change
	spell   func(frame []byte) []byte // may be nil
}

// out applies the changes to a message of the agent and calls pass with each
// result.
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

// in applies the changes to a line of the editor and returns the resulting lines.
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
	for _, c := range slices.Backward(d.changes) { // the last change on the way out is the first on the way in
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
