package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Engine runs scenarios against the agent of one profile. It is not changed by
// running; many scenarios may run at once. Profile and Protocol are needed, the rest has
// useful zero values.
type Engine struct {
	Profile *agents.Profile
	// Protocol is what the agent speaks. It is needed.
	Protocol *Protocol
	// Self is the path of this program: it is the keeper of agents, and the
	// reference agent. "" runs agents without a keeper.
	Self string
	// ExtraArgs are added to the agent's command line.
	ExtraArgs []string
	// Command is the command line, as the user would type it again.
	Command string
	// Tool is the name and version of this program, for headers.
	Tool string
	// Out is the directory for artifacts; "" writes none.
	Out string
	// Temp is where runs get their directories; "" is the system's place.
	Temp string
	// Cwd is where the user is, absolute; Host the environment as os.Environ
	// gives it; PassEnv the names to pass to the agent.
	Cwd     string
	Host    []string
	Env     map[string]string
	PassEnv []string

	// Golden is where goldens are; nil compares none.
	Golden *golden.Store
	// Update writes goldens instead of comparing; GoldenRequired makes a
	// missing one a failure.
	Update, GoldenRequired bool
	// Complete says that the scenarios of RunAll are a whole collection, so that
	// a golden without a scenario is stale.
	Complete bool
	// Unfiltered says that no filter left scenarios of the collection out.
	// Otherwise a known failure whose scenario is a glob is never stale: what it
	// was written for may be among those.
	Unfiltered bool
	// Known are failures that are expected, beside those of the profile.
	Known []agents.KnownFailure

	Seed        int64
	Severity    string        // a set of severities of Rules; "" is none of them
	Timeout     time.Duration // of a scenario; 0 means the profile's, else 60 s
	StepTimeout time.Duration // of a line; 0 means the profile's, else 10 s
	Grace       time.Duration // of each step of ending an agent; 0 means 2 s
	// Linger is how long a transcript stays open after the last line without
	// a frame, while the agent has nothing to do; nil means 250 ms for scenarios
	// tagged cancel, load or close, and nothing for others.
	Linger *time.Duration
	// NoFurther leaves out the turn that follows the last line of a scenario.
	NoFurther bool
	// Debug turns all timeouts off and calls Launched before initialize.
	Debug    bool
	Launched func(id string, pid int)
	// NoTrap leaves agents the network without a proxy. By default they are told
	// of one that refuses what is not on this machine, notes it, and so makes
	// findings; launchers that may have to fetch the agent are not.
	NoTrap bool
	// Connect reaches the agent as the connection conn of the run that t logs: the one
	// whose URL the launch names, or one within this process in place of the command.
	// Nil: commands are run, and an agent at a URL cannot be.
	Connect func(ctx context.Context, t *transcript.Transcript, conn int, launch agents.Launch) (*transport.Agent, error)
	// Isolate runs agents where they reach the servers of the run and nothing else,
	// see its directories and what they need to run and nothing else, and no process but
	// their own; see isolate.CheckView. It needs Self.
	Isolate bool
	// NetworkOnly is why an isolated agent is kept from the network alone, see
	// isolate.Check; "" if it is kept from more.
	NetworkOnly string
	// Readable are more files and directories that an isolated agent sees, absolute.
	Readable []string
	// Keep moves the directory of each run to Out instead of removing it.
	Keep bool
	// Step is told what each running scenario does.
	Step func(id, step string)
	// Secrets are taken out of all that a run writes and shows; nil takes none out.
	Secrets *secret.Finder
	// Redact makes what takes them out of the entries of one transcript, on their way
	// to the disk; nil changes nothing.
	Redact func() func(transcript.Entry) transcript.Entry
	// Folder is the directory Out, opened before anything of an agent ran; nil opens it.
	Folder *evidence.Folder
	// below is where in Folder the scenarios of a round are.
	below string
	// memory is how many bytes of a transcript are kept in memory; 0 means 64 MiB.
	memory int
	// Perturb is what the editor does without meaning anything by it.
	Perturb Perturbation
	// Share lets scenarios that need no process of their own run in one that others
	// ran in before. What does not pass there runs again alone, and that counts.
	Share bool
	pool  *pool   // of RunAll; nil shares nothing
	share *sharer // of one scenario; nil runs it alone
	// Slot, if set, is called when a run has nothing left to do but to listen,
	// so that another may begin; what it returns, when it has listened.
	Slot func(id string) (listened func())
}

// How long a scenario, and a line of it, may take where nobody says.
const (
	DefaultTimeout     = time.Minute
	DefaultStepTimeout = 10 * time.Second
)

func (e *Engine) step(id, step string) {
	if e.Step != nil {
		e.Step(id, e.clean(step))
	}
}

func (e *Engine) redactor() func(transcript.Entry) transcript.Entry {
	if e.Redact == nil {
		return nil
	}
	return e.Redact()
}

// known is a text without the secrets that are known by their values.
func (e *Engine) known(text string) string {
	if e.Secrets == nil {
		return text
	}
	return string(e.Secrets.Known([]byte(text), func(string) string { return secret.Mark }))
}

// clean is a text without secrets.
func (e *Engine) clean(text string) string {
	if e.Secrets == nil {
		return text
	}
	return e.Secrets.Text(text)
}

func (e *Engine) launched(r *run, a *transport.Agent) {
	if e.Launched != nil {
		e.Launched(r.scenario.ID, a.PID())
	}
}

func (e *Engine) withDefaults() *Engine {
	c := *e
	c.Protocol = e.Protocol.complete()
	c.Timeout = cmp.Or(c.Timeout, e.Profile.Timeouts.Scenario, DefaultTimeout)
	c.StepTimeout = cmp.Or(c.StepTimeout, e.Profile.Timeouts.Step, DefaultStepTimeout)
	return &c
}

// attempt runs a scenario once, in a process of its own or as share says.
func (e *Engine) attempt(ctx context.Context, s *Scenario) Result {
	began := time.Now()
	res := Result{ID: s.ID, File: s.File, Title: s.Title, Tags: s.Tags, Verdict: Pass, Started: began}
	if reason := e.inapplicable(s); reason != "" {
		res.Verdict, res.Reason = Skip, reason
		return res
	}
	r, err := e.prepare(s)
	if err != nil {
		res.Verdict, res.Reason = Error, err.Error()
		return res
	}
	r.play(ctx, &res)
	res.Duration = time.Since(began)
	if e.Secrets != nil {
		res = secret.Value(e.Secrets, res)
	}
	return res
}

// inapplicable says why the scenario cannot mean anything with this profile.
func (e *Engine) inapplicable(s *Scenario) string {
	for _, n := range s.needs {
		if n.what != "tool" {
			continue
		}
		if why := e.Profile.Lacks(n.name); why != "" {
			return why
		}
	}
	return ""
}

// prepare makes what a run needs before its first line.
func (e *Engine) prepare(s *Scenario) (_ *run, err error) {
	r := &run{engine: e, scenario: s, client: e.Protocol.Client()}
	st := &r.state
	st.names, st.picked, st.excused = map[string]transcript.Entry{}, map[string]wire.Value{}, map[int]bool{}
	st.setup = setup{env: map[string]string{}, home: map[string][]byte{}}
	maps.Copy(st.setup.env, e.Env)
	st.current = &checkState{reached: true}
	st.checks = []*checkState{st.current}
	for _, d := range s.checks {
		st.checks = append(st.checks, &checkState{decl: d})
	}
	if r.box, err = newSandbox(e.Temp); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			if r.files != nil {
				r.files.Close()
			}
			err = errors.Join(err, confined.RemoveAll(r.box.Root))
		}
	}()
	files := map[string][]byte{}
	for name, data := range s.files {
		text, err := script.ExpandText(name, string(data), keepUnknown(r.Fixed))
		if err != nil {
			return nil, err
		}
		files[name] = []byte(text)
	}
	if r.files, err = confined.Open(r.box.Root); err != nil {
		return nil, fmt.Errorf("opening the run's directory: %w", err)
	}
	if err := workspace.Write(r.box.Work, files); err != nil {
		return nil, fmt.Errorf("preparing the workspace: %w", err)
	}
	o := transcript.Options{Classifier: e.Protocol.Classifier, Memory: e.memory, Redact: e.redactor()}
	if e.Out != "" {
		if r.folder, r.below, err = e.folder(); err != nil {
			return nil, fmt.Errorf("making the directory for artifacts: %w", err)
		}
		if r.log, err = r.folder.Create(r.artifact("transcript.jsonl")); err != nil {
			return nil, fmt.Errorf("making the transcript's file: %w", err)
		}
		o.File = r.log
	}
	r.t, err = transcript.New(transcript.Header{Tool: e.Tool, Agent: e.Profile.Name, Scenario: s.ID,
		Protocol: e.Protocol.Version, Seed: e.Seed}, o)
	if err != nil {
		return nil, err
	}
	r.checker = e.Protocol.Rules.NewChecker(rules.Config{Version: 1, Severity: e.Severity, Off: s.decl.rulesOff,
		Start: r.box.Work, Roots: []string{r.box.Root}, Patience: e.StepTimeout})
	r.t.Observe(r.checker.Observe)
	r.t.Observe(r.measure)
	observe, told := e.Protocol.Stories()
	r.t.Observe(observe)
	r.told = told
	if err := r.serveModel(); err != nil {
		return nil, errors.Join(err, r.t.Close())
	}
	if err := r.setTrap(); err != nil {
		return nil, errors.Join(err, r.model.Close(), r.t.Close())
	}
	return r, nil
}

// keepUnknown leaves what is no variable of ours in workspace files as it is:
// they hold code, and code holds dollars.
func keepUnknown(lookup func(string) (string, error)) func(string) (string, error) {
	return func(name string) (string, error) {
		if v, err := lookup(name); err == nil {
			return v, nil
		}
		return "$" + name, nil
	}
}

// serveModel starts the fake model with the scenario's script.
func (r *run) serveModel() error {
	s, p := r.scenario, r.engine.Profile
	src := s.model
	name := s.File
	if src == nil {
		src = []byte("replies: []\n")
	}
	says, err := fakellm.ParseScript(name, src, r.expandFixed)
	if err != nil {
		return s.modelMistake(err)
	}
	lanes, err := profileLanes(p)
	if err != nil {
		return err
	}
	var prompts []fakellm.Prompt
	for i, d := range s.prompts {
		text, err := script.ExpandText(s.File, d.text, keepUnknown(r.Fixed))
		if err != nil {
			return err
		}
		prompts = append(prompts, fakellm.Prompt{Name: d.session, Index: i + 1, Text: text})
	}
	r.model, err = fakellm.Start(fakellm.Config{Script: says, Transcript: r.t, Wire: p.Model.Wire, Tools: ToolsOf(p),
		Lanes: lanes, Seed: r.engine.Seed, Prompts: prompts})
	return err
}

// ToolsOf returns what a profile's agent calls the neutral tools; nil if that is not
// known.
func ToolsOf(p *agents.Profile) map[string]fakellm.Tool {
	if p.Tools == nil {
		return nil
	}
	tools := map[string]fakellm.Tool{}
	for neutral, t := range p.Tools {
		tools[neutral] = fakellm.Tool{Name: t.Name, Args: t.Args}
	}
	return tools
}

// expandFixed replaces the variables that are known before the run in a text
// whose place the caller knows.
func (r *run) expandFixed(text string) (string, error) {
	out, err := script.ExpandText("", text, r.Fixed)
	var m *Mistake
	if errors.As(err, &m) {
		return "", errors.New(m.Message)
	}
	return out, err
}

func profileLanes(p *agents.Profile) ([]fakellm.Lane, error) {
	lanes, err := fakellm.ParseLanes(p.Lanes)
	if err != nil {
		return nil, fmt.Errorf("lanes of profile %s: %w", p.Name, err)
	}
	return lanes, nil
}

// play runs the script and judges what happened.
func (r *run) play(ctx context.Context, res *Result) {
	e, s := r.engine, r.scenario
	deadline := s.timeoutOf(e.Timeout)
	inner, cancel := ctx, context.CancelFunc(func() {})
	if !e.Debug {
		inner, cancel = context.WithTimeoutCause(ctx, deadline, &timerError{"scenario deadline", deadline})
	}
	before, _ := workspace.Take(ctx, r.files, filepath.Base(r.box.Work))
	err := r.script(inner)
	cancel()
	clean := r.concludes(err)
	if clean && ctx.Err() == nil {
		r.hearModel(ctx)
		res.Linger = r.linger(ctx)
		if err == nil {
			r.further(ctx)
		}
	}
	if r.Agent() != nil && r.Ready() && !r.Ended() {
		res.AgentName, res.AgentVersion = r.client.AgentInfo()
	}
	r.stopAgent(ctx)
	r.model.Finish()
	closing := r.model.Close()
	if r.trap != nil {
		closing = errors.Join(closing, r.trap.Close())
	}
	closing = errors.Join(closing, r.client.Close())
	after := r.look(ctx)
	r.judge(ctx, res, err, clean)
	r.artifacts(res, difference(before, after))
	for _, problem := range []error{closing, r.t.Close(), r.seal(res), r.discard(res)} {
		if problem != nil {
			res.Notes = append(res.Notes, problem.Error())
		}
	}
}

// script runs the lines.
func (r *run) script(ctx context.Context) error {
	b := &Branch{run: r}
	r.engine.step(r.scenario.ID, "starting")
	return b.play(ctx, r.scenario.steps)
}

// concludes reports whether the script got to an end of its own, good or bad,
// rather than being cut off.
func (r *run) concludes(err error) bool {
	var m *Miss
	var s *Skipped
	return err == nil || errors.As(err, &m) || errors.As(err, &s)
}

// look takes a snapshot of what the agent left in the workspace, in a hurry if
// the run was interrupted.
func (r *run) look(ctx context.Context) workspace.Snapshot {
	patience := time.Minute // Take has its own
	if ctx.Err() != nil {
		patience = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	after, err := workspace.Take(ctx, r.files, filepath.Base(r.box.Work))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		after.Cut = err.Error()
	}
	return after
}

// artifacts writes what belongs to this run into the out directory.
func (r *run) artifacts(res *Result, workspace string) {
	if r.engine.Out == "" {
		return
	}
	res.Artifacts = map[string]string{"transcript": filepath.ToSlash(filepath.Join(r.scenario.ID, "transcript.jsonl"))}
	put := func(what, name, text string) {
		if err := r.folder.Write(r.artifact(name), []byte(r.engine.clean(text))); err != nil {
			res.Notes = append(res.Notes, fmt.Sprintf("writing %s: %v", name, err))
			return
		}
		res.Artifacts[what] = filepath.ToSlash(filepath.Join(r.scenario.ID, name))
	}
	put("rendered", "rendered.golden", r.rendered)
	put("stderr", "stderr.txt", r.stderr(16<<20))
	put("workspace", "workspace.diff", workspace)
}

// discard removes the run's directory, or moves it to the artifacts.
func (r *run) discard(res *Result) error {
	if r.engine.Keep && r.engine.Out != "" {
		to, err := r.folder.Place(r.artifact("run"))
		if err == nil {
			err = workspace.Copy(context.Background(), r.files, to)
		}
		if err != nil {
			res.Notes = append(res.Notes, fmt.Sprintf("keeping the run's directory: %v", err))
		}
		res.Artifacts["run"] = filepath.ToSlash(filepath.Join(r.scenario.ID, "run"))
	}
	r.files.Close()
	if err := confined.RemoveAll(r.box.Root); err != nil {
		return fmt.Errorf("removing the run's directory: %w", err)
	}
	return nil
}

// slots bounds how many scenarios run at once, and lets one that only lingers
// step aside.
type slots struct {
	free chan struct{}
}

func newSlots(n int) *slots { return &slots{free: make(chan struct{}, max(n, 1))} }

func (s *slots) take(ctx context.Context) bool {
	select {
	case s.free <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *slots) give() { <-s.free }
