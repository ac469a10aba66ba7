package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// inapplicable returns the reason why the scenario does not apply to this profile, or "" if it does.
func (e *Engine) inapplicable(s *Scenario) string {
	over := e.Profile.Binding()
	if need := s.Elsewhere(over); need != "" {
		return fmt.Sprintf("the scenario needs an agent that is reached over %s, but %s is reached over %s", need,
			e.Profile.Shown(), over)
	}
	for _, n := range s.Needs {
		if why := e.Profile.Lacks(n.Name); n.What == "tool" && why != "" {
			return why
		}
	}
	return ""
}

// prepare returns a run whose first line can be played.
func (e *Engine) prepare(s *Scenario) (_ *run, err error) {
	r := &run{engine: e, scenario: s, client: e.Protocol.Client()}
	st := &r.state
	st.names, st.picked, st.excused = map[string]transcript.Entry{}, map[string]wire.Value{}, map[int]bool{}
	st.heard = map[string]int{}
	r.effects.done, r.effects.open = sync.NewCond(&r.effects.mu), map[int]bool{}
	st.setup = setup{env: map[string]string{}, home: map[string][]byte{}}
	maps.Copy(st.setup.env, e.Env)
	st.current = &checkState{reached: true}
	st.checks = []*checkState{st.current}
	for _, d := range s.Checks {
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
	for name, data := range s.Workspace {
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
			return nil, fmt.Errorf("creating the directory for artifacts: %w", err)
		}
		if r.log, err = r.folder.Create(r.artifact("transcript.jsonl")); err != nil {
			return nil, fmt.Errorf("creating the transcript's file: %w", err)
		}
		o.File = r.log
	}
	r.t, err = transcript.New(transcript.Header{Tool: e.Tool, Agent: e.Profile.Name, Scenario: s.ID,
		Protocol: e.Protocol.Version, Seed: e.Seed}, o)
	if err != nil {
		return nil, err
	}
	r.checker = e.Protocol.Rules.NewChecker(rules.Config{Severity: e.Severity, Off: s.RulesOff,
		Busy: cmp.Or(s.Busy, e.Profile.Policy.ConcurrentPrompts), Asks: e.Profile.Policy.Asks,
		Stops: e.Profile.Policy.StopsTakenBack,
		Start: r.box.Work, Roots: []string{r.box.Root}, Patience: e.StepTimeout})
	r.judged = r.t.ObserveBeside(r.checker.Observe)
	r.t.Observe(r.measure)
	r.t.Observe(r.turns)
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

// keepUnknown wraps lookup so that unknown variables stay unchanged. Workspace files may contain code, in which
// dollar signs are common.
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
	s, src := r.scenario, r.scenario.Model
	if src == nil {
		src = []byte("replies: []\n")
	}
	says, err := fakellm.ParseScript(s.File, src, r.expandFixed)
	if err != nil {
		return s.ModelMistake(err)
	}
	config, err := ModelOf(r.engine.Profile)
	if err != nil {
		return err
	}
	for i, d := range s.Prompts {
		text, err := script.ExpandText(s.File, d.Text, keepUnknown(r.Fixed))
		if err != nil {
			return err
		}
		config.Prompts = append(config.Prompts, fakellm.Prompt{Name: d.Session, Index: i + 1, Text: text})
	}
	config.Script, config.Transcript, config.Seed = says, r.t, r.engine.Seed
	config.Lenient = config.Lenient || r.protocol().ClientRemembers
	config.Lacking = func() { r.cutShort(&Skipped{"the agent offers its model no tool that the script calls"}) }
	r.model, err = fakellm.Start(config)
	return err
}

// ModelOf returns the configuration of a model server for a profile's agent: the wire format, the agent's names for
// the neutral tools (nil if unknown), and the lanes.
func ModelOf(p *agents.Profile) (c fakellm.Config, err error) {
	c.Wire, c.Lenient = p.Model.Wire, p.Model.Strict != nil && !*p.Model.Strict
	if p.Tools != nil {
		c.Tools = map[string]fakellm.Tool{}
	}
	for neutral, t := range p.Tools {
		c.Tools[neutral] = fakellm.Tool{Name: t.Name, Args: t.Args}
	}
	if c.Lanes, err = fakellm.ParseLanes(p.Lanes); err != nil {
		return c, fmt.Errorf("lanes of profile %s: %w", p.Name, err)
	}
	return c, nil
}

// expandFixed expands the variables in text that are known before the run. Its error has no position; the caller adds
// it.
func (r *run) expandFixed(text string) (string, error) {
	out, err := script.ExpandText("", text, r.Fixed)
	if m, ok := errors.AsType[*language.Mistake](err); ok {
		return "", errors.New(m.Message)
	}
	return out, err
}

// Prepare runs the profile's set-up step once, for all later runs. Without such a step it does nothing. If the engine
// isolates agents, it also isolates this step. The error is a message for the user.
func (e *Engine) Prepare(ctx context.Context) error {
	o := agents.Preparation{Keeper: e.keeper(), Sandbox: agents.Sandbox{Temp: e.Temp, Self: e.Self, Cwd: e.Cwd,
		HostEnv: e.Host, Env: e.Env, Pass: e.PassEnv}}
	if e.Isolate {
		o.Isolate = func(root string, l agents.Launch) (*isolate.Isolation, error) { return e.isolation(root, l) }
	}
	p, err := e.Profile.Prepare(ctx, o)
	if err != nil {
		return errors.New(e.clean(err.Error()))
	}
	e.Profile = p
	return nil
}

const greeting = "# The agent is greeted.\nfurther off 'no turn'\nstart\nneeds agent:providers\n"

// Greeting starts the agent, performs the greeting and stops the agent. It returns the agent's own name and version,
// or "" if the agent did not answer. provided reports whether an editor can tell the agent the address of its model
// (providers/set).
func (e *Engine) Greeting(ctx context.Context) (name, version string, provided bool) {
	own := *e
	own.Out, own.Golden, own.Step, own.Launched, own.Share, own.Debug = "", nil, nil, nil, false, false
	own.Redact = func() func(transcript.Entry) transcript.Entry { return nil }
	s, err := own.Protocol.Parse("greeting", "greeting.txtar", []byte(greeting))
	if err != nil {
		return "", "", false
	}
	temp, err := own.MakeTemp()
	if err != nil {
		return "", "", false
	}
	defer temp.Close()
	res := own.Run(ctx, s)
	return res.AgentName, res.AgentVersion, res.Verdict == results.Pass
}

// newSandbox creates the directories of a run below parent. If parent is "", it uses the system's directory for
// temporary files.
func newSandbox(parent string) (*workspace.Dirs, error) {
	root, err := os.MkdirTemp(parent, "acp-test-run-")
	if err != nil {
		return nil, fmt.Errorf("making the run's directory: %w", err)
	}
	return workspace.MakeDirs(root)
}

// difference describes the changes between two snapshots for users.
func difference(before, after workspace.Snapshot) string {
	var b strings.Builder
	for _, c := range before.Changes(after) {
		path := c.Path
		if strings.ContainsFunc(path, unicode.IsControl) {
			path = strconv.Quote(path)
		}
		mode := ""
		if c.Mode != "" {
			mode = ": it " + c.Mode
		}
		fmt.Fprintf(&b, "%s %s%s\n%s", c.What, path, mode, golden.Diff(c.Before, c.After))
	}
	if cut := cmp.Or(after.Cut, before.Cut); cut != "" {
		fmt.Fprintf(&b, "acp-test did not compare the rest of the workspace: %s\n", cut)
	}
	return b.String()
}
