package refagent

import (
	"bytes"
	"context"
	"os/exec"
	"sync"
	"time"

	"github.com/acp-test/acp-test/refagent/mutation"
)

// Hooks contains functions by which a fault changes the agent. Every function is optional; without any of them the
// agent is correct. The functions may be called from several goroutines. Receive runs in the loop that reads the
// input. Send runs where the message is created, sometimes while the session is locked. A Send hook that calls
// Port.Deliver must therefore do so through Port.After.
type Hooks struct {
	// Start runs once before the first line is read.
	Start func(p *Port)
	// Receive gets every line from the editor before the agent does. It passes the line on with Port.Deliver.
	Receive func(p *Port, line []byte)
	// Send gets every message from the agent before it is written. It passes the message on with Port.Emit.
	Send func(p *Port, f Frame)
	// End runs after the input and all turns have ended, before Run returns. The agent stays alive while End blocks.
	// ctx ends when the context of Run does.
	End func(ctx context.Context)

	// Cwd changes the working directory of a session.
	Cwd func(cwd string) string
	// Relative changes the directory against which relative paths from the model are resolved.
	Relative func(cwd string) string
	// TurnStart runs at the start of a turn, before its first model request.
	TurnStart func(ctx context.Context, session string)
	// Busy decides whether a prompt is rejected because another prompt is running. busy is the correct decision.
	Busy func(session string, busy bool) bool
	// Stop changes how a turn ends: the stop reason, or the error.
	Stop func(session, reason string, err error) (string, error)

	// LoggedIn changes how LogIn ends.
	LoggedIn func(err error) error

	// Mode changes the mode by which the agent decides whether a tool call needs permission.
	Mode func(session, mode string) string
	// Command may change a command that the agent is about to start itself.
	Command func(*exec.Cmd)

	// Server may change the command of an MCP server over stdio.
	Server func(*exec.Cmd)
	// Reach changes the transport over which the agent reaches an MCP server at a URL: http or sse.
	Reach func(transport string) string
	// Offer returns the names of the MCP tools that a turn offers to the model, out
	// of all their names.
	Offer func(session string, names []string) []string
	// Serve may change a call of an MCP tool. It returns the text of the result.
	Serve func(ctx context.Context, call func(context.Context) (string, error)) (string, error)
	// Unlisted makes the agent connect to MCP servers without asking for their
	// tools.
	Unlisted bool

	// Request may change the messages of a model request.
	Request func(session string, messages []ModelMessage) []ModelMessage
	// Persist may change a line of the session's log before it is stored; nil drops the line.
	Persist func(session string, line []byte) []byte
	// Restore may change the lines read from a session's log.
	Restore func(session string, lines [][]byte) [][]byte
	// Keep makes session/delete keep the session's log.
	Keep bool
	// Anew makes the agent write files itself instead of through the editor, each as a new file that replaces the old
	// one.
	Anew bool
}

// ClientCapabilities contains the editor's capabilities that the agent uses.
type ClientCapabilities struct {
	ReadTextFile, WriteTextFile, Terminal, BooleanOptions bool

	ElicitForm, ElicitURL, Subagents, Notices, Compaction, TerminalLogin bool
}

// Message is a decoded JSON-RPC message. Its numbers are of type json.Number.
type Message = mutation.Message

// Frame is a message on its way to the editor.
type Frame struct {
	Message Message
	Method  string // in a response: the method of the answered request
	Session string // "" if it concerns no session
}

// IsResponse reports whether the frame answers a request of the editor.
func (f Frame) IsResponse() bool { _, ok := f.Message["method"]; return !ok }

// Update returns the update of a session/update and its tag, or nil and "".
func (f Frame) Update() (update object, tag string) { return f.Message.Update() }

// Port gives a hook access to both directions of the connection.
type Port struct {
	// Emit writes a message to the editor without calling the Send hook.
	Emit func(m Message)
	// Deliver passes a line to the agent as if the editor had sent it.
	Deliver func(line []byte)
	// Exit ends the agent at once, as a crash would. Only frames that are already queued are written. Run returns an
	// error.
	Exit func()

	out *outbox
	ctx context.Context

	mu    sync.Mutex
	ended bool // guarded by mu: After no longer runs functions
	tasks sync.WaitGroup
}

// Write writes bytes to the output without changing them.
func (p *Port) Write(raw []byte) { p.out.put(bytes.Clone(raw)) }

// Queued returns the number of queued bytes that the editor has not read yet.
func (p *Port) Queued() int {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.bytes
}

// After calls f in a new goroutine after the duration d. When the agent ends, it waits for f for a limited time.
func (p *Port) After(d time.Duration, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.tasks.Go(func() {
		select {
		case <-time.After(d):
			f()
		case <-p.ctx.Done():
		}
	})
}

// finish waits for the functions passed to After.
func (p *Port) finish() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.tasks.Wait()
}

// Decode parses a line as a message. It returns nil if the line is not a message.
func Decode(line []byte) Message { return mutation.Decode(line) }
