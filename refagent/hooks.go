package refagent

import (
	"bytes"
	"context"
	"os/exec"
	"sync"
	"time"

	"github.com/acp-test/acp-test/refagent/mutation"
)

// Hooks are the seams at which a fault changes the agent. Every function is
// optional; with all of them nil the agent is the correct one. They may be
// called from several goroutines. Receive runs on the loop that reads input
// and Send where the message was made, some of it under the session's lock:
// a Send hook that wants to Deliver does so through Port.After.
type Hooks struct {
	// Start runs once before the first line is read.
	Start func(p *Port)
	// Receive gets every line of the editor instead of the agent; it passes
	// the line on with Port.Deliver.
	Receive func(p *Port, line []byte)
	// Send gets every message of the agent instead of the output; it passes
	// it on with Port.Emit.
	Send func(p *Port, f Frame)
	// End runs when the input has ended and all turns are over, before Run
	// returns. Blocking it keeps the agent alive; ctx ends with Run's.
	End func(ctx context.Context)

	// Cwd changes the directory a session works in.
	Cwd func(cwd string) string
	// Relative changes the directory that a relative path of the model belongs to.
	Relative func(cwd string) string
	// TurnStart runs in the turn before its first model request.
	TurnStart func(ctx context.Context, session string)
	// Busy decides whether a prompt is refused because another one runs.
	Busy func(session string, busy bool) bool
	// Stop changes how a turn ends: with a stop reason or with an error.
	Stop func(session, reason string, err error) (string, error)

	// Mode changes the mode a tool call is judged by.
	Mode func(session, mode string) string
	// Command may change a command before the agent itself starts it.
	Command func(*exec.Cmd)

	// Request may change the messages of a model request.
	Request func(session string, messages []ModelMessage) []ModelMessage
	// Persist may change a line of the session's log, or drop it with nil.
	Persist func(session string, line []byte) []byte
	// Restore may change the lines read from a session's log.
	Restore func(session string, lines [][]byte) [][]byte
	// Keep makes deletion leave the session's log where it is.
	Keep bool
	// Anew makes the agent itself put a new file in the place of one that it writes.
	Anew bool
}

// ClientCapabilities is what the agent understood of the editor's abilities.
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

// IsResponse tells whether the frame answers a request of the editor.
func (f Frame) IsResponse() bool { _, ok := f.Message["method"]; return !ok }

// Update returns the update of a session/update and its tag, or nil and "".
func (f Frame) Update() (update object, tag string) { return f.Message.Update() }

// Port is a hook's way to both sides of the agent.
type Port struct {
	// Emit writes a message to the editor, past the Send hook.
	Emit func(m Message)
	// Deliver hands a line to the agent as if the editor had sent it.
	Deliver func(line []byte)
	// Exit ends the agent at once, as a crash would: what is queued is written,
	// nothing else happens, and Run returns an error.
	Exit func()

	out *outbox
	ctx context.Context

	mu    sync.Mutex
	ended bool // guarded by mu: After runs nothing any more
	tasks sync.WaitGroup
}

// Write puts bytes on the output exactly as they are.
func (p *Port) Write(raw []byte) { p.out.put(bytes.Clone(raw)) }

// Queued is how many bytes wait for the editor to read.
func (p *Port) Queued() int {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.bytes
}

// After runs f on a goroutine of its own once d has passed. The agent's end
// waits for it, but not for long.
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

// finish waits for what After has started.
func (p *Port) finish() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.tasks.Wait()
}

// Decode reads a line as a message; nil if it is none.
func Decode(line []byte) Message { return mutation.Decode(line) }
