package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// Engine runs scenarios against the agent of one profile. Running does not change it; many scenarios may run at once.
// Profile and Protocol are required; the zero values of the other fields are useful defaults.
type Engine struct {
	Profile *agents.Profile
	// Protocol is the protocol that the agent speaks. It is required.
	Protocol *Protocol
	// Self is the path of this program, which also serves as the keeper of agents and as the reference agent. "" runs
	// agents without a keeper.
	Self string
	// ExtraArgs are added to the agent's command line.
	ExtraArgs []string
	// Command is the command line that repeats this run.
	Command string
	// Tool is the name and version of this program, for headers.
	Tool string
	// Out is the directory for artifacts; "" writes none.
	Out string
	// Temp is the parent of the runs' directories; "" is the system's directory for temporary files.
	Temp string
	// Cwd is the user's working directory, absolute. Host is the environment, as from os.Environ. PassEnv names the
	// variables of Host that the agent gets.
	Cwd     string
	Host    []string
	Env     map[string]string
	PassEnv []string

	// Golden holds the goldens; nil compares none.
	Golden *golden.Store
	// Update writes goldens instead of comparing; GoldenRequired makes a
	// missing one a failure.
	Update, GoldenRequired bool
	// Complete says that the scenarios of RunAll are a whole collection, so that
	// a golden without a scenario is stale.
	Complete bool
	// Unfiltered says that no filter left out scenarios of the collection. With a filter, a known failure whose
	// scenario is a glob is never stale: it may be about a scenario that was left out.
	Unfiltered bool
	// Known are expected failures, in addition to those of the profile.
	Known []agents.KnownFailure

	// AskMode is the agent's mode that asks for permission, "" if unknown or if the initial mode asks. Scenarios that
	// are skipped because the agent asked nothing run again in this mode.
	AskMode string
	// startMode is the mode that the editor sets in new sessions; "" keeps the agent's initial mode.
	startMode string

	Seed        int64
	Severity    string        // the name of a set of severities of Rules; "" is no set
	Timeout     time.Duration // of a scenario; 0 means the profile's, else 60 s
	StepTimeout time.Duration // of a line; 0 means the profile's, else 10 s
	Grace       time.Duration // of each step of ending an agent; 0 means 2 s
	// Linger is how long the agent must send nothing, after the last line, before the transcript closes. Nil means 250
	// ms for scenarios tagged cancel, load or close, and 0 for others.
	Linger *time.Duration
	// NoFurther leaves out the turn that follows the last line of a scenario.
	NoFurther bool
	// Debug turns all timeouts off and calls Launched before initialize.
	Debug    bool
	Launched func(id string, pid int)
	// NoTrap starts agents without a proxy. By default the environment names a proxy that refuses connections to other
	// machines and logs them as findings. Launchers that may have to download the agent get no proxy.
	NoTrap bool
	// Connect opens connection conn to the agent, for the run logged by t: to the agent at the launch's URL, or to one
	// within this process. If Connect is nil, the engine starts the agent's command, and an agent at a URL is an error.
	Connect func(ctx context.Context, t *transcript.Transcript, conn int, launch agents.Launch) (*transport.Agent, error)
	// Through wraps the transport of each agent that is started as a command; nil wraps none.
	Through func(transport.Transport) transport.Transport
	// Isolate limits agents to the servers and directories of the run, the files that they need, and their own
	// processes; see isolate.CheckView. It requires Self.
	Isolate bool
	// NetworkOnly is the reason why only the network of an isolated agent is restricted, see isolate.Check; "" if its
	// view of files and processes is restricted too.
	NetworkOnly string
	// Readable lists more files and directories that an isolated agent may read, as absolute paths.
	Readable []string
	// Keep moves the directory of each run to Out instead of removing it.
	Keep bool
	// Step is called with a description of each step of a running scenario.
	Step func(id, step string)
	// Secrets are removed from everything that a run writes and shows; nil removes none.
	Secrets *secret.Finder
	// Redact returns a function that removes secrets from the entries of one transcript before they are written to
	// disk; nil changes nothing.
	Redact func() func(transcript.Entry) transcript.Entry
	// Folder is the directory Out, opened before any agent ran; nil opens it.
	Folder *evidence.Folder
	// Began is when the running command began; zero means when RunAll begins.
	Began time.Time
	// below is the subdirectory of Folder for the scenarios of one round.
	below string
	// memory is how many bytes of a transcript stay in memory; 0 means 64 MiB.
	memory int
	// Perturb changes how the editor behaves without changing the meaning.
	Perturb Perturbation
	// Share lets scenarios run in an agent process that other scenarios used before, unless they need their own. A
	// scenario that does not pass there runs again alone, and only the second result counts.
	Share bool
	pool  *pool   // of RunAll; nil shares nothing
	share *sharer // of one scenario; nil runs it alone
	// doubts are shared by the scenarios of RunAll; nil gives each wait its full timeout.
	doubts *doubts
	// Slot, if set, is called when a run has only its final wait for late frames left, so that another run may begin.
	// The run calls listened when that wait is over.
	Slot func(id string) (listened func())
}

// Default timeouts of a scenario and of a line.
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

// clean returns text without secrets.
func (e *Engine) clean(text string) string {
	if e.Secrets == nil {
		return text
	}
	return e.Secrets.Text(text)
}

func (e *Engine) withDefaults() *Engine {
	c := *e
	c.Protocol = e.Protocol
	c.Timeout = cmp.Or(c.Timeout, e.Profile.Timeouts.Scenario, DefaultTimeout)
	c.StepTimeout = cmp.Or(c.StepTimeout, e.Profile.Timeouts.Step, DefaultStepTimeout)
	return &c
}

// attempt runs a scenario once, in a process of its own or in a shared one if share is set.
func (e *Engine) attempt(ctx context.Context, s *Scenario) results.Result {
	began := time.Now()
	res := results.Result{ID: s.ID, File: s.File, Title: s.Title, Tags: s.Tags, Verdict: results.Pass, Started: began}
	if reason := e.inapplicable(s); reason != "" {
		res.Verdict, res.Reason = results.Skip, reason
		return res
	}
	r, err := e.prepare(s)
	if err != nil {
		res.Verdict, res.Reason = results.Error, err.Error()
		return res
	}
	r.play(ctx, &res)
	res.Duration = time.Since(began)
	if e.Secrets != nil {
		res = secret.Value(e.Secrets, res)
	}
	return res
}

// play runs the script and judges the run.
func (r *run) play(ctx context.Context, res *results.Result) {
	e, s := r.engine, r.scenario
	deadline := max(s.Timeout, e.Timeout)
	script, stop := context.WithCancelCause(ctx)
	r.cutShort = stop
	defer stop(nil)
	inner, cancel := script, context.CancelFunc(func() {})
	if !e.Debug {
		inner, cancel = context.WithTimeoutCause(script, deadline, &timerError{name: "scenario deadline", d: deadline})
	}
	before, _ := workspace.Take(ctx, r.files, filepath.Base(r.box.Work))
	r.effects.last = before
	e.step(s.ID, "starting")
	err := (&Branch{run: r}).play(inner, s.Steps)
	cancel()
	r.change(func(s *state) {
		res.Heard = s.heard
		s.begun()
	})
	clean := r.concludes(err)
	if clean && ctx.Err() == nil {
		r.hearModel(ctx)
		listened := r.since(&r.state.waits.Linger)
		res.Linger = r.linger(ctx)
		listened()
		if err == nil {
			r.further(ctx)
		}
		r.lastWords(ctx)
	}
	if r.Agent() != nil && r.Ready() && !r.Ended() {
		res.AgentName, res.AgentVersion = r.client.AgentInfo()
	}
	r.stopAgent(ctx)
	r.change(func(s *state) { res.Waits, res.Vain = s.waits, s.vain })
	r.model.Finish()
	closing := r.model.Close()
	if r.trap != nil {
		closing = errors.Join(closing, r.trap.Close())
	}
	closing = errors.Join(closing, r.client.Close())
	r.effects.wait()
	after := r.look(ctx)
	r.judge(ctx, res, err, clean)
	r.artifacts(res, difference(before, after))
	problems := []error{closing, r.t.Close(), r.seal(res), r.discard(res)}
	problems = lists.Where(problems, func(err error) bool { return err != nil })
	res.Notes = append(res.Notes, lists.Map(problems, error.Error)...)
}

// concludes reports whether the script ended by itself, with a success, a Miss or a skip, instead of being cut off.
func (r *run) concludes(err error) bool {
	var m *Miss
	var s *Skipped
	return err == nil || errors.As(err, &m) || errors.As(err, &s)
}

// look returns a snapshot of the workspace. If the run was interrupted, it takes at most two seconds.
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

// artifacts writes the run's artifacts into the out directory.
func (r *run) artifacts(res *results.Result, workspace string) {
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

// discard removes the run's directory, or moves it to the artifacts if Keep is set.
func (r *run) discard(res *results.Result) error {
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
