package refagent

import (
	"bytes"
	"context"
	"os/exec"
	"sync"
	"time"

	"github.com/acp-test/acp-test/refagent/mutation"
)

// Hooks are the places where a fault changes the agent. Every function is
// optional; without any of them the agent is correct. They may be called from
// several goroutines. Receive runs on the loop that reads input. Send runs where
// the message was made, sometimes under the session's lock, so a Send hook must
// use Port.After in order to Deliver.
type Hooks struct {
	// Start runs once before the first line is read.
	Start func(p *Port)
	// Receive gets every line of the editor before the agent, and passes it on
	// with Port.Deliver.
	Receive func(p *Port, line []byte)
	// Send gets every message of the agent before the output, and passes it on
	// with Port.Emit.
	Send func(p *Port, f Frame)
	// End runs when the input has ended and all turns are over, before Run
	// returns. Blocking it keeps the agent alive; ctx ends with Run's.
	End func(ctx context.Context)

	// Cwd changes the directory a session works in.
	Cwd func(cwd string) string
	// Relative changes the directory against which a relative path of the model
	// is resolved.
	Relative func(cwd string) string
	// TurnStart runs in the turn before its first model request.
	TurnStart func(ctx context.Context, session string)
	// Busy decides whether a prompt is refused because another prompt runs.
	Busy func(session string, busy bool) bool
	// Stop changes how a turn ends: with a stop reason or with an error.
	Stop func(session, reason string, err error) (string, error)

	// Mode changes the mode that decides whether a tool call needs permission.
	Mode func(session, mode string) string
	// Command may change a command before the agent itself starts it.
	Command func(*exec.Cmd)

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
	// Persist may change a line of the session's log, or drop it with nil.
	Persist func(session string, line []byte) []byte
	// Restore may change the lines read from a session's log.
	Restore func(session string, lines [][]byte) [][]byte
	// Keep makes session/delete leave the session's log in place.
	Keep bool
	// Anew makes the agent write files itself, each as a new file that replaces the old one.
	Anew bool
}

// ClientCapabilities are the editor's capabilities as the agent read them.
type ClientCapabilities struct {
	ReadTextFile, WriteTextFile, Terminal, BooleanOptions bool

	ElicitForm, ElicitURL, Subagents, Notices, Compaction bool
}

// Message is one JSON-RPC message, decoded; numbers are json.Number.
type Message = mutation.Message

// Frame is a message on its way to the editor.
type Frame struct {
	Message Message
	Method  string // of a response: the method of the request it answers
	Session string // "" if it concerns none
}

// IsResponse reports whether the frame answers a request of the editor.
func (f Frame) IsResponse() bool { _, ok := f.Message["method"]; return !ok }

// Update returns the update of a session/update and its tag, or nil and "".
func (f Frame) Update() (update object, tag string) { return f.Message.Update() }

// Port gives a hook access to both sides of the agent.
type Port struct {
	// Emit writes a message to the editor, past the Send hook.
	Emit func(m Message)
	// Deliver hands a line to the agent as if the editor had sent it.
	Deliver func(line []byte)
	// Exit ends the agent at once, as a crash would: it writes queued frames,
	// does nothing else, and Run returns an error.
	Exit func()

	out *outbox
	ctx context.Context

	mu    sync.Mutex
	ended bool // guarded by mu: After runs nothing any more
	tasks sync.WaitGroup
}

// Write writes bytes unchanged to the output.
func (p *Port) Write(raw []byte) { p.out.put(bytes.Clone(raw)) }

// Queued returns how many bytes the editor has not read yet.
func (p *Port) Queued() int {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.bytes
}

// After calls f in a new goroutine once d has passed. At its end, the agent
// waits a limited time for f.
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

// finish waits for the goroutines of After.
func (p *Port) finish() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.tasks.Wait()
}

// Decode reads a line as a message; nil if it is not one.
func Decode(line []byte) Message { return mutation.Decode(line) }
