// Package acptest tests an ACP agent from Go. Start starts the agent and a fake model server that sends the answers
// scripted by the test. It opens a session in a fresh workspace. When the test ends, the agent and the model server
// are stopped.
package acptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// T is the part of a test framework that acptest needs: a *testing.T, a
// *testing.B, or the result of Ginkgo's GinkgoT.
type T interface {
	Helper()
	Name() string
	TempDir() string
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Options selects the agent that Start starts, and its environment. One of Command, Profile and Serve is required.
type Options struct {
	// Command is the agent's program and its arguments. The arguments and the values of Env may contain the variables
	// $LLM (the model server's base URL, without a version path), $WORK (the workspace), $HOME and $TMP; $$ stands
	// for a dollar sign.
	Command []string
	// Profile, if not nil, is used instead of Command.
	Profile *agents.Profile
	// Serve, if Command and Profile are not set, runs an agent inside this process. Serve reads the editor's frames
	// from in and writes the agent's frames to out. It returns at end of file or when ctx ends. llm is the model
	// server's base URL.
	Serve func(ctx context.Context, llm string, in io.Reader, out io.Writer) error
	// Env is added to the agent's environment: a fresh HOME, PATH, the language and the caches of package managers.
	// No other variable of this process is passed to the agent.
	Env map[string]string
	// Turns are the model's answers, one for each prompt. A non-nil Script replaces Turns. If both are unset, the
	// model's answers have no text.
	Turns  []fakellm.TurnNode
	Script *fakellm.Script
	// Files are written to the workspace before the agent starts. The map's keys are slash-separated paths, its
	// values the contents.
	Files map[string]string
	// Editor configures the mock editor that the agent talks to. The zero value rejects every permission request.
	Editor mockclient.Options
	// Patience is the timeout of each wait; 0 means 30 s.
	Patience time.Duration
	// RulesOff maps the id of each rule that is turned off to the reason.
	RulesOff map[string]string
}

// Agent is a running agent under test, with its editor, model server and workspace. A method that returns no error
// fails the test instead.
type Agent struct {
	Editor  *mockclient.Editor
	Session *mockclient.Session // the session in Dir
	Model   *fakellm.Server
	Log     *transcript.Transcript
	Dir     string // path of the workspace

	t        T
	patience time.Duration
	files    *confined.Root // opened on Dir
	before   workspace.Snapshot
}

// Start starts an agent, initializes it and opens a session. When the test ends, Start's cleanup stops the agent and
// the model server. It fails the test if the agent broke a rule of the protocol.
func Start(t T, o Options) *Agent {
	t.Helper()
	a := &Agent{t: t, patience: o.Patience}
	if a.patience <= 0 {
		a.patience = 30 * time.Second
	}
	if err := a.start(o); err != nil {
		f := transcript.Failure{Reason: fmt.Sprintf("starting the agent: %v", err), Stderr: a.stderr()}
		t.Fatalf("\n%s", f.Text(""))
	}
	return a
}

func (a *Agent) start(o Options) (err error) {
	dirs, err := workspace.MakeDirs(a.t.TempDir())
	if err != nil {
		return err
	}
	root, box := dirs.Root, agents.Sandbox{Work: dirs.Work, Home: dirs.Home, Temp: dirs.Temp}
	a.Dir = box.Work
	files := map[string][]byte{}
	for name, content := range o.Files {
		files[name] = []byte(content)
	}
	if err := workspace.Write(a.Dir, files); err != nil {
		return err
	}
	if a.files, err = confined.Open(a.Dir); err != nil {
		return err
	}
	a.t.Cleanup(func() { a.files.Close() })
	if a.before, err = workspace.Take(context.Background(), a.files, "."); err != nil {
		return err
	}
	a.Log, err = transcript.New(transcript.Header{Scenario: a.t.Name(), Protocol: "1"},
		transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		return err
	}
	a.t.Cleanup(func() { a.Log.Close() })
	checker := invariants.V1().NewChecker(rules.Config{
		Off: o.RulesOff, Start: box.Work, Roots: []string{root}, Patience: a.patience,
	})
	a.Log.Observe(checker.Observe)
	script := o.Script
	if script == nil {
		if script, err = fakellm.NewScript(o.Turns...); err != nil {
			return err
		}
	}
	if a.Model, err = fakellm.Start(fakellm.Config{Script: script, Transcript: a.Log}); err != nil {
		return err
	}
	a.t.Cleanup(func() { a.Model.Close() })
	box.LLM = a.Model.URL()
	agent, err := a.launch(o, box)
	if err != nil {
		return err
	}
	a.Editor = mockclient.NewEditor(agent, o.Editor)
	a.t.Cleanup(func() { a.finish(checker) })
	ctx, cancel := a.wait("the responses to initialize and session/new")
	defer cancel()
	if _, err := a.Editor.Initialize(ctx); err != nil {
		return err
	}
	a.Session, err = a.Editor.NewSession(ctx, mockclient.SessionOptions{Cwd: a.Dir})
	return err
}

// launch starts the agent by Serve, Profile or Command.
func (a *Agent) launch(o Options, box agents.Sandbox) (*mockclient.Agent, error) {
	if o.Serve != nil {
		return mockclient.InProcess(a.Log, 0, func(ctx context.Context, in io.Reader, out io.Writer) error {
			return o.Serve(ctx, box.LLM, in, out)
		}), nil
	}
	profile := o.Profile
	switch {
	case profile == nil && len(o.Command) == 0:
		return nil, errors.New("the options must set Command, Profile or Serve")
	case profile == nil:
		profile = agents.AdHoc(o.Command)
	}
	var err error
	if box.Self, err = os.Executable(); err != nil {
		return nil, err
	}
	if box.Cwd, err = os.Getwd(); err != nil {
		return nil, err
	}
	box.HostEnv = os.Environ()
	ctx, cancel := a.wait("the start of the agent")
	defer cancel()
	place := box
	place.Env, place.Temp = o.Env, ""
	if profile, err = profile.Prepare(ctx, agents.Preparation{Sandbox: place, Keeper: keeper()}); err != nil {
		return nil, err
	}
	c, err := profile.WithEnv(o.Env).Process(box, keeper())
	if err != nil {
		return nil, err
	}
	if c.Keeper != nil {
		c.RemoveOnExit = filepath.Dir(box.Work)
	}
	return mockclient.Start(ctx, a.Log, 0, c)
}

// finish ends the agent and reports its rule violations.
func (a *Agent) finish(checker *rules.Checker) {
	a.t.Helper()
	ctx, cancel := a.wait("the end of the agent")
	defer cancel()
	a.Editor.Close(ctx)
	for _, f := range checker.Finish(rules.End{Clean: true}) {
		if f.Class == rules.Fail && f.Side == rules.OfAgent {
			a.t.Errorf("the agent broke rule %s: %s %s", f.Rule, f.Message, f.Detail)
		}
	}
}

func (a *Agent) wait(what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), a.patience, fmt.Errorf("no %s after %v", what, a.patience))
}

// Prompt sends a prompt and returns the turn that the prompt begins, without waiting for the turn's end.
func (a *Agent) Prompt(text string) *mockclient.Turn {
	ctx, cancel := a.wait("room for the prompt")
	defer cancel()
	return a.Session.Prompt(ctx, mockclient.Text(text))
}

// Ask sends a prompt, waits for the end of its turn and returns the agent's text
// in that turn. A turn that does not end with end_turn fails the test.
func (a *Agent) Ask(text string) string {
	a.t.Helper()
	turn := a.Prompt(text)
	end := a.Await(turn.Ended("end_turn"))
	var said strings.Builder
	for e := range a.Log.Between(turn.Entry.Seq, end.Seq) {
		if e.Session == a.Session.ID && acpframe.Update(e) == "agent_message_chunk" {
			said.WriteString(e.JSON().Path("params.update.content.text").Str())
		}
	}
	return said.String()
}

// Await waits until the events since Start meet the expectation x, and returns the transcript entry that met it. The
// test fails if x can no longer be met, or is not met within Options.Patience.
func (a *Agent) Await(x transcript.Expectation) transcript.Entry {
	a.t.Helper()
	ctx, cancel := a.wait(x.Description)
	defer cancel()
	o := a.Log.Await(ctx, 0, x)
	if !o.Met() {
		a.t.Fatalf("\n%s", a.failure(x, o))
	}
	return o.Entry
}

// Check fails the test unless the events since Start meet the expectation x. It does not wait.
func (a *Agent) Check(x transcript.Expectation) {
	a.t.Helper()
	if o := a.Log.Judge(0, -1, x); !o.Met() {
		a.t.Errorf("\n%s", a.failure(x, o))
	}
}

// Release opens the named gate of the model script: the stream that waits at the gate continues.
func (a *Agent) Release(gate string) {
	a.t.Helper()
	if _, err := a.Model.Release(gate); err != nil {
		a.t.Fatalf("%v", err)
	}
}

// ReadFile returns the content of a workspace file; name is a slash-separated path.
func (a *Agent) ReadFile(name string) string {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), a.patience)
	defer cancel()
	text, err := a.files.ReadFile(ctx, filepath.FromSlash(name), confined.Limit)
	if err != nil {
		a.t.Fatalf("%v", err)
	}
	return string(text)
}

// Changed lists the changes in the workspace since Start, by path: "new file
// a.txt", "changed a.txt" or "deleted a.txt".
func (a *Agent) Changed() []string {
	a.t.Helper()
	now, err := workspace.Take(context.Background(), a.files, ".")
	if now.Cut != "" {
		err = fmt.Errorf("the workspace cannot be compared: %s", now.Cut)
	}
	if err != nil {
		a.t.Fatalf("%v", err)
	}
	list := lists.Map(a.before.Changes(now), func(c workspace.Change) string {
		return c.What + " " + filepath.ToSlash(c.Path)
	})
	return list
}

// failure returns the message for an unmet expectation.
func (a *Agent) failure(x transcript.Expectation, o transcript.Outcome) string {
	f := transcript.Failure{
		Expected: []string{x.Description}, Verdict: o.Verdict.String(), Reason: o.Reason, Stderr: a.stderr(),
	}
	if o.Cause != nil {
		f.Timer = o.Cause.Error()
	}
	for seq := a.Log.Len(); seq > 0 && len(f.Tail) < 12; seq-- {
		if e := a.Log.At(seq); e.Kind != transcript.Chunk && e.Kind != transcript.ModelChunk {
			f.Tail = append(f.Tail, fmt.Sprintf("#%d %s", e.Seq, canonical.V1().Line(e)))
		}
	}
	slices.Reverse(f.Tail)
	if exit, gone := a.Editor.Agent().Exit(); gone {
		f.Process = fmt.Sprintf("exited with status %d %s", exit.Code, exit.Signal)
	}
	return f.Text("")
}

// stderr returns the last 4 KiB of the agent's stderr.
func (a *Agent) stderr() string {
	if a.Log == nil {
		return ""
	}
	var b strings.Builder
	for e := range a.Log.All() {
		if e.Source == transcript.Stderr {
			b.Write(e.Raw)
		}
	}
	text := b.String()
	return text[max(0, len(text)-4<<10):]
}
