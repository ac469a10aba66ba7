package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// judging are the flags of editors.
type judging struct {
	match, severity, out string
	tags, reports        []string
	list, verbose        bool
	timeout              time.Duration
}

func editorsCommand(h *host) *cobra.Command {
	var o judging
	c := &cobra.Command{
		Use:   "editors [PATH…] -- CLIENT… {agent}",
		Short: "starts a client with our scripted agent, and judges it",
		Long: `Runs agent-side scenarios (default: those in this program) against an editor or a
client library: for each one, CLIENT is started with our agent as its agent. The
word {agent} becomes the words of the agent's command; within a longer word, and in
the variable ACP_TEST_AGENT, it is one quoted text. The client runs in a fresh
folder with a fresh HOME, should open a session and prompt, and should end by
itself.`,
		RunE: func(c *cobra.Command, args []string) error {
			paths, client := args, []string(nil)
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				paths, client = args[:dash], args[dash:]
			}
			if o.timeout <= 0 {
				return errors.New("--timeout: it must be longer than 0")
			}
			if err := checkSeverity(o.severity); err != nil {
				return err
			}
			if err := checkFormats("--report", o.reports); err != nil {
				return err
			}
			return h.editors(c.Context(), &o, paths, client)
		},
	}
	f := c.Flags()
	f.StringVar(&o.match, "run", "", "only scenarios whose id matches `REGEXP`")
	f.StringSliceVar(&o.tags, "tag", nil, "only scenarios with one of these tags, or without !`TAG` (repeatable)")
	f.BoolVar(&o.list, "list", false, "list the scenarios and run none")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "how long the client may take over a scenario")
	f.StringVar(&o.severity, "severity", "v1", "the set of severities")
	f.StringVar(&o.out, "out", "acp-test-out", "the folder for transcripts and reports, `DIR`")
	f.StringArrayVar(&o.reports, "report", nil, "one more report, `FORMAT[=FILE]`, - is stdout")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show checks and notes too")
	return c
}

func (h *host) editors(ctx context.Context, o *judging, paths, client []string) error {
	list, err := h.agentSideScenarios(o, paths)
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range list {
			fmt.Fprintf(h.out, "%-32s %s\n", s.ID, s.Title)
		}
		return nil
	}
	if len(client) == 0 {
		return errors.New("editors: the client's command is missing: acp-test editors -- CLIENT… {agent}")
	}
	if _, err := exec.LookPath(client[0]); err != nil {
		return fmt.Errorf("editors: the client cannot be started: %w", err)
	}
	release, err := prepareOut(o.out)
	if err != nil {
		return err
	}
	defer release()
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	run := h.newRun(scenarios.Agent{Profile: filepath.Base(client[0]), Command: client})
	run.Out = out
	for _, s := range list {
		if ctx.Err() != nil {
			run.Interrupted = true
			break
		}
		res, err := h.judgeClient(ctx, o, s, client, filepath.Join(out, filepath.FromSlash(s.ID)))
		if err != nil {
			return err
		}
		run.Results = append(run.Results, res)
	}
	return h.conclude(&run, o.reports, o.verbose)
}

func (h *host) agentSideScenarios(o *judging, paths []string) ([]*scenarios.Scenario, error) {
	list, err := acp.V1().ForEditors()
	if len(paths) > 0 {
		list, err = acp.V1().Load(paths...)
	}
	if err != nil {
		return nil, err
	}
	match, err := regexp.Compile(o.match)
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	list = slices.DeleteFunc(list, func(s *scenarios.Scenario) bool { return s.Agent == nil })
	if len(list) == 0 {
		return nil, errors.New("editors: there are no agent-side scenarios to run: such a file begins with \"role agent\"")
	}
	var mine []*scenarios.Scenario
	for _, s := range list {
		if match.MatchString(s.ID) && tagged(s.Tags, o.tags) {
			mine = append(mine, s)
		}
	}
	if len(mine) == 0 {
		return nil, fmt.Errorf("no agent-side scenario matches --run %q%s; --list lists what there is", o.match, tagsOf(o.tags))
	}
	return mine, nil
}

func tagsOf(tags []string) string {
	if tags == nil {
		return ""
	}
	return " and --tag " + strings.Join(tags, ",")
}

// judgeClient runs one scenario.
func (h *host) judgeClient(ctx context.Context, o *judging, s *scenarios.Scenario, client []string, out string) (res scenarios.Result, err error) {
	res = scenarios.Result{ID: s.ID, File: s.File, Title: s.Title, Tags: s.Tags, Started: time.Now()}
	agentOut := filepath.Join(out, "agent")
	if err := os.MkdirAll(agentOut, 0o755); err != nil {
		return res, err
	}
	file := s.File
	if s.Suite != "" {
		file = s.ID
	} else if file, err = filepath.Abs(file); err != nil {
		return res, err
	}
	temp, err := process.NewTempDir([]string{h.self, "keeper"}, "", "")
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	work, home := filepath.Join(temp.Dir(), "work"), filepath.Join(temp.Dir(), "home")
	for _, d := range []string{work, home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return res, err
		}
	}
	for name, data := range s.Files() {
		if err := writeBelow(work, name, data); err != nil {
			return res, err
		}
	}
	words := []string{h.self, "serve", file, "--quiet", "--out", agentOut}
	argv := expandAgent(client, words)
	log, err := transcript.New(transcript.Header{Tool: tool(), Scenario: s.ID},
		transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		return res, err
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	left, late, err := h.runClient(ctx, log, mockclient.Command{
		Path: argv[0], Args: argv[1:], Dir: work, Keeper: []string{h.self, "keeper"},
		Env: append(append([]string{}, h.env...), "HOME="+home, "ACP_TEST_AGENT="+quoted(words), "ACP_TEST_SCENARIO="+s.ID),
	}, out)
	if err != nil {
		return res, err
	}
	sessions, err := h.sessionsIn(agentOut)
	if err != nil {
		return res, err
	}
	if len(sessions) > 0 {
		sessions[len(sessions)-1].Left = left
	}
	began := res.Started
	res = judge(o.severity).Editor(res, s.Agent, sessions)
	res.Duration = time.Since(began)
	if late && res.Verdict != scenarios.Error {
		res.Verdict = scenarios.Fail
		res.Failure = &transcript.Failure{Expected: []string{"an end of the client"}, Observed: fmt.Sprintf("it was still running after %v", o.timeout)}
	}
	res.Artifacts = map[string]string{"stderr": s.ID + "/client.stderr"}
	for _, t := range sessions {
		_ = t.Log.Close() // it was loaded: nothing is written
	}
	return res, nil
}

// runClient runs the client to its end, and names what of our agent outlived
// it. late says that it had to be killed.
func (h *host) runClient(ctx context.Context, log *transcript.Transcript, c mockclient.Command, out string) (left []string, late bool, err error) {
	p, err := transport.StartPiped(context.WithoutCancel(ctx), log, 0, c)
	if err != nil {
		return nil, false, err
	}
	stop := context.AfterFunc(ctx, p.Kill)
	p.Stdin.Close()
	copied := make(chan error, 2)
	for name, from := range map[string]io.Reader{"client.stdout": p.Stdout, "client.stderr": p.Stderr} {
		go func() {
			copied <- writeFile(filepath.Join(out, name), func(w io.Writer) error {
				_, err := io.Copy(w, from)
				return err
			})
		}()
	}
	_, survivors := p.Wait()
	late = !stop()
	err = errors.Join(<-copied, <-copied)
	p.Stdout.Close()
	p.Stderr.Close()
	for _, s := range survivors {
		if strings.Contains(s.Command, h.self) {
			left = append(left, s.Command)
		}
	}
	return left, late, err
}

// sessionsIn reads the transcripts that our agent wrote, oldest first.
func (h *host) sessionsIn(dir string) ([]replay.Session, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var out []replay.Session
	for _, f := range files {
		t, err := h.recordingOf(f)
		if err != nil {
			return nil, err
		}
		out = append(out, replay.Session{Log: t})
	}
	return out, nil
}

// expandAgent puts the agent's command where {agent} stands.
func expandAgent(client, agent []string) []string {
	var out []string
	for _, w := range client {
		if w == "{agent}" {
			out = append(out, agent...)
		} else {
			out = append(out, strings.ReplaceAll(w, "{agent}", quoted(agent)))
		}
	}
	return out
}
