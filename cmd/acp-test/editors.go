package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/acp-test/acp-test/editors"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
)

// editing holds the flags of editors.
type editing struct {
	choice
	judging
	output
	known   string // file of known failures
	timeout time.Duration
	jobs    int
	drawn   int
	seed    int64
}

func editorsCommand(h *host) *cobra.Command {
	var o editing
	c := command("editors", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		paths, client := atDash(c, args)
		if err := cmp.Or(wrong([]contradiction{
			{o.timeout <= 0, "--timeout: it must be longer than 0"},
			{o.drawn < 0, fmt.Sprintf("--draw %d: the number of agents cannot be negative", o.drawn)},
			{o.drawn > 0 && (len(paths) > 0 || o.list),
				"--draw makes its own scenarios, so it cannot be used with a PATH or --list"},
			{o.jobs < 1, fmt.Sprintf("-j %d: at least 1 scenario must run at a time", o.jobs)},
		}), checkSeverity(o.severity), checkFormats("--report", o.reports)); err != nil {
			return err
		}
		return h.editors(c.Context(), &o, paths, client)
	})
	f := c.Flags()
	f.StringVar(&o.match, "run", "", "only scenarios whose id matches `REGEXP`")
	f.StringSliceVar(&o.tags, "tag", nil, "only scenarios with one of these tags; !`TAG` excludes a tag (repeatable)")
	f.BoolVar(&o.list, "list", false, "list the scenarios and run none")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "timeout of the client for each scenario")
	f.IntVarP(&o.jobs, "jobs", "j", 1, "how many scenarios run at once; 1 for a client that needs the whole machine")
	f.IntVar(&o.drawn, "draw", 0, "play `N` randomly drawn, broken agents instead; only the rules judge the editor")
	f.Int64Var(&o.seed, "seed", 1, "the seed of everything that acp-test draws at random")
	o.severities(c)
	o.output.flags(c, "show checks and notes too")
	f.StringVar(&o.known, "known", "", "known failures from `FILE`, in the format of a profile's known-failures")
	return c
}

func (h *host) editors(ctx context.Context, o *editing, paths, client []string) error {
	of, err := h.protocolOfPaths(paths)
	if err != nil {
		return err
	}
	list, err := of.agentSideScenarios(o, paths)
	if err != nil {
		return err
	}
	if o.list {
		return h.listed(list)
	}
	if len(client) == 0 {
		return errors.New("editors: the client's command is missing; usage: acp-test editors -- CLIENT… {agent}")
	}
	if _, err := exec.LookPath(client[0]); err != nil {
		return fmt.Errorf("editors: the client cannot be started: %w", err)
	}
	if o.drawn > 0 && of.agent == nil {
		return fmt.Errorf("--draw: acp-test cannot draw agents of %s", of.Name)
	}
	known, err := knownFailures("--known", o.known)
	if err != nil {
		return err
	}
	out, release, err := h.takeOut(&o.output)
	if err != nil {
		return err
	}
	defer release()
	if o.drawn > 0 {
		if list, err = of.drawnAgents(o, out); err != nil {
			return err
		}
	}
	bench := editors.Bench{Self: h.self, Env: h.env, Tool: tool(), Timeout: o.timeout, Judge: of.judge(o.severity),
		Protocol: of.Name, Quote: quoted,
		Read: func(file string) (*transcript.Transcript, error) {
			t, _, err := h.recordingOf(file)
			return t, err
		}}
	if of.front != nil {
		bench.Front = func(script *serve.Script, log *transcript.Transcript) *serve.Web { return of.front(script, nil, log) }
	}
	run := verdict.NewRun(of.Version, tool(), h.commandLine(),
		results.Agent{Profile: filepath.Base(client[0]), Command: client})
	run.Out = out
	console := h.console(&options{output: o.output}, len(list))
	defer console.Close()
	run.Results = make([]results.Result, len(list))
	group, inTime := errgroup.WithContext(ctx)
	group.SetLimit(o.jobs)
	for i, s := range list {
		group.Go(func() error {
			if inTime.Err() != nil {
				return nil
			}
			console.Started(s.ID)
			res, err := bench.Run(inTime, s, client, filepath.Join(out, filepath.FromSlash(s.ID)))
			if err != nil {
				return err
			}
			verdict.Expect(&res, known)
			run.Results[i] = secret.Value(h.secrets(), res)
			console.Finished(run.Results[i])
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	run.Interrupted = ctx.Err() != nil
	run.Results = slices.DeleteFunc(run.Results, func(r results.Result) bool { return r.ID == "" })
	h.summed(&run)
	return h.shown(console, run, o.reports)
}

// drawnAgents generates random agent-side scenarios and writes them into the folder out. The seed and a scenario's
// number determine its content. It returns the scenarios that the other flags select.
func (p protocol) drawnAgents(o *editing, out string) (list []*scenarios.Scenario, err error) {
	for n := range o.drawn {
		id := fmt.Sprintf("drawn-%04d", n+1)
		file, text := filepath.Join(out, id+".txtar"), p.agent(rand.New(rand.NewPCG(uint64(o.seed), uint64(n))))
		s, err := p.Parse(id, file, text)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		list = append(list, s)
	}
	return o.those(list)
}

func (p protocol) agentSideScenarios(o *editing, paths []string) ([]*scenarios.Scenario, error) {
	list, err := p.ForEditors()
	if len(paths) > 0 {
		list, err = p.Load(paths...)
	}
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s *scenarios.Scenario) bool { return s.Agent == nil })
	if len(list) == 0 {
		return nil, errors.New("editors: no agent-side scenario to run: the file of one begins with \"role agent\"")
	}
	if list, err = o.those(list); err == nil && len(list) == 0 {
		err = fmt.Errorf("no agent-side scenario matches%s; acp-test editors --list lists them all", o.filters())
	}
	return list, err
}
