package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// replaying are the flags of replay.
type replaying struct {
	mode, against, llm, files string
	speed                     float64
	patience                  time.Duration
}

func replayCommand(h *host) *cobra.Command {
	var o options
	var r replaying
	c := &cobra.Command{
		Use:   "replay FILE… -- AGENT…",
		Short: "plays the recorded editor against a live agent, with a verdict",
		Long: `Plays the editor's side of each recording to the agent, in a fresh workspace and
with a fresh HOME: what the editor did is done again as soon as what it reacted to
has happened. Ids, sessions, options and paths are those of the live agent. The
verdict is that of the rules, and the canonical difference to the recording; a rule
that is broken in the recording too is known to be. A recording that a crash broke off is
compared up to there.

What the recording has of the files, of the MCP servers of a test and of the model is
put back: the model says again what it said, and is held where the editor did
something in the middle of a stream. A recording that lacks the model's side needs
--llm, or a script that record --llm wrote beside it (FILE with .llm.yaml for its
ending).

Recordings of AG-UI are played to the endpoint at --url: what front ends posted is posted
again, and they hang up where they did. The rules are the verdict; acp-test diff shows what
else is different.`,
		Args: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); len(args) == 0 || dash == 0 {
				return fmt.Errorf("replay: a recording is missing; usage: %s", c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.complete(c, args, config{})
			if r.against != "recording" && r.against != "golden" && r.against != "nothing" {
				return fmt.Errorf("--against %s: recording, golden or nothing is expected", r.against)
			}
			if m := replay.Mode(r.mode); m != replay.Strict && m != replay.Ordered && m != replay.Lenient {
				return fmt.Errorf("--mode %s: strict, ordered or lenient is expected", r.mode)
			}
			switch {
			case r.speed < 0:
				return fmt.Errorf("--speed %v: a pace cannot be negative", r.speed)
			case o.repeat < 1:
				return fmt.Errorf("--repeat %d: a recording must be replayed at least once", o.repeat)
			case o.timeout <= 0, r.patience <= 0:
				return errors.New("a timeout must be longer than 0")
			}
			if err := checkSeverity(o.severity); err != nil {
				return err
			}
			if err := checkFormats("--report", o.reports); err != nil {
				return err
			}
			return h.replay(c.Context(), &o, &r)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.agent, "agent", "", "the agent, by the `NAME` or file of its profile (default reference)")
	f.StringVar(&o.settings, "settings", "", "take agents from an editor's settings.json `FILE`")
	f.StringVar(&o.fault, "fault", "", "the reference agent with one deliberate fault, by `NAME`")
	f.StringVar(&o.url, "url", "", "the endpoint that recordings of AG-UI are played to, a `URL`")
	f.StringVar(&r.mode, "mode", "ordered",
		"how closely the recorded order binds: strict, ordered (within a session) or lenient")
	f.Float64Var(&r.speed, "speed", 0, "the recorded pace, so many times faster; 0 does not wait")
	f.StringVar(&r.against, "against", "recording", "compare with the recording, a golden, or nothing")
	f.StringVar(&r.llm, "llm", "", "the model's script, a `FILE`")
	f.StringVar(&r.files, "files", "", "the files of the workspace, copied from `DIR` (default those the recording shows)")
	f.DurationVar(&r.patience, "patience", 30*time.Second, "how long to wait for what the agent did in the recording")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "how long a replay may take")
	f.IntVar(&o.repeat, "repeat", 1, "replay each recording so often")
	f.StringArrayVar(&o.env, "env", nil, "more environment for the agent, `K=V` (repeatable)")
	f.StringSliceVar(&o.passEnv, "pass-env", nil,
		"pass a variable of this environment to the agent, by `NAME` (repeatable)")
	f.StringVar(&o.golden, "golden", "golden", "the folder of goldens, `DIR`")
	f.BoolVar(&o.update, "update", false, "write goldens instead of comparing")
	f.StringVar(&o.severity, "severity", "v1", "the set of severities")
	f.StringVar(&o.out, "out", "acp-test-out", "the folder for transcripts and reports, `DIR`")
	f.StringArrayVar(&o.reports, "report", nil, "one more report, `FORMAT[=FILE]`, - is stdout")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show notes too")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show failures and the summary only")
	completeWords(c, "fault", faultNames)
	return c
}

func (h *host) replay(ctx context.Context, o *options, r *replaying) error {
	of, err := h.spoken(o.paths)
	if err != nil {
		return err
	}
	if of.Reach != nil {
		return h.replayWeb(ctx, o, of)
	}
	if o.url != "" {
		return fmt.Errorf("--url: recordings of %s are played to an agent that is started: put its command after --", of.Name)
	}
	p, err := o.subject(h, of)
	if err != nil {
		return err
	}
	if o.fault != "" {
		if p.Name != of.reference {
			return fmt.Errorf("--fault %s: only the reference agent has faults, %s has its own", o.fault, p.Name)
		}
		if err := differs(of.Name, o.fault, nil); err != nil {
			return err
		}
		p = p.WithCommand(append(append([]string{}, p.Command...), "--fault", o.fault))
	}
	place := h.sandbox()
	place.Env, place.Pass = o.environment(), o.passEnv
	if p, err = p.Prepare(ctx, agents.Preparation{Sandbox: place, Keeper: []string{h.self, "keeper"}}); err != nil {
		return errors.New(h.secrets(o.env...).Text(err.Error()))
	}
	o.out = h.freeOut(o.out)
	release, err := h.prepareOut(o.out)
	if err != nil {
		return err
	}
	defer release()
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	run := h.newRun(scenarios.Agent{Profile: p.Name, Title: p.Shown(), Command: p.Command})
	run.Out, run.Protocol = out, of.Version
	for _, file := range o.paths {
		for n := range o.repeat {
			if ctx.Err() != nil {
				run.Interrupted = true
				break
			}
			res, lacking, err := h.replayOne(ctx, o, r, of, p, file, out, n)
			if err != nil {
				return err
			}
			for _, what := range lacking {
				if !slices.Contains(run.Notes, what) {
					run.Notes = append(run.Notes, what)
				}
			}
			run.Results = append(run.Results, res)
		}
	}
	return h.conclude(&run, o.reports, o.verbose, o.env...)
}

// spoken is the protocol of recordings that are played to one agent.
func (h *host) spoken(files []string) (of protocol, err error) {
	for i, file := range files {
		t, err := h.recordingOf(file)
		if err != nil {
			return of, err
		}
		its, err := h.protocolOf(t)
		switch {
		case err != nil:
			return of, err
		case i == 0:
			of = its
		case its.Name != of.Name:
			return of, fmt.Errorf("%s is of %s and %s of %s: replay them one after the other", files[0], of.Name, file,
				its.Name)
		}
	}
	return of, nil
}

// replayOne replays one recording once, in directories of its own. lacking is what the
// recording does not have, and how to give it.
func (h *host) replayOne(ctx context.Context, o *options, r *replaying, of protocol, p *agents.Profile, file,
	out string, n int) (res scenarios.Result, lacking []string, err error) {
	recording, err := h.recordingOf(file)
	if err != nil {
		return res, nil, err
	}
	if !replay.Acts(recording) {
		return res, nil, fmt.Errorf("%s: nothing that an editor did is in it, so there is nothing to play", file)
	}
	if id := recordings.Older(recording); id != "" && r.against != "nothing" {
		return res, nil, fmt.Errorf("%s: session %s, which is loaded in it, was made before it began, and an agent in "+
			"a fresh HOME has none to load: record from the session's start on, or compare with nothing (--against nothing)",
			file, id)
	}
	temp, err := process.NewTempDir([]string{h.self, "keeper"}, "", "")
	if err != nil {
		return res, nil, err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	at, err := h.furnish(temp.Dir(), recording, r.files)
	if err != nil {
		return res, nil, err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	at.box.Env, at.box.Pass = map[string]string{}, o.passEnv
	maps.Copy(at.box.Env, at.set)
	maps.Copy(at.box.Env, o.environment())
	box := at.box
	id := nameOf(file, recording)
	dir := id
	if o.repeat > 1 {
		dir = fmt.Sprintf("repeat-%d/%s", n+1, id)
	}
	if err := os.MkdirAll(filepath.Join(out, dir), 0o755); err != nil {
		return res, nil, err
	}
	log, err := transcript.New(transcript.Header{Tool: tool(), Agent: p.Name, Scenario: id, Protocol: of.Version},
		transcript.Options{Classifier: of.Classifier, Path: filepath.Join(out, dir, "transcript.jsonl"),
			Redact: h.redactor(of, o.env...)})
	if err != nil {
		return res, nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	job := replay.Replay{ID: id, File: file, Log: log, Judge: of.judge(o.severity)}
	job.Recording, job.Mode, job.Speed, job.Patience, job.Work, job.Home = recording, replay.Mode(r.mode), r.speed,
		r.patience, box.Work, box.Home
	job.Renamed, job.Beside = at.renamed, at.beside
	if err := at.serveModel(&job.Player, r.llm, file, p, log); err != nil {
		return res, nil, err
	}
	box = at.box
	job.Start = func(ctx context.Context, conn int) (*mockclient.Agent, error) {
		l, err := p.Launch(box)
		if err != nil {
			return nil, err
		}
		if err := workspace.Write(box.Home, l.Files); err != nil {
			return nil, err
		}
		dir := l.Dir
		if dir == "" {
			dir = box.Work
		}
		return mockclient.Start(ctx, log, conn, mockclient.Command{Path: l.Path, Args: l.Args, Env: l.Env, Dir: dir,
			Keeper: []string{h.self, "keeper"}})
	}
	job.Golden = scenarios.GoldenOptions(p)
	store := golden.Store{Dir: o.golden}
	switch r.against {
	case "recording":
		job.Want, job.AsRecorded = job.Against(), true
		if places, _ := replay.PlacesOf(recording); places.Chance {
			job.Want = nil // the rules judge it alone
			at.lacking = append(at.lacking, "the recording says that its messages depend on chance: they are not compared")
		}
	case "golden":
		if text, _, err := store.Read(of.GoldensOf(p), id); err == nil {
			job.Want = &text
		} else if !o.update {
			return res, nil, fmt.Errorf("--against golden: %w; --update writes it", err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("timeout %v", o.timeout))
	defer cancel()
	res = job.Run(ctx)
	res.Notes = append(res.Notes, at.lacking...)
	if o.repeat > 1 {
		res.Repeat = n + 1
	}
	res.Artifacts = map[string]string{"transcript": dir + "/transcript.jsonl"}
	if r.against == "golden" && o.update {
		if err := store.Write(of.GoldensOf(p), id, job.Text()); err != nil {
			return res, nil, err
		}
		res.Golden = &scenarios.Golden{State: "updated"}
	}
	return res, at.lacking, nil
}
