package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// replaying holds the flags of replay.
type replaying struct {
	mode, against, llm, files string
	speed                     float64
	patience                  time.Duration
	trust                     []string
	trusted                   map[string]bool // trusted recordings, by clean path
}

func replayCommand(h *host) *cobra.Command {
	var o options
	var r replaying
	c := command("replay", func(c *cobra.Command, args []string) error {
		if dash := c.ArgsLenAtDash(); len(args) == 0 || dash == 0 {
			return fmt.Errorf("replay: a recording is missing; usage: %s", c.UseLine())
		}
		return nil
	}, func(c *cobra.Command, args []string) error {
		o.complete(c, args, config{})
		trusted, err := trusts(o.paths, r.trust)
		modes := []replay.Mode{replay.Strict, replay.Ordered, replay.Lenient}
		if err := cmp.Or(wrong([]contradiction{
			{!slices.Contains([]string{"recording", "golden", "nothing"}, r.against),
				fmt.Sprintf("--against %s: recording, golden or nothing is expected", r.against)},
			{!slices.Contains(modes, replay.Mode(r.mode)),
				fmt.Sprintf("--mode %s: strict, ordered or lenient is expected", r.mode)},
			{r.speed < 0, fmt.Sprintf("--speed %v: a speed cannot be negative", r.speed)},
			{o.repeat < 1, fmt.Sprintf("--repeat %d: a recording must be replayed at least once", o.repeat)},
			{o.timeout <= 0 || r.patience <= 0,
				fmt.Sprintf("--timeout %v, --patience %v: a time must be longer than 0", o.timeout, r.patience)},
		}), checkSeverity(o.severity), checkFormats("--report", o.reports), err); err != nil {
			return err
		}
		r.trusted = trusted
		return h.replay(c.Context(), &o, &r)
	})
	f := c.Flags()
	f.SortFlags = false
	o.target.of(c)
	f.StringVar(&o.url, "url", "", "the `URL` of the endpoint for recordings of AG-UI")
	f.StringVar(&r.mode, "mode", "ordered",
		"how strictly to keep the recorded order: strict, ordered (within a session) or lenient")
	f.Float64Var(&r.speed, "speed", 0, "replay this many times faster than recorded; 0 does not wait")
	f.StringVar(&r.against, "against", "recording", "compare with the recording, a golden, or nothing")
	f.StringVar(&r.llm, "llm", "", "the model's script, a `FILE`")
	f.StringVar(&r.files, "files", "", "copy the files of the workspace from `DIR` (default: those in the recording)")
	f.DurationVar(&r.patience, "patience", 30*time.Second, "how long to wait for each action of the recorded agent")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "timeout of a replay")
	f.StringArrayVar(&r.trust, "trust", nil,
		"give the agent the programs, addresses, variables and paths that the recording `FILE` names (repeatable)")
	f.IntVar(&o.repeat, "repeat", 1, "replay each recording `N` times")
	o.target.environment(f, "")
	o.goldens(f)
	o.severities(c)
	o.output.flags(c, "show notes too")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show failures and the summary only")
	return c
}

// playing is one playback of a recording.
type playing struct {
	file, id       string
	n              int // number of earlier playbacks of the same recording
	recording, log *transcript.Transcript
}

// player plays a recording once. lacking lists what the recording lacks and how the user can supply it.
type player func(ctx context.Context, p playing) (res results.Result, lacking []string, err error)

func (h *host) replay(ctx context.Context, o *options, r *replaying) error {
	of, err := h.spoken(o.paths)
	if err != nil {
		return err
	}
	to := h.toAgent
	if of.Served {
		to = h.toEndpoint
	}
	agent, play, err := to(ctx, o, r, of)
	if err != nil {
		return err
	}
	if r.files != "" && !exists(r.files, true) {
		return fmt.Errorf("--files %s: there is no such folder", r.files)
	}
	if r.llm != "" {
		if err := checkModel(r.llm); err != nil {
			return err
		}
	}
	out, release, err := h.takeOut(&o.output)
	if err != nil {
		return err
	}
	defer release()
	run := h.newRun(agent)
	run.Out, run.Protocol = out, of.Version
	for _, file := range o.paths {
		for n := range o.repeat {
			if ctx.Err() != nil {
				run.Interrupted = true
				break
			}
			res, lacking, err := h.replayOnce(ctx, o, &run, play, file, n)
			if err != nil {
				return err
			}
			fresh := func(what string) bool { return !slices.Contains(run.Notes, what) }
			run.Notes = append(run.Notes, lists.Where(lacking, fresh)...)
			run.Results = append(run.Results, res)
		}
	}
	return h.conclude(&run, o.reports, o.verbose, o.env...)
}

// replayOnce replays a recording once. It writes the transcript into a subfolder of the run's folder.
func (h *host) replayOnce(ctx context.Context, o *options, run *results.Run, play player, file string,
	n int) (res results.Result, lacking []string, err error) {
	recording, _, err := h.recordingOf(file)
	if err != nil {
		return res, nil, err
	}
	id := nameOf(file, recording)
	dir := id
	if o.repeat > 1 {
		dir = fmt.Sprintf("repeat-%d/%s", n+1, id)
	}
	if err := os.MkdirAll(filepath.Join(run.Out, dir), 0o755); err != nil {
		return res, nil, err
	}
	of := protocolVersion(run.Protocol)
	log, err := transcript.New(
		transcript.Header{Tool: tool(), Agent: run.Agent.Profile, Scenario: id, Protocol: of.Version},
		transcript.Options{Classifier: of.Classifier, Path: filepath.Join(run.Out, dir, "transcript.jsonl"),
			Redact: h.redactor(of, o.env...)})
	if err != nil {
		return res, nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("timeout %v", o.timeout))
	defer cancel()
	res, lacking, err = play(ctx, playing{file, id, n, recording, log})
	if o.repeat > 1 {
		res.Repeat = n + 1
	}
	res.Artifacts = map[string]string{"transcript": dir + "/transcript.jsonl"}
	return res, lacking, err
}

// toAgent returns a player for ACP recordings. It starts a new agent for each playback.
func (h *host) toAgent(ctx context.Context, o *options, r *replaying, of protocol) (results.Agent, player, error) {
	var about results.Agent
	if o.url != "" {
		return about, nil, fmt.Errorf(
			"--url: for recordings of %s replay starts the agent: put its command after --", of.Name)
	}
	p, err := o.subject(h, of)
	if err != nil {
		return about, nil, err
	}
	faulty, err := o.faulty(of, p)
	if err != nil {
		return about, nil, err
	}
	if len(faulty) > 0 {
		p = p.WithCommand(slices.Concat(p.Command, faulty))
	}
	place := h.sandbox()
	place.Env, place.Pass = o.variables(), o.passEnv
	if p, err = p.Prepare(ctx, agents.Preparation{Sandbox: place, Keeper: []string{h.self, "keeper"}}); err != nil {
		return about, nil, errors.New(h.secrets(o.env...).Text(err.Error()))
	}
	return results.Agent{Profile: p.Name, Title: p.Shown(), Command: p.Command},
		func(ctx context.Context, once playing) (results.Result, []string, error) {
			x := &oneReplay{playing: once, host: h, options: o, flags: r, of: of, profile: p,
				store: golden.Store{Dir: o.golden}}
			return x.play(ctx)
		}, nil
}

// spoken returns the protocol of the recordings. It returns an error if they have different protocols.
func (h *host) spoken(files []string) (of protocol, err error) {
	for i, file := range files {
		_, its, err := h.recordingOf(file)
		switch {
		case err != nil:
			return of, err
		case i == 0:
			of = its
		case its.Name != of.Name:
			return of, fmt.Errorf("%s is a recording of %s, %s of %s: replay them separately", files[0], of.Name, file,
				its.Name)
		}
	}
	return of, nil
}

// oneReplay is one playback of a recording to an agent. The agent has directories that it shares with no other
// playback.
type oneReplay struct {
	playing
	*host
	options *options
	flags   *replaying
	of      protocol
	profile *agents.Profile
	at      *restored
	job     replay.Replay
	store   golden.Store
}

// play runs the playback and returns the verdict on the agent. lacking lists what the recording lacks.
func (x *oneReplay) play(ctx context.Context) (res results.Result, lacking []string, err error) {
	if err := x.playable(); err != nil {
		return res, nil, err
	}
	temp, err := process.NewTempDir([]string{x.self, "keeper"}, "", "")
	if err != nil {
		return res, nil, err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	trusted := x.flags.trusted[filepath.Clean(x.file)]
	if trusted && x.n == 0 {
		x.announce(x.file, x.recording)
	}
	if x.at, err = x.furnish(temp.Dir(), x.recording, x.flags.files, trusted); err != nil {
		return res, nil, err
	}
	defer func() { err = errors.Join(err, x.at.Close()) }()
	x.at.box.Env, x.at.box.Pass = map[string]string{}, x.options.passEnv
	maps.Copy(x.at.box.Env, x.at.set)
	maps.Copy(x.at.box.Env, x.options.variables())
	if err := x.prepare(); err != nil {
		return res, nil, err
	}
	if !trusted {
		x.job.Confine = x.at.confine()
	}
	res = x.job.Run(ctx)
	res.Notes = append(res.Notes, x.at.lacking...)
	if x.flags.against == "golden" && x.options.update {
		err = x.store.Write(x.of.GoldensOf(x.profile), x.id, x.job.Text())
		res.Golden = &results.Golden{State: "updated"}
	}
	return res, x.at.lacking, err
}

// playable returns an error if the recording contains no action of an editor, or a session that a new agent cannot
// load.
func (x *oneReplay) playable() error {
	if !replay.Acts(x.recording) {
		return fmt.Errorf("%s: the recording has no action of an editor, so there is nothing to replay", x.file)
	}
	if id := recordings.Older(x.recording); id != "" && x.flags.against != "nothing" {
		return fmt.Errorf("%s: session %s is loaded in the recording but began before it, and an agent with "+
			"a fresh HOME cannot load it: record the session from its start, or use --against nothing",
			x.file, id)
	}
	return nil
}

// prepare fills in x.job: how to play the recording, and the text that the result must match.
func (x *oneReplay) prepare() error {
	r, box := x.flags, x.at.box
	x.job = replay.Replay{ID: x.id, File: x.file, Log: x.log, Judge: x.of.judge(x.options.severity), Beside: x.at.beside,
		Golden: scenarios.GoldenOptions(x.profile),
		Player: replay.Player{Recording: x.recording, Mode: replay.Mode(r.mode), Speed: r.speed, Patience: r.patience,
			Work: box.Work, Home: box.Home, Renamed: x.at.renamed, Start: x.start}}
	if err := x.at.serveModel(&x.job.Player, r.llm, x.file, x.profile, x.log); err != nil {
		return err
	}
	switch r.against {
	case "recording":
		x.job.Want, x.job.AsRecorded = x.job.Against, true
		if places, _ := replay.PlacesOf(x.recording); places.Chance {
			x.job.Want = nil // only the rules judge this replay
			x.at.lacking = append(x.at.lacking,
				"the recording is marked as depending on chance: its messages are not compared")
		}
	case "golden":
		if text, _, err := x.store.Read(x.of.GoldensOf(x.profile), x.id); err == nil {
			x.job.Want = func() string { return text }
		} else if !x.options.update {
			return fmt.Errorf("--against golden: %w; --update writes it", err)
		}
	}
	return nil
}

// start starts the agent for one connection.
func (x *oneReplay) start(ctx context.Context, conn int) (*mockclient.Agent, error) {
	c, err := x.profile.Process(x.at.box, []string{x.self, "keeper"})
	if err != nil {
		return nil, err
	}
	return mockclient.Start(ctx, x.log, conn, c)
}

// toEndpoint returns a player for AG-UI recordings. It sends the recorded posts to a running endpoint and judges the
// answers.
func (h *host) toEndpoint(_ context.Context, o *options, _ *replaying, of protocol) (results.Agent, player, error) {
	about := results.Agent{Profile: "endpoint", Title: o.url}
	if o.url == "" {
		return about, nil, fmt.Errorf(
			"replay: --url is missing: a recording of %s is replayed to a running endpoint", of.Name)
	}
	target, err := endpoint.Target(o.url)
	if err != nil {
		return about, nil, fmt.Errorf("--url: %w", err)
	}
	return about, func(ctx context.Context, p playing) (res results.Result, _ []string, err error) {
		err = replayPosts(ctx, target, p)
		if errors.Is(err, endpoint.ErrNothingPosted) {
			return res, nil, fmt.Errorf("%s: %w, so there is nothing to replay", p.file, err)
		}
		res = of.judge(o.severity).Check(p.id, p.log)
		res.File = p.file
		if err != nil {
			res.Verdict, res.Reason = results.Error, err.Error()
		}
		return res, nil, nil
	}, nil
}

// replayPosts posts the recorded requests to a target, through a proxy that logs them.
func replayPosts(ctx context.Context, target *url.URL, p playing) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	tap := endpoint.NewTap(target, p.log)
	server := &http.Server{Handler: loopback.Guard(tap), ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = server.Serve(listener) }() // Serve returns after Close
	err = endpoint.Again(ctx, p.recording, "http://"+listener.Addr().String()+"/")
	if err == nil {
		tap.Wait() // the end of a connection may not be in the log yet
	}
	server.Close()
	tap.Wait()
	return err
}
