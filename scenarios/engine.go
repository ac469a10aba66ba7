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

// Engine runs scenarios against the agent of one profile. Runs do not modify it, and many scenarios may run at once.
// Profile and Protocol are required. The zero values of the other fields are useful defaults.
type Engine struct {
	Profile *agents.Profile
	// Protocol is the protocol of the agent.
	Protocol *Protocol
	// Self is the path of this program, which is also the keeper of agents and the reference agent. If it is "", agents
	// run without a keeper.
	Self string
	// ExtraArgs are added to the agent's command line.
	ExtraArgs []string
	// Command is the command line that repeats this run, for reports.
	Command string
	// Tool is the name and version of this program, for the headers of transcripts.
	Tool string
	// Out is the directory for artifacts. If it is "", no artifacts are written.
	Out string
	// Temp is the parent of the runs' directories; "" is the system's directory for temporary files.
	Temp string
	// Cwd is the user's working directory, an absolute path. Host is the user's environment, in the format of
	// os.Environ. PassEnv lists the variables of Host that the agent gets.
	Cwd     string
	Host    []string
	Env     map[string]string
	PassEnv []string

	// Golden is the store of goldens. If it is nil, runs are not compared with goldens.
	Golden *golden.Store
	// Update writes goldens instead of comparing them. GoldenRequired makes a missing golden a failure.
	Update, GoldenRequired bool
	// Complete means that RunAll gets all scenarios of a collection. A golden without a scenario is then stale.
	Complete bool
	// Unfiltered means that no filter removed scenarios from the collection. With a filter, a known failure whose
	// scenario is a glob is never stale, because it may apply to a removed scenario.
	Unfiltered bool
	// Known lists expected failures, in addition to those of the profile.
	Known []agents.KnownFailure

	// AskMode is the agent's mode in which it asks for permission. It is "" if this mode is unknown or is the initial
	// mode. Scenarios that are skipped because the agent did not ask for permission are rerun in this mode.
	AskMode string
	// startMode is the mode that the editor sets in new sessions; "" keeps the agent's initial mode.
	startMode string

	Seed        int64
	Severity    string        // name of a set of severities of Rules; "" means none
	Timeout     time.Duration // timeout of a scenario; 0 means the profile's, else 60 s
	StepTimeout time.Duration // timeout of a line; 0 means the profile's, else 10 s
	Grace       time.Duration // timeout of each step of stopping an agent; 0 means 2 s
	// Linger is how long the agent must send nothing, after the last line, before the transcript closes. Nil means 250
	// ms for scenarios tagged cancel, load or close, and 0 for others.
	Linger *time.Duration
	// NoFurther omits the extra turn after the last line of a scenario.
	NoFurther bool
	// Debug disables all timeouts and calls Launched before initialize.
	Debug    bool
	Launched func(id string, pid int)
	// NoTrap starts agents without a proxy. By default, the agent's environment names a proxy that refuses connections
	// to other machines and logs them as findings. A launcher that may have to download the agent gets no proxy.
	NoTrap bool
	// Connect opens connection number conn to the agent for the run with transcript t. The agent is at the launch's URL
	// or within this process. If Connect is nil, the engine starts the agent's command, and an agent at a URL is an
	// error.
	Connect func(ctx context.Context, t *transcript.Transcript, conn int, launch agents.Launch) (*transport.Agent, error)
	// Through wraps the transport of each agent that is started as a command. If it is nil, transports are not wrapped.
	Through func(transport.Transport) transport.Transport
	// Isolate limits agents to the servers and directories of the run, the files that they need, and their own
	// processes; see isolate.CheckView. It requires Self.
	Isolate bool
	// NetworkOnly is the reason why isolation restricts only the network; see isolate.Check. It is "" if isolation also
	// restricts files and processes.
	NetworkOnly string
	// Readable lists additional files and directories that an isolated agent may read. The paths are absolute.
	Readable []string
	// Keep moves the directory of each run to Out instead of removing it.
	Keep bool
	// Step is called with a description of each step of a running scenario.
	Step func(id, step string)
	// Secrets finds the secrets that are removed from all output of a run. If it is nil, nothing is removed.
	Secrets *secret.Finder
	// Redact returns a function for one transcript. The function removes secrets from entries before they are written to
	// disk. If Redact is nil, entries are unchanged.
	Redact func() func(transcript.Entry) transcript.Entry
	// Folder is the directory Out, opened before any agent started. If it is nil, each run opens Out itself.
	Folder *evidence.Folder
	// Began is when the running command started. The zero time means the start of RunAll.
	Began time.Time
	// below is the subdirectory of Folder for the scenarios of one round.
	below string
	// memory is how many bytes of a transcript stay in memory; 0 means 64 MiB.
	memory int
	// Perturb changes the timing and splitting of the editor's traffic, but not its meaning.
	Perturb Perturbation
	// Share lets a scenario run in an agent process that other scenarios have used, unless it needs its own process. A
	// scenario that does not pass there is rerun in its own process, and only the second result counts.
	Share bool
	pool  *pool   // the processes of one RunAll; nil means no sharing
	share *sharer // the shared process of one scenario; nil means its own process
	// doubts is shared by the scenarios of one RunAll. If it is nil, each wait has its full timeout.
	doubts *doubts
	// Slot, if set, is called when a run has only its final wait for late frames left. Another run may then start. The
	// run calls listened when that wait is over.
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

// clean removes secrets from text.
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

// attempt runs a scenario once, in its own process or, if e.share is set, in a shared process.
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

// play runs the script of a run and judges the run.
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
	if agent := r.Agent(); agent != nil && brokeOff(err) {
		agent.CloseStdin() // logged as the editor's act, so that no rule expects the missing response
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

// concludes reports whether the script ended by itself: with success, a Miss or a skip. It is false if the script was
// cut off.
func (r *run) concludes(err error) bool {
	var m *Miss
	var s *Skipped
	return err == nil || errors.As(err, &m) || errors.As(err, &s)
}

// brokeOff reports whether a skip, or a miss without a timeout, ended the script. The agent may then still be sending
// its response. After a timeout, the agent had its chance to answer.
func brokeOff(err error) bool {
	if _, skipped := errors.AsType[*Skipped](err); skipped {
		return true
	}
	m, missed := errors.AsType[*Miss](err)
	return missed && m.Failure.Timer == ""
}

// look returns a snapshot of the workspace. It takes at most two seconds if ctx has ended, else at most a minute.
func (r *run) look(ctx context.Context) workspace.Snapshot {
	patience := time.Minute // Take also has a limit of its own
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
		if err := r.folder.Write(r.artifact(name), []byte(text)); err != nil {
			res.Notes = append(res.Notes, fmt.Sprintf("writing %s: %v", name, err))
			return
		}
		res.Artifacts[what] = filepath.ToSlash(filepath.Join(r.scenario.ID, name))
	}
	put("rendered", "rendered.golden", r.rendered)
	put("stderr", "stderr.txt", r.engine.clean(r.stderr(16<<20)))
	put("workspace", "workspace.diff", r.engine.clean(workspace))
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
