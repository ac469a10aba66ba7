package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// Launch starts the agent's process if none is running.
func (r *run) Launch(ctx context.Context) error {
	r.launching.Lock()
	defer r.launching.Unlock()
	if r.Agent() != nil {
		return nil
	}
	var conn int
	env, home := map[string]string{}, map[string][]byte{}
	r.change(func(s *state) {
		conn = s.conn
		maps.Copy(env, s.setup.env)
		maps.Copy(home, s.setup.home)
	})
	launch, err := r.engine.Profile.Launch(r.sandbox(env))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	maps.Copy(files, launch.Files)
	maps.Copy(files, home)
	if conn == 0 {
		if err := workspace.Write(r.box.Home, files); err != nil {
			return fmt.Errorf("preparing the agent's HOME: %w", err)
		}
		r.notePlaces(ctx, launch, env)
	}
	r.change(func(s *state) { s.launched = time.Now() })
	agent, err := r.startAgent(ctx, conn, launch)
	if err != nil {
		return err
	}
	if r.engine.Launched != nil {
		r.engine.Launched(r.scenario.ID, agent.PID())
	}
	r.client.Connect(agent, launch.Env, r.box.Root, r.engine.Isolate)
	r.change(func(s *state) { s.agent = agent })
	return r.perturb(ctx, agent)
}

// sandbox returns the directories, addresses and variables with which the agent is started. env has the variables that
// the script and the command line set.
func (r *run) sandbox(env map[string]string) agents.Sandbox {
	return agents.Sandbox{Work: r.box.Work, Home: r.box.Home, Temp: r.box.Temp, LLM: r.model.URL(), Proxy: r.proxy(),
		Self: r.engine.Self, Cwd: r.engine.Cwd, HostEnv: r.engine.Host, Env: env, Pass: r.engine.PassEnv}
}

// notePlaces logs the directories, files and variables that the agent gets when it starts.
func (r *run) notePlaces(ctx context.Context, launch agents.Launch, set map[string]string) {
	m := workspace.Manifest{Work: r.box.Work, Home: r.box.Home, Temp: r.box.Temp, Model: true, Listed: true,
		Chance: r.scenario.Golden == "off", Set: map[string]string{}}
	for name, value := range set {
		if given, ok := r.engine.Env[name]; !ok || given != value {
			m.Set[name] = value // a line of the scenario set it
		}
	}
	var cut string
	m.Files, m.Cut = workspace.List(ctx, r.files, filepath.Base(r.box.Work), workspace.Whole)
	m.HomeFiles, cut = workspace.List(ctx, r.files, filepath.Base(r.box.Home), workspace.Whole)
	m.Cut = cmp.Or(m.Cut, cut)
	for i, f := range m.HomeFiles {
		_, m.HomeFiles[i].Profile = launch.Files[f.Path]
	}
	for _, kv := range launch.Env {
		name, _, _ := strings.Cut(kv, "=")
		m.Env = append(m.Env, name)
	}
	r.t.Event(r.connection(), transcript.Note, transcript.Places, "", m)
}

// startAgent starts the agent's process, or connects to an agent that is already running.
func (r *run) startAgent(ctx context.Context, conn int, launch agents.Launch) (*transport.Agent, error) {
	switch {
	case r.engine.share != nil:
		return r.connectShared(ctx, conn), nil
	case r.engine.Connect != nil:
		return r.engine.Connect(ctx, r.t, conn, launch)
	case launch.URL != "" && r.protocol().Reach == nil:
		return nil, fmt.Errorf("reaching the agent at %s: this protocol has no network transport", launch.URL)
	case launch.URL == "" && r.protocol().Served:
		return nil, fmt.Errorf("reaching %s: its profile has no url, and an agent of %s needs one",
			r.engine.Profile.Shown(), r.protocol().Name)
	case launch.Path == "" && launch.URL != "":
		at := r.protocol().Reach(launch.URL, launch.Headers)
		return transport.New(r.t, conn, at, transport.Options{Grace: r.engine.Grace}), nil
	}
	c := r.engine.command(launch, r.box.Root)
	var err error
	if c.Isolation, err = r.isolation(launch); err != nil {
		return nil, err
	}
	if launch.URL != "" {
		return transport.StartServer(ctx, r.t, conn, c, r.protocol().Reach(launch.URL, launch.Headers))
	}
	return transport.Start(ctx, r.t, conn, c)
}

// Begin launches the agent and performs the greeting, for example initialize. If this was already done, Begin does
// nothing.
func (r *run) Begin(ctx context.Context) error {
	if r.Ready() {
		return nil
	}
	if err := r.Launch(ctx); err != nil {
		return err
	}
	return SetUp(r.client.Greet(ctx, &Branch{run: r}, nil))
}

// SetUp marks a Miss in err as a failure of implied setup, which has no line in the script. Such a Miss fails the
// scenario, even if a check is open.
func SetUp(err error) error {
	if m, ok := errors.AsType[*Miss](err); ok {
		m.setup = true
		m.Failure.Requirement, m.Failure.Statement = nil, ""
	}
	return err
}

// Ready reports whether the agent has answered the greeting, or the script has closed the agent's input.
func (r *run) Ready() bool { return stateOf(r, func(s *state) bool { return s.ready || s.ended }) }

// begun adds the time since the agent's launch to Waits.Start. It does so once per launch.
func (s *state) begun() {
	if !s.launched.IsZero() {
		s.waits.Start, s.launched = s.waits.Start+time.Since(s.launched), time.Time{}
	}
}

// Greeted records that the agent answered the greeting. It returns a Skipped error if the scenario does not apply.
func (r *run) Greeted() error {
	r.change(func(s *state) {
		s.ready = true
		s.begun()
	})
	return r.Applies()
}

// stopAgent stops the running agent and those that leaveAgent left behind. The next launch opens a new connection.
func (r *run) stopAgent(ctx context.Context) {
	defer r.since(&r.state.waits.Exit)()
	var left []*transport.Agent
	r.change(func(s *state) { left, s.left = s.left, nil })
	for _, agent := range left {
		shutdown := agent.Stop(ctx)
		r.change(func(s *state) { s.survivors = append(s.survivors, shutdown.Survivors...) })
	}
	agent := r.Agent()
	if agent == nil {
		return
	}
	shutdown := agent.Stop(ctx)
	r.change(func(s *state) {
		s.shutdown, s.survivors = shutdown, append(s.survivors, shutdown.Survivors...)
		s.keeper = cmp.Or(s.keeper, shutdown.Exit.Keeper)
		s.agent, s.ready = nil, false
		s.conn++
	})
	r.client.Disconnect()
}

// leaveAgent disconnects from the agent without stopping it. The next launch starts another agent.
func (r *run) leaveAgent() {
	r.change(func(s *state) {
		s.left = append(s.left, s.agent)
		s.agent, s.ready = nil, false
		s.conn++
	})
	r.client.Disconnect()
}

// killAgent sends SIGKILL to the agent's whole process tree and waits until the agent has exited.
func (r *run) killAgent(ctx context.Context, l *Line) error {
	agent, err := r.Alive(l)
	if err != nil {
		return err
	}
	agent.Kill()
	r.change(func(s *state) { s.killed = true })
	wait, cancel := r.StepTimeout(ctx, 0)
	defer cancel()
	select {
	case <-agent.Exited():
	case <-wait.Done():
		return context.Cause(wait)
	}
	r.Did(l)
	return nil
}

// Unsent returns the Miss of a line whose frame could not be written. err is the write error.
func (r *run) Unsent(l *Line, err error) *Miss {
	r.ExpectExit()
	o := transcript.Outcome{Verdict: transcript.Unmeetable, Reason: err.Error()}
	f := r.Failure(l, o)
	f.Expected = []string{"an agent that reads its input"}
	f.Observed = "the agent no longer reads its input"
	if errors.Is(err, transport.ErrExited) || errors.Is(err, transport.ErrStdinClosed) {
		f.Observed = "the agent is gone"
	}
	return &Miss{Failure: f, Effect: true}
}

// ExpectExit waits for the exit of an agent that no longer reads, for at most the step timeout. The exit status
// explains more than the failed write.
func (r *run) ExpectExit() {
	agent := r.Agent()
	if agent == nil {
		return
	}
	select {
	case <-agent.Exited():
	case <-time.After(r.engine.StepTimeout):
	}
}

// Failure returns a description of a failed line, which the caller completes. It has the line's position, the reason,
// the last entries, stderr and the state of the process.
func (r *run) Failure(l *Line, o transcript.Outcome) *transcript.Failure {
	r.ranOut(o)
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
		f.Observed = cmp.Or(f.Observed, "none")
	}
	if c := r.check(); c != nil && c.decl != nil {
		f.Requirement = c.decl.Requirements
		f.Statement = r.statement(c.decl)
	}
	f.Tail = r.tail(r.t.Len(), 8)
	f.Stderr = lastLines(r.stderr(4<<10), 6)
	f.Process = r.process()
	return f
}

// advise adds advice from the agent's stderr to the misses of a run. It applies only if a turn failed and the agent
// never called the model. Call it after the agent has exited, when stderr is complete.
func (r *run) advise() {
	if !r.failedUnasked() {
		return
	}
	hint := agents.Diagnose(r.stderr(16 << 10))
	for _, c := range r.state.checks {
		for _, m := range c.misses {
			m.Failure.Advice = cmp.Or(m.Failure.Advice, hint)
		}
	}
}

// failedUnasked reports whether a turn failed and the agent sent no model request during the run.
func (r *run) failedUnasked() bool {
	failed := func(e transcript.Entry) bool {
		reason, ends := r.protocol().TurnEnd(e)
		return ends && reason == "error"
	}
	return lists.Any(r.t.All(), failed) &&
		!lists.Any(r.t.All(), func(e transcript.Entry) bool { return e.Kind == transcript.ModelRequest })
}

// tail returns up to n entries before and including the entry to, one line each. It omits chunks of the model's reply
// and of stderr, because they would displace the other entries.
func (r *run) tail(to, n int) []string {
	var lines []string
	for i := to; i > 0 && len(lines) < n; i-- {
		e := r.t.At(i)
		switch e.Kind {
		case transcript.ModelChunk, transcript.Chunk, transcript.Phase, transcript.CheckOpened:
			continue
		}
		lines = append(lines, r.short(fmt.Sprintf("#%d %s", e.Seq, r.Line(e))))
	}
	slices.Reverse(lines)
	return lines
}

// short cuts a line to the width of a screen. It first replaces the run's directories and hides secrets, because a
// secret that is cut in half would not be found.
func (r *run) short(s string) string {
	s = strings.NewReplacer(r.box.Work, "$WORK", r.box.Home, "$HOME", r.box.Root, "$RUN").Replace(r.engine.clean(s))
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
	return fmt.Sprintf("#%d %s", e.Seq, r.Line(e))
}

// stderr returns the last n bytes that the agent wrote to stderr.
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

// process describes the state of the agent's process for a failure.
func (r *run) process() string {
	agent := r.Agent()
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

// Unreached returns the logged reason why an agent at a URL could not be reached. It returns "" if there is no such
// reason or the agent has no URL.
func (r *run) Unreached() (why string) {
	if r.engine.Profile.URL == "" {
		return ""
	}
	for e := range r.t.All() {
		if v := e.JSON(); e.Kind == transcript.Noted && v.Get("code").Is("read-failed") {
			why = strings.TrimPrefix(v.Get("text").Str(), "reading the agent's output: ")
		}
	}
	return why
}

// StartAdvice returns advice for the user about an agent that failed to complete initialize.
func (r *run) StartAdvice(f *transcript.Failure) string {
	if hint := agents.Diagnose(r.stderr(16 << 10)); hint != "" {
		return hint
	}
	if r.engine.Profile.URL != "" {
		return "look at the server's output above, and check --url or the profile's url: $PORT is the port that the " +
			"server gets in the variable PORT, and $PRINTED at its start is the URL that the server prints"
	}
	switch {
	case lists.Any(r.t.All(), func(e transcript.Entry) bool {
		return e.Source == transcript.Agent && e.Kind == transcript.Malformed
	}):
		return "the agent writes lines to stdout that are not messages: write them to stderr, or add the flag that " +
			"makes it speak ACP"
	case strings.HasPrefix(f.Process, "running"):
		return "run the command by hand and type {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"," +
			"\"params\":{\"protocolVersion\":1}}; if it only needs longer, raise timeouts.start in its profile or --step-timeout"
	}
	return "run the command by hand: it must speak ACP on stdin and stdout, perhaps only with a flag such as --acp"
}

// Perturbation changes the timing and splitting of the editor's traffic, but not its meaning. A scenario must have
// the same result with every Perturbation. The zero value changes nothing.
type Perturbation struct {
	// Split is the size in bytes of the pieces in which frames are written; 0 writes whole frames. A script's own
	// setting overrides it.
	Split int
	// Pace delays reads and answers.
	Pace transport.Pace
	// How describes the changes for users.
	How []string
}

// perturb applies the engine's Perturbation to the connection to an agent.
func (r *run) perturb(ctx context.Context, a *transport.Agent) error {
	p := r.engine.Perturb
	if len(p.How) == 0 {
		return nil
	}
	a.SetPace(p.Pace)
	if r.connection() == 0 {
		r.Note("perturbed: %s", strings.Join(p.How, ", "))
	}
	if p.Split == 0 {
		return nil
	}
	return a.WriteShape(ctx, transport.Shape{Split: p.Split})
}
