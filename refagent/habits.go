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

// Habits are options in which correct agents may differ. The zero value is the behaviour of the reference agent. Any
// combination of fields may be set; the agent stays correct. Package liberties gives names to them.
type Habits struct {
	// Changes modify messages. Messages from the agent pass through Changes in this order, after the hooks. Messages
	// from the editor pass through them in reverse order, before the hooks. One lock guards all calls.
	Changes []Change `json:"-"`
	// Spell converts a message to equivalent JSON that is written differently, on one line. If nil, messages stay
	// unchanged.
	Spell func(frame []byte) []byte `json:"-"`
	// RequestIDs determines the ids of the agent's requests; nil means 1, 2, 3.
	RequestIDs *RequestIDs

	// FormerTexts sends the model only the texts of earlier turns, without their tool calls.
	FormerTexts bool
	// Without lists capabilities that the agent lacks: load, list, resume, close, delete, directories, image, audio,
	// embedded, http, sse.
	Without []string
	// Logins lists the ids of the offered authentication methods. LoginFirst requires a login before a session is
	// created.
	Logins     []string
	LoginFirst bool
	// Unadvertised omits missing capabilities instead of advertising false.
	Unadvertised bool

	// Modes lists the modes of a session, in this order; nil means all. NoModes removes the modes and the
	// configuration option for the mode.
	Modes   []string
	NoModes bool
	// ModesOnly offers the modes without the configuration option. OptionsOnly offers the option without the modes.
	ModesOnly, OptionsOnly bool
	// Settings are configuration options in addition to those of the reference agent.
	Settings []Setting
	// GroupedOptions divides the values of select options into groups.
	GroupedOptions bool

	// Asks lists patterns for the tools that need permission. nil means the tools of the reference agent; an empty
	// list means no tool.
	Asks []string
	// AskOrder determines when the agent requests permission for the calls of a model's reply. "first": for all
	// calls, before it runs any of them. "together": for all calls at the same time. "reversed": from the last call
	// to the first. "": for each call right before it runs.
	AskOrder string
	// PerFile remembers an *_always answer only for the file to which it applied.
	PerFile bool
	// ExtraQuestion asks the user in each turn whether the agent may use tools at all.
	ExtraQuestion bool
	// RejectionEnds ends the turn when the user rejects a call.
	RejectionEnds bool
	// DismissalCancels treats the outcome cancelled of a permission request as a cancel of the turn.
	DismissalCancels bool

	// Tools lists the agent's tools, in this order; nil means all.
	Tools []string
	// Names maps names of tools to other names. Arguments does the same for names of arguments.
	Names, Arguments map[string]string
	// PatchTool replaces the edit tool by one that takes a patch instead of the old and the new text.
	PatchTool bool
	// KeepsFiles never overwrites an existing file. KeepsFolders never creates folders. FinalNewline ends each file
	// with a newline.
	KeepsFiles, KeepsFolders, FinalNewline bool
	// ReadLimit is the maximum size in bytes of a file that the agent reads; 0 means no limit. Reading a larger file
	// fails. With LimitIsResult, the call completes instead, and its result mentions the limit.
	ReadLimit     int
	LimitIsResult bool
	// NamesFiles sends the model the path of an embedded file instead of its text, if the file on disk has the same
	// text.
	NamesFiles bool
	// ReadsDisk and WritesDisk access the disk directly instead of through the editor.
	ReadsDisk, WritesDisk bool
	// Whole always reads complete files. Page, if not 0, reads a file in several parts: Page is the number of lines
	// in the first, and each part has twice as many lines as the one before.
	Whole bool
	Page  int
	// ReadsBefore reads a file before writing it.
	ReadsBefore bool
	// OwnShell runs commands without the editor. Polls requests a terminal's output until the command ends. Kills
	// kills the command before releasing the terminal. Direct runs the command without a shell. Later releases the
	// terminal while the turn continues.
	OwnShell, Polls, Kills, Direct, Later bool
	// AtNew and AtPrompt list files that the agent reads through the editor: AtNew after a session is set up,
	// AtPrompt at the beginning of each turn. A leading ~ means HOME.
	AtNew, AtPrompt []string

	// NoStream requests complete replies instead of streams. The next three add a side request to the model:
	// TitleByModel after the first turn, Asides before each turn, WarmUp when a session begins. Retries repeats a
	// model request after a status 5xx.
	NoStream                     bool
	TitleByModel, Asides, WarmUp bool
	Retries                      bool
	// Parallel runs the tool calls of a reply at the same time.
	Parallel bool
	// ErrorsEnd ends the turn when the editor answers a request with an error. The prompt then gets the same error.
	ErrorsEnd bool

	// Queues makes a prompt wait until the prompt before it has ended.
	Queues bool
	// BusyCode, UnknownCode, ValueCode and EarlyCode are error codes. They apply to a second prompt, an unknown
	// session, an unknown mode or value, and a request before initialize. 0 means the code of the reference agent.
	BusyCode, UnknownCode, ValueCode, EarlyCode int
	// Forgets does not store sessions.
	Forgets bool
	// ItemsFirst checks the item to cancel before it checks the item's session.
	ItemsFirst bool
	// Version is the only protocol version that the agent supports; 0 means both.
	Version int
	// Once rejects a second initialize.
	Once bool

	// LeavesCalls leaves running tool calls unchanged after a cancel. CompletesCalls marks them as completed.
	LeavesCalls, CompletesCalls bool
	// DeafToRequestCancels ignores $/cancel_request.
	DeafToRequestCancels bool
	// CancelDelay, StartDelay and EndDelay are delays: before a cancelled turn ends, before the first line is read,
	// and after the end of input.
	CancelDelay, StartDelay, EndDelay time.Duration
	// TakeUpDelay is the delay before the agent starts work on a prompt or, in version 2, adds the prompt to the
	// conversation.
	TakeUpDelay time.Duration

	// Trims replays texts without white space around them. AsSent replays texts in the original chunks.
	Trims, AsSent bool
	// HidesEmpty omits sessions without a prompt from the list of sessions. OldestFirst reverses the list. PageSize
	// is the number of sessions on a page; 0 means ten.
	HidesEmpty, OldestFirst bool
	PageSize                int
	// Untitled gives sessions no titles.
	Untitled bool

	// RealPaths resolves links in the directories of a session.
	RealPaths bool
	// LateServers connects to MCP servers in the first turn. EarlyServers connects before responding to the request
	// that sets up the session.
	LateServers, EarlyServers bool
	// Greeting and Notice are messages at the beginning and the end of a session's first turn; "" means none.
	Greeting, Notice string
	// Noise is a text that the agent writes to Options.Log for each message from the editor; "" means none.
	Noise string
}

// Setting is an additional configuration option: a select option or, without values, a boolean option.
type Setting struct {
	ID, Name, Category string
	Values             []string // the first is the initial value
}

func (h *Habits) lacks(capability string) bool { return slices.Contains(h.Without, capability) }

// Change replaces a message by a list of messages. Out applies to messages from the agent, In to messages to the
// agent. A nil function changes nothing.
type Change struct{ Out, In func(m Message) []Message }

// RequestIDs determines the id of the n-th request: From + Step*n. If Form is set, the id is a string: the number in
// this format of package fmt.
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

// dress applies the habits that modify messages.
type dress struct {
	mu      sync.Mutex
	changes []Change
	spell   func(frame []byte) []byte // habit Spell; may be nil
}

// out applies the changes to a message from the agent and calls pass with each resulting message.
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

// in applies the changes to a line from the editor and returns the resulting lines.
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
	for _, c := range slices.Backward(d.changes) { // the last change of out is the first of in
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
