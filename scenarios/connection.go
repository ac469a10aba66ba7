package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// launchAgent starts the agent's process, unless one runs.
func (r *run) launchAgent(ctx context.Context) error {
	r.launching.Lock()
	defer r.launching.Unlock()
	if r.running() != nil {
		return nil
	}
	var conn int
	env, home := map[string]string{}, map[string][]byte{}
	r.change(func(s *state) {
		conn = s.conn
		maps.Copy(env, s.setup.env)
		maps.Copy(home, s.setup.home)
	})
	launch, err := r.engine.Profile.Launch(agents.Sandbox{
		Work: r.box.work, Home: r.box.home, Temp: r.box.temp, LLM: r.model.URL(), Proxy: r.proxy(), Self: r.engine.Self,
		Cwd: r.engine.Cwd, HostEnv: r.engine.Host, Env: env, Pass: r.engine.PassEnv,
	})
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	maps.Copy(files, launch.Files)
	maps.Copy(files, home)
	if conn == 0 {
		if err := writeFiles(r.box.home, files); err != nil {
			return fmt.Errorf("preparing the agent's HOME: %w", err)
		}
	}
	agent, err := r.startAgent(ctx, conn, launch)
	if err != nil {
		return err
	}
	r.engine.launched(r, agent)
	r.change(func(s *state) {
		s.setup.terminals.Env = launch.Env
		s.agent, s.editor = agent, mockclient.NewEditor(agent, mockclient.Options{
			Capabilities: s.client, Policy: s.setup.permissions(), Files: &s.setup.files, IDs: s.setup.ids, Hold: s.setup.hold,
			Terminals: &s.setup.terminals, Elicitation: &mockclient.Elicitation{Rules: s.setup.elicits},
		})
	})
	return r.perturb(ctx, agent)
}

// startAgent starts the agent's process, or reaches an agent that has none here.
func (r *run) startAgent(ctx context.Context, conn int, launch agents.Launch) (*mockclient.Agent, error) {
	if launch.URL != "" {
		if r.engine.Connect == nil {
			return nil, fmt.Errorf("reaching the agent at %s: there is no transport for that", launch.URL)
		}
		return r.engine.Connect(ctx, r.t, conn, launch.URL)
	}
	c := mockclient.Command{
		Path: launch.Path, Args: append(slices.Clone(launch.Args), r.engine.ExtraArgs...), Env: launch.Env, Dir: launch.Dir,
		RunID: filepath.Base(r.box.root), Grace: r.engine.Grace,
	}
	if c.Keeper = r.engine.keeper(); c.Keeper != nil {
		c.RemoveOnExit = r.box.root
	}
	var err error
	if c.Isolation, err = r.isolation(); err != nil {
		return nil, err
	}
	return mockclient.Start(ctx, r.t, conn, c)
}

// begin makes sure that the agent runs and is initialized.
func (r *run) begin(ctx context.Context) error {
	if r.isReady() {
		return nil
	}
	if err := r.launchAgent(ctx); err != nil {
		return err
	}
	b := &branch{run: r}
	return b.initialize(ctx, implied("initialize"), json.RawMessage("1"))
}

// beginFor is begin, but for acts that themselves are the start.
func (r *run) beginFor(ctx context.Context, method string) error {
	if method == "initialize" || r.hasEnded() {
		return r.launchAgent(ctx)
	}
	return r.begin(ctx)
}

func (r *run) isReady() (ready bool) {
	r.change(func(s *state) { ready = s.ready || s.ended })
	return ready
}

// initialized reports whether the agent has said what it can.
func (r *run) initialized() bool { return r.greeting().Exists() }

// greeting returns the result of initialize; it does not exist before that.
func (r *run) greeting() (v wire.Value) {
	r.change(func(s *state) { v, _ = wire.Parse(s.init) })
	return v
}

// stopAgent ends the agent that runs; the next launch is another connection.
func (r *run) stopAgent(ctx context.Context) {
	agent := r.running()
	if agent == nil {
		return
	}
	shutdown := agent.Stop(ctx)
	r.change(func(s *state) {
		s.shutdown, s.survivors = shutdown, append(s.survivors, shutdown.Survivors...)
		s.agent, s.editor, s.ready = nil, nil, false
		s.conn++
	})
}

// killAgent ends the whole tree with SIGKILL and waits for its end.
func (r *run) killAgent(ctx context.Context, l *line) error {
	agent, _, err := r.live(l)
	if err != nil {
		return err
	}
	agent.Kill()
	r.change(func(s *state) { s.killed = true })
	wait, cancel := r.stepTimeout(ctx, 0)
	defer cancel()
	select {
	case <-agent.Exited():
	case <-wait.Done():
		return context.Cause(wait)
	}
	r.did(l)
	return nil
}

// patience is the context for the answer to a request: agents take longer to
// start than to do anything else.
func (r *run) patience(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	d := r.engine.Profile.Timeouts.Start
	if !slices.Contains([]string{"initialize", "session/new", "session/load"}, method) || d <= r.engine.StepTimeout || r.engine.Debug {
		return r.stepTimeout(ctx, 0)
	}
	return context.WithTimeoutCause(ctx, d, &timerError{"start timeout", d})
}

// capability is a value below agentCapabilities.
func (r *run) capability(path string) wire.Value {
	return r.greeting().Get("agentCapabilities").Path(path)
}

// opening returns the answer to the latest session/new.
func (r *run) opening() (e transcript.Entry) {
	r.change(func(s *state) { e = s.setup.session })
	return e
}

// advertised reports whether the agent has a capability.
func (r *run) advertised(c string) bool {
	switch c {
	case "modes", "configOptions":
		return r.opening().JSON().Path("result." + c).Exists()
	case "authMethods":
		return r.greeting().Get("authMethods").Len() > 0
	}
	return on(r.capability(c))
}

// unsent is the miss of an act whose frame could not be written.
func (r *run) unsent(l *line, err error) error {
	r.expectExit()
	o := transcript.Outcome{Verdict: transcript.Unmeetable, Reason: err.Error()}
	f := r.failure(l, o)
	f.Expected = []string{"an agent that reads its input"}
	f.Observed = "the agent takes no input any more"
	if errors.Is(err, mockclient.ErrExited) || errors.Is(err, mockclient.ErrStdinClosed) {
		f.Observed = "the agent is gone"
	}
	return &miss{failure: f, effect: true}
}

// expectExit waits for the end of an agent that takes no input any more: it is
// most likely on its way out, and how it ends explains more. One that stays all
// the same is told by the step timeout.
func (r *run) expectExit() {
	agent := r.running()
	if agent == nil {
		return
	}
	select {
	case <-agent.Exited():
	case <-time.After(r.engine.StepTimeout):
	}
}

// failure begins a failure at a line: where, why, the last entries, stderr and
// the process.
func (r *run) failure(l *line, o transcript.Outcome) *transcript.Failure {
	f := &transcript.Failure{Reason: o.Reason}
	if l.Number > 0 {
		f.Where = fmt.Sprintf("%s:%d", r.scenario.File, l.Number)
	}
	f.Where = strings.TrimPrefix(f.Where+"  "+l.Text, "  ")
	if o.Reason != "" || o.Cause != nil {
		f.Verdict = o.Verdict.String()
	}
	if o.Cause != nil {
		f.Timer = o.Cause.Error()
		if f.Observed == "" {
			f.Observed = "nothing of the kind"
		}
	}
	if c := r.check(); c != nil && c.decl != nil {
		f.Requirement = c.decl.requirements
		f.Statement = r.statement(c.decl)
	}
	f.Tail = r.tail(r.t.Len(), 8)
	f.Stderr = lastLines(r.stderr(4<<10), 6)
	f.Process = r.process()
	return f
}

// tail is the last n entries up to one, as lines. Chunks the model sent and
// pieces of stderr would drown the rest.
func (r *run) tail(to, n int) []string {
	var lines []string
	for i := to; i > 0 && len(lines) < n; i-- {
		e := r.t.At(i)
		switch e.Kind {
		case transcript.ModelChunk, transcript.Chunk, transcript.Phase, transcript.CheckOpened:
			continue
		}
		lines = append(lines, r.short(fmt.Sprintf("#%d %s", e.Seq, r.engine.Canonical.Line(e))))
	}
	slices.Reverse(lines)
	return lines
}

// short makes a line fit a screen and hides the run's directory.
func (r *run) short(s string) string {
	s = strings.NewReplacer(r.box.work, "$WORK", r.box.home, "$HOME", r.box.root, "$RUN").Replace(s)
	const width = 140
	if runes := []rune(s); len(runes) > width {
		s = string(runes[:width]) + "…"
	}
	return s
}

func (r *run) observed(e transcript.Entry) string {
	if e.Seq == 0 {
		return ""
	}
	return fmt.Sprintf("#%d %s", e.Seq, r.engine.Canonical.Line(e))
}

// stderr is the last n bytes the agent wrote to stderr.
func (r *run) stderr(n int) string {
	var b []byte
	for e := range r.t.All() {
		if e.Source == transcript.Stderr {
			b = append(b, e.Raw...)
			if len(b) > 2*n {
				b = slices.Clone(b[len(b)-n:])
			}
		}
	}
	if len(b) > n {
		b = b[len(b)-n:]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = append([]string{"…"}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}

// process is the state of the agent, for a failure.
func (r *run) process() string {
	agent := r.running()
	if agent == nil {
		return "not running"
	}
	exit, gone := agent.Exit()
	switch {
	case !gone && !agent.HasProcess():
		return "connected"
	case !gone:
		return fmt.Sprintf("running, pid %d", agent.PID())
	case exit.Closed:
		return "its connection ended"
	case exit.Signal != "":
		return "ended by " + exit.Signal
	default:
		return fmt.Sprintf("exited with status %d", exit.Code)
	}
}

// agentAdvice is what to do about an agent that did not get through
// initialize.
func agentAdvice(f *transcript.Failure, r *run) string {
	if hint := agents.Diagnose(r.stderr(16 << 10)); hint != "" {
		return hint
	}
	noise := 0
	for e := range r.t.All() {
		if e.Source == transcript.Agent && e.Kind == transcript.Malformed {
			noise++
		}
	}
	switch {
	case noise > 0:
		return "the agent writes lines that are no messages to stdout: send them to stderr, or add the flag that makes it speak ACP"
	case strings.HasPrefix(f.Process, "running"):
		return "run the command by hand and type {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}; if it only needs longer, raise timeouts.start in its profile or --step-timeout"
	}
	return "run the command by hand: it has to speak ACP on stdin and stdout, perhaps behind a flag such as --acp"
}

func wireIDs(list []json.RawMessage) []wire.ID {
	ids := make([]wire.ID, len(list))
	for i, raw := range list {
		ids[i] = wire.ID(raw)
	}
	return ids
}

// runtime is a mistake of the scenario that shows only when it runs.
func (l *line) runtime(err error) error {
	var m *Mistake
	if errors.As(err, &m) {
		return m
	}
	var lack *lacking
	if errors.As(err, &lack) && lack.entry.Source == transcript.Agent {
		lack.line = l
		return lack
	}
	return &Mistake{File: l.p.file, Line: l.Number, Message: err.Error()}
}
