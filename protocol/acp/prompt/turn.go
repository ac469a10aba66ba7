// Package prompt is a minimal ACP editor for a terminal. It runs turns with an agent of the user, not of a test. The
// agent may do whatever the user allows.
package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Agent is an agent that runs for a user, not for a test.
type Agent struct {
	Name string
	// Command starts the agent. Its Path is "" if the agent is already running. Terminals get the Env of Command.
	Command transport.Command
	// Reach is the connection to an agent over a network; nil means stdio.
	Reach transport.Reaching
	Start time.Duration // how long each step before the first prompt may take
}

// started starts the agent or connects to it. The log records the connection.
func (a Agent) started(ctx context.Context, log *transcript.Transcript) (*transport.Agent, error) {
	switch {
	case a.Reach == nil:
		return transport.Start(ctx, log, 0, a.Command)
	case a.Command.Path == "":
		return transport.New(log, 0, a.Reach, transport.Options{}), nil
	}
	return transport.StartServer(ctx, log, 0, a.Command, a.Reach)
}

// Options are the user's choices for a session.
type Options struct {
	Agent Agent
	// Work is the folder of the session. Resume is the id of the session to continue; "" opens a new one.
	Work, Resume string
	// MCP are the MCP servers for the agent. If the agent does not support the transport of a server, the server is
	// left out and a line says so.
	MCP []any
	// Mode is the mode to set first; Run returns an error if the agent does not offer the mode. Model is the value of
	// the option that selects the model; if this value cannot be set, a line says so. Settings are config options to
	// set, each as K=V.
	Mode     string
	Model    string
	Settings []string
	// Text is the prompt. With ListCommands, Run lists the agent's slash commands instead. With Converse, the user
	// types one prompt after another at Console.
	Text         string
	ListCommands bool
	// Attach are files, or URLs to link, for the first prompt. Typed says that the user typed Text. A typed prompt
	// also includes the files of Work that its text mentions with an @.
	Attach   []string
	Typed    bool
	Converse bool
	// Write lets the agent edit files below Work. Yolo lets the agent do anything. With Ask, the user is asked at
	// Console about everything else.
	Write, Yolo, Ask bool
	// Timeout limits the duration of a turn; 0 means no limit.
	Timeout time.Duration
	// Codes is one of Codes(). It determines the exit status.
	Codes string
	// Version is the version of this program.
	Version string
	// Log records the session.
	Log *transcript.Transcript
	// Console is where the user types; nil if the user cannot type.
	Console *Console
	Screen
}

// Client is one connection to a user's agent, with the turns on it.
type Client struct {
	options Options
	agent   Agent
	log     *transcript.Transcript
	screen  *screen
	ctx     context.Context
	abort   context.CancelCauseFunc

	editor  *mockclient.Editor
	session *mockclient.Session
	// interrupted is the exit status for the first signal, or 0 before any signal. conversing says that another turn
	// may follow.
	interrupted atomic.Int32
	conversing  atomic.Bool
	late        atomic.Bool // the turn has taken too long

	// mu is held while the client prompts, cancels, or answers a permission request: after a cancel, no answer may
	// select an option.
	mu        sync.Mutex
	turning   context.Context // ends when the turn ends or is cancelled; nil between turns
	stop      context.CancelFunc
	cancelled bool
	always    map[permit]string // kind of the option that the user chose for always

	asking sync.Mutex // one question at a time
}

var errInterrupted = errors.New("interrupted")

// New returns a client, which Run starts. The end of ctx does not stop the client; call Interrupt to cancel a turn.
func New(ctx context.Context, o Options) *Client {
	o.Screen = o.clean()
	t := &Client{options: o, agent: o.Agent, log: o.Log, always: map[permit]string{}}
	t.screen = o.Screen.watch(o.Log, o.Work, o.Ask)
	t.ctx, t.abort = context.WithCancelCause(context.WithoutCancel(ctx))
	return t
}

// Run starts the agent, runs the turns and stops the agent. It returns nil if the last turn ended well. Otherwise it
// returns a Status, or the error that prevented a turn.
func (t *Client) Run() error {
	ctx := t.ctx
	defer t.abort(nil)
	err := t.start(ctx, t.options.Resume)
	began := err == nil && !t.options.ListCommands
	var stop string
	var commands wire.Value
	switch {
	case err != nil:
	case t.options.ListCommands:
		commands, err = t.commands(ctx)
	case t.options.Converse:
		stop, err = t.converse(ctx)
	default:
		stop, err = t.turn(ctx, t.options.Text)
	}
	code := t.interrupted.Load()
	if t.editor != nil {
		err = t.explained(ctx, err)
		t.editor.Close(ctx)
	}
	if failed := t.screen.finish(ctx); failed != nil {
		return fmt.Errorf("writing to stdout: %w", failed)
	}
	if err == nil && code == 0 && t.options.ListCommands {
		return t.list(commands)
	}
	return t.verdict(int(code), began, stop, err)
}

// start starts the agent and prepares a session for prompts.
func (t *Client) start(ctx context.Context, resume string) error {
	agent, err := t.agent.started(ctx, t.log)
	if err != nil {
		return err
	}
	o := t.options
	caps := mockclient.Capabilities{
		"fs": map[string]any{"readTextFile": true, "writeTextFile": o.Write || o.Yolo || o.Ask},
		"session": map[string]any{"configOptions": map[string]any{"boolean": map[string]any{}},
			"notices": map[string]any{}},
		"subagents": map[string]any{},
	}
	if o.Yolo || o.Ask {
		caps["terminal"] = true
	}
	t.editor = mockclient.NewEditor(agent, mockclient.Options{
		Capabilities: caps,
		Info:         mockclient.Implementation{Name: "acp-test", Title: "acp-test prompt", Version: o.Version},
		Terminals:    &mockclient.Terminals{Real: true, Allow: []string{"*"}, Env: t.agent.Command.Env},
		Handlers:     map[string]func(*mockclient.Request){"session/request_permission": t.permission},
	})
	late := fmt.Errorf("nothing came in %v (--start-timeout)", t.agent.Start)
	in := func(step func(ctx context.Context) error) error {
		wait, cancel := context.WithTimeoutCause(ctx, t.agent.Start, late)
		defer cancel()
		return step(wait)
	}
	err = in(func(ctx context.Context) error {
		_, err := t.editor.Initialize(ctx)
		return err
	})
	if err != nil {
		return err
	}
	err = in(func(ctx context.Context) (err error) {
		t.session, err = t.editor.EnsureSession(ctx, resume, mockclient.SessionOptions{Cwd: o.Work, MCP: t.servers()})
		return t.loginAdvice(err)
	})
	if err != nil {
		return err
	}
	t.sayHow(resume)
	return in(t.configure)
}

// loginAdvice adds advice on how to log in to err if err is the agent's auth_required error. It returns any other
// error unchanged.
func (t *Client) loginAdvice(err error) error {
	const authRequired = -32000 // ACP v1, ErrorCode
	var rpc *mockclient.RPCError
	if !errors.As(err, &rpc) || rpc.Code != authRequired {
		return err
	}
	advice := "log in with the agent's own program first, or give it a key with --env"
	if methods := t.editor.Info().AuthMethods(); len(methods) > 0 {
		names := lists.Map(methods, func(m mockclient.AuthMethod) string {
			return OneLine(strings.TrimSpace(m.Name + " (" + m.ID + ")"))
		})
		advice += "; it offers the login methods " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%w: %s", err, advice)
}

// sayHow prints the id of the session, and how it was opened if the user wanted to resume one.
func (t *Client) sayHow(resume string) {
	if resume == "" && t.options.Output != "text" {
		return
	}
	how := map[string]string{"session/load": "loaded", "session/resume": "resumed", "session/new": "new"}[t.session.How]
	for _, err := range t.session.Tried {
		how += "; " + OneLine(err.Error())
	}
	t.screen.tell("session", OneLine(t.session.ID)+": "+how)
}

// turn sends the prompt and waits for the stop reason.
func (t *Client) turn(ctx context.Context, text string) (string, error) {
	blocks, err := t.blocks(text)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	if t.interrupted.Load() != 0 {
		t.mu.Unlock()
		return "", errInterrupted
	}
	t.cancelled = false
	t.turning, t.stop = context.WithCancel(ctx)
	over := t.stop
	turn := t.session.Prompt(ctx, blocks...)
	t.mu.Unlock()
	defer over()
	if d := t.options.Timeout; d > 0 {
		cancel := time.AfterFunc(d, func() { t.late.Store(true); t.cancel() })
		defer cancel.Stop()
		abort := time.AfterFunc(d+min(d, cancelWait), func() { t.abort(errLate) })
		defer abort.Stop()
	}
	stop, err := turn.Wait(ctx)
	if rpc, ok := errors.AsType[*mockclient.RPCError](err); ok && rpc.Data != nil {
		err = fmt.Errorf("%w: %s", err, OneLine(fmt.Sprint(rpc.Data)))
	}
	// From here on, an interrupt has no turn to cancel. If the agent does not read its input, a goroutine that holds
	// mu may be blocked until the agent is stopped.
	if ctx.Err() == nil {
		t.mu.Lock()
		t.turning = nil
		t.mu.Unlock()
	}
	return stop, err
}

// cancelWait is the maximum time that a cancelled turn may take to end.
const cancelWait = 10 * time.Second

var errLate = errors.New("acp-test cancelled the turn, but the agent did not end it")

// cancel cancels the turn. It returns false if no turn runs.
func (t *Client) cancel() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turning == nil {
		return false
	}
	t.cancelled = true
	t.stop()
	_, _ = t.session.Cancel() // an error means that the agent has exited
	return true
}

// Interrupt handles a signal. The first signal cancels the running turn. If no turn is running, and after a second
// signal, everything ends. Between the turns of a conversation, Ctrl-C has no effect. ends reports whether the second
// signal ended everything.
func (t *Client) Interrupt(s os.Signal) (ends bool) {
	code := int32(130)
	if s == syscall.SIGTERM {
		code = 143
	}
	if !t.interrupted.CompareAndSwap(0, code) {
		t.abort(errInterrupted)
		return true
	}
	go func() { // an agent that does not read its input must not delay the second signal
		switch {
		case t.cancel():
		case t.conversing.Load() && code == 130:
			t.interrupted.CompareAndSwap(code, 0)
		default:
			t.abort(errInterrupted)
		}
	}()
	return false
}

// explained adds the likely cause to an error of the connection.
func (t *Client) explained(ctx context.Context, err error) error {
	if err == nil || t.editor == nil || errors.Is(err, errInterrupted) {
		return err
	}
	if _, ok := errors.AsType[*mockclient.RPCError](err); ok {
		return err // the agent's error is clear
	}
	if errors.Is(err, syscall.EPIPE) { // the agent's exit tells more about the cause
		select {
		case <-t.editor.Agent().Exited():
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
	}
	stderr, asked, noise := "", "initialize", false // an agent that exits at once gets no request
	for e := range t.log.All() {
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			asked = e.Method
		case e.Source == transcript.Stderr:
			stderr += string(e.Raw)
			if len(stderr) > 32<<10 {
				stderr = stderr[len(stderr)-16<<10:]
			}
		case e.Source == transcript.Agent && e.Kind == transcript.Malformed:
			noise = true
		}
	}
	text := err.Error()
	if exit, gone := t.editor.Agent().Exit(); gone && !exit.Closed {
		text = ended(exit, asked)
	}
	if noise {
		text += "; it wrote lines to stdout that are not messages: is a flag such as --acp missing?"
	}
	if lines := strings.Split(strings.TrimSpace(printable.Text(stderr)), "\n"); lines[0] != "" {
		lines = lines[max(0, len(lines)-8):]
		text += "; the end of its stderr:\n  " + strings.Join(lines, "\n  ")
	}
	return errors.New(text)
}

// ended describes the end of an agent that left the request asked unanswered.
func ended(exit transport.Exit, asked string) string {
	if exit.Signal != "" {
		return fmt.Sprintf("the agent was ended by %s before it answered %s", exit.Signal, asked)
	}
	return fmt.Sprintf("the agent exited with status %d before it answered %s", exit.Code, asked)
}

// commandsWait is how long to wait for the agent's first list of commands. commandsSettle is how long to wait for a
// later list: some agents send a short list first.
const (
	commandsWait   = 5 * time.Second
	commandsSettle = time.Second
)

// commands returns the last list of commands that the agent sends after it has opened the session. If the agent sends
// none, the result is a missing value.
func (t *Client) commands(ctx context.Context) (wire.Value, error) {
	var list wire.Value
	after, patience := t.session.Request.Seq, commandsWait
	for {
		wait, cancel := context.WithTimeout(ctx, patience)
		o := t.log.Await(wait, after, mockclient.Updated("available_commands_update"))
		cancel()
		if o.Verdict != transcript.Met {
			break
		}
		after = o.Entry.Seq
		if o.Entry.Session == t.session.ID {
			list, patience = t.log.At(after).JSON().Path("params.update.availableCommands"), commandsSettle
		}
	}
	if ctx.Err() != nil {
		return list, errInterrupted
	}
	if _, gone := t.editor.Agent().Exit(); gone && !list.Exists() {
		return list, mockclient.ErrExited
	}
	return list, nil
}

// list prints the commands: names with descriptions, or only names, as Output says.
func (t *Client) list(commands wire.Value) error {
	if commands.Len() == 0 {
		t.screen.tell("commands", "the agent names no commands")
		return nil
	}
	var b strings.Builder
	for c := range commands.Items() {
		name := "/" + OneLine(c.Get("name").Str())
		switch t.options.Output {
		case "simple":
			fmt.Fprintln(&b, name)
		case "text":
			if hint := c.Path("input.hint").Str(); hint != "" {
				name += " <" + OneLine(hint) + ">"
			}
			fmt.Fprintf(&b, "%-24s %s\n", name, OneLine(c.Get("description").Str()))
		}
	}
	_, err := fmt.Fprint(t.options.Out, b.String())
	return err
}
