package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/serve/obedient"
	"github.com/acp-test/acp-test/transcript"
)

func serveCommand(h *host) *cobra.Command {
	var out, severity, listen string
	var quiet, child bool
	c := &cobra.Command{
		Use:   "serve [FILE]",
		Short: "is the agent, for one editor, and judges the editor",
		Long: `Is the agent on stdin and stdout, as an editor starts it. FILE is a recording, whose
agent is played: the editor's n-th request of a method gets what was answered then;
or an agent-side scenario, a file that begins with "role agent"; or the name of one
in this program, such as m07. What the editor does is judged by the rules for
clients and by the scenario's checks; transcript and report are in --out. The exit
status is 1 if the editor broke a rule.

Without FILE it is an agent that does what the prompt says, line by line, and needs no
model:

` + obedient.Commands() + `
Other lines it says back.

An agent of AG-UI is a server: it listens at --listen for front ends, says at which
URL, and judges them when it is interrupted.`,
		Args: func(c *cobra.Command, args []string) error {
			if child {
				return nil
			}
			return atMost(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if child {
				time.Sleep(time.Minute) // the grandchild that a script forks
				return nil
			}
			if err := checkSeverity(severity); err != nil {
				return err
			}
			if len(args) == 0 {
				return h.serveObedient(out, severity, quiet)
			}
			return h.serve(c.Context(), args[0], out, severity, listen, quiet)
		},
	}
	c.Flags().StringVar(&out, "out", "acp-test-out", "the folder for transcript and report, `DIR`")
	c.Flags().StringVar(&severity, "severity", "v1", "the set of severities")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "the address of an agent that is a server, `HOST:PORT`")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "only write the transcript")
	c.Flags().BoolVar(&child, "child", false, "be the child that a script forks")
	_ = c.Flags().MarkHidden("child") // a flag that is there can be hidden
	return c
}

func (h *host) serve(ctx context.Context, name, out, severity, listen string, quiet bool) (err error) {
	terminated := make(chan os.Signal, 4)
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(terminated)
	// An editor that is gone is the end of output, not of this process.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)

	side, err := h.agentSide(name)
	if err != nil {
		return err
	}
	of := side.of
	side.name = name
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	file, err := reserve(out+"/", path.Base(side.id))
	if err != nil {
		return err
	}
	log, err := transcript.New(transcript.Header{Tool: tool(), Scenario: side.id, Protocol: of.Version},
		transcript.Options{Classifier: of.Classifier, Path: file, Through: true, Memory: 16 << 20,
			Redact: h.redactor(of)})
	if err != nil {
		return err
	}
	if of.front != nil {
		return h.serveWeb(ctx, side, log, file, severity, listen, quiet)
	}
	server := serve.Server{
		In: h.in, Out: h.out, Err: h.err, Log: log, Protocol: of.recordings, Terminated: terminated,
		Child: func() error { return exec.Command(h.self, "serve", "--child").Start() },
		Die: func() {
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Kill()
			}
		},
	}
	if side.script != nil {
		server.Script = &side.script.Script
	} else {
		server.Agent = replay.Recorded(of.recordings, side.recording)
	}
	home, _ := h.getenv("HOME")
	listed := replay.List(context.Background(), log, of.recordings, workspace.Manifest{Home: home}, workspace.Brief)
	// Not the command's context: it ends with SIGTERM, which a script may ignore.
	code := server.Serve(context.Background())
	listed()
	if err := log.Close(); err != nil {
		return err
	}
	if !quiet {
		err = h.judgeEditor(side, log, file, severity)
	}
	return cmp.Or(err, ended(code))
}

// judgeEditor judges who was served, and writes the report.
func (h *host) judgeEditor(side agentSide, log *transcript.Transcript, file, severity string) error {
	of := side.of
	res := secret.Value(h.secrets(), of.judge(severity).Editor(results.Result{ID: side.id, File: side.name,
		Started: log.Header().Started}, side.script, []replay.Session{{Log: log}}))
	run := verdict.NewRun(of.Version, tool(), h.commandLine(), results.Agent{})
	run.Started, run.Results = log.Header().Started, []results.Result{res}
	verdict.Conclude(&run)
	console := reports.NewConsole(h.err, reports.ConsoleOptions{Total: 1, Quiet: true})
	console.Finished(res)
	err := errors.Join(console.Summary(run), h.report(run, "json", strings.TrimSuffix(file, ".jsonl")+".results.json"))
	return cmp.Or(err, ended(run.Exit))
}

// serveObedient serves an agent that does what prompts say: the reference agent, with a model
// that obeys them.
func (h *host) serveObedient(out, severity string, quiet bool) error {
	of, err := protocolNamed(cmp.Or(h.protocol, protocols()[0].Name))
	switch {
	case err != nil:
		return err
	case of.front != nil:
		return errors.New("serve: an agent that is a server is played from a FILE: a recording or an agent-side scenario")
	}
	// The agent gets the signals. SIGPIPE is caught: an editor that is gone is only the end of output.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(passedOn(), syscall.SIGPIPE)...)
	defer signal.Stop(signals)
	log, file, err := h.recordingLog(&recording{out: out + "/"}, of, "obedient")
	if err != nil {
		return err
	}
	ctx, die := context.WithCancel(context.Background())
	defer die()
	model, err := fakellm.Start(fakellm.Config{Transcript: log, Improvise: func(text string) fakellm.TurnNode {
		turn, dies := obedient.Turn(text)
		if dies {
			die()
		}
		return turn
	}})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	env := append(slices.Clone(h.env), refagent.EnvBaseURL+"="+model.URL(), refagent.EnvAPIKey+"=none",
		refagent.EnvModel+"=obedient")
	proxy := replay.Proxy{
		Judge: of.judge(severity), NoFiles: true, Model: true, In: h.in, Out: h.out, Err: h.err, Log: log, Signals: signals,
		Agent: mockclient.Command{Path: h.self, Args: []string{"refagent"}, Env: env, Dir: h.cwd,
			Keeper: []string{h.self, "keeper"}},
	}
	exit, err := proxy.Run(ctx)
	if err := errors.Join(err, model.Close(), log.Close()); err != nil {
		return err
	}
	if !quiet {
		err = h.judgeEditor(agentSide{of: of, id: "obedient", name: "obedient"}, log, file, severity)
	}
	if err == nil && exit.Signal != "" {
		return endBy(exit.Signal)
	}
	return cmp.Or(err, ended(exit.Code))
}

// serveWeb serves front ends until it is interrupted.
func (h *host) serveWeb(ctx context.Context, side agentSide, log *transcript.Transcript, file, severity, listen string,
	quiet bool) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(fmt.Errorf("--listen: %w", err), log.Close())
	}
	var script *serve.Script
	if side.script != nil {
		script = &side.script.Script
	}
	web := side.of.front(script, side.recording, log)
	fmt.Fprintf(h.err, "serving http://%s/, interrupt it when the front end is done\n", listener.Addr())
	if err := serveHTTP(ctx, listener, web); err != nil {
		return errors.Join(err, log.Close())
	}
	web.Wait()
	if err := log.Close(); err != nil || quiet {
		return err
	}
	return h.judgeEditor(side, log, file, severity)
}

// agentSide is an agent to serve: a script or a recording, of a protocol.
type agentSide struct {
	of        protocol
	script    *language.AgentScript
	recording *transcript.Transcript
	name, id  string // as it was asked for, and of the scenario
}

// agentSide returns what a name on a command line stands for.
func (h *host) agentSide(name string) (agentSide, error) {
	if _, err := os.Stat(name); err != nil {
		of, s, err := h.agentScenario(name)
		if err != nil {
			return agentSide{}, err
		}
		return agentSide{of: of, script: s.Agent, id: s.ID}, nil
	}
	if filepath.Ext(name) == ".txtar" {
		of, err := h.protocolOfFile(name)
		if err != nil {
			return agentSide{}, err
		}
		list, err := of.Load(name)
		if err != nil {
			return agentSide{}, err
		}
		if list[0].Agent == nil {
			return agentSide{}, fmt.Errorf("%s scripts the editor: an agent-side scenario begins with \"role agent\"", name)
		}
		return agentSide{of: of, script: list[0].Agent, id: list[0].ID}, nil
	}
	recording, of, err := h.recordingOf(name)
	return agentSide{of: of, recording: recording, id: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))}, err
}

// agentScenario is an agent-side scenario in this program, by its id or the
// beginning of its name: of the protocol that --protocol names, else of the first that
// has one of that name.
func (h *host) agentScenario(name string) (protocol, *scenarios.Scenario, error) {
	var names []string
	for _, of := range protocols() {
		if h.protocol != "" && of.Name != h.protocol {
			continue
		}
		list, err := of.ForEditors()
		if err != nil {
			return protocol{}, nil, err
		}
		for _, s := range list {
			short := path.Base(s.ID)
			if s.ID == name || short == name || strings.HasPrefix(short, strings.ToLower(name)+"-") {
				return of, s, nil
			}
			names = append(names, short)
		}
	}
	return protocol{}, nil, fmt.Errorf("there is no file and no agent-side scenario %q%s", name,
		mistake.Meant(name, names))
}
