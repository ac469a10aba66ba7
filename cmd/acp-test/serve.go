package main

import (
	"bytes"
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
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/mistake"
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

// serving holds the flags of serve.
type serving struct {
	output
	severity, listen, as string

	mu       sync.Mutex
	sessions []replay.Session // those that have ended; an editor has several if the network fails
}

func serveCommand(h *host) *cobra.Command {
	var o serving
	var child bool
	c := command("serve", atMost(1), func(c *cobra.Command, args []string) error {
		if child {
			time.Sleep(time.Minute) // this process is a grandchild that a script started
			return nil
		}
		if err := cmp.Or(checkSeverity(o.severity), checkFormats("--report", o.reports), wrong([]contradiction{
			{slices.ContainsFunc(o.reports, func(r string) bool { return strings.HasSuffix(r, "=-") }),
				"--report: the protocol uses stdout; name a file"},
			{o.as != "" && len(args) > 0, "--as cannot be used with a file: the file says which agent to play"},
		})); err != nil {
			return err
		}
		run := func(h *host) error {
			if len(args) == 0 {
				return h.serveObedient(c.Context(), &o)
			}
			return h.serve(c.Context(), args[0], &o)
		}
		if web, err := h.servesWeb(args); err != nil || web || !c.Flags().Changed("listen") {
			return cmp.Or(err, run(h))
		}
		return h.overNetwork(c.Context(), o.listen, run)
	})
	c.Long = strings.Replace(c.Long, "COMMANDS\n", obedient.Commands(), 1)
	c.Flags().StringVar(&o.out, "out", "acp-test-out", "the folder for transcript and report, `DIR`")
	c.Flags().StringArrayVar(&o.reports, "report", nil,
		"one more report, `FORMAT[=FILE]` (default: next to the transcript): "+strings.Join(reports.Formats(), ", "))
	completeWords(c, "report", reports.Formats)
	c.Flags().StringVar(&o.as, "as", "",
		"without FILE: imitate a real agent, by the `NAME` of its profile or from a recording: "+
			strings.Join(obedient.Agents(), ", "))
	c.Flags().StringVar(&o.severity, "severity", "v1", "the set of severities")
	c.Flags().StringVar(&o.listen, "listen", "127.0.0.1:0", "serve over HTTP and WebSocket at `HOST:PORT`")
	c.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "write the transcript, and do not judge")
	c.Flags().BoolVar(&child, "child", false, "be the child that a script forks")
	_ = c.Flags().MarkHidden("child") // the flag exists
	return c
}

// servesWeb reports whether serve plays an agent whose protocol uses only HTTP, such as AG-UI.
func (h *host) servesWeb(args []string) (bool, error) {
	if len(args) > 0 {
		side, err := h.agentSide(args[0])
		return side.of.front != nil, err
	}
	of, err := protocolNamed(cmp.Or(h.protocol, protocols()[0].Name))
	return of.front != nil, err
}

func (h *host) serve(ctx context.Context, name string, o *serving) (err error) {
	terminated := make(chan os.Signal, 4)
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(terminated)
	// If the editor exits, writing fails with an error; catching SIGPIPE keeps this process alive.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)

	side, err := h.agentSide(name)
	if err != nil {
		return err
	}
	of := side.of
	side.name = name
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	file, err := reserve(o.out+"/", path.Base(side.id))
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
		return h.serveWeb(ctx, side, log, file, o)
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
	// The context is not the command's, which ends with SIGTERM: a script may ignore SIGTERM.
	code := server.Serve(context.Background())
	listed()
	if err := log.Close(); err != nil {
		return err
	}
	if !o.quiet {
		err = h.judgeEditor(side, log, file, o)
	}
	return cmp.Or(err, ended(code))
}

// judgeEditor judges the editor that connected, and writes the reports.
func (h *host) judgeEditor(side agentSide, log *transcript.Transcript, file string, o *serving) error {
	of := side.of
	var account *replay.Account
	if seen, ok := h.getenv(replay.EnvSeen); ok && seen != "" {
		var err error
		if account, err = replay.AccountIn(h.absolute(seen)); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sessions = append(o.sessions,
		replay.Session{Log: log, Account: account, Ended: "the editor ended, or closed the agent's stdin"})
	res := secret.Value(h.secrets(), of.judge(o.severity).Editor(results.Result{ID: side.id, File: side.name,
		Started: log.Header().Started, Artifacts: map[string]string{"transcript": filepath.Base(file)}}, side.script,
		o.sessions))
	run := verdict.NewRun(of.Version, tool(), h.commandLine(),
		results.Agent{Profile: cmp.Or(res.AgentName, of.unnamed())})
	run.Started, run.Results = log.Header().Started, []results.Result{res}
	if res.Verdict == results.Skip {
		run.Notes = append(run.Notes, res.Reason)
	}
	verdict.Conclude(&run)
	console := reports.NewConsole(h.err, reports.ConsoleOptions{Total: 1, Quiet: true})
	console.Finished(res)
	err := console.Summary(run)
	run.Out = h.absolute(o.out)
	for _, r := range append([]string{"json"}, o.reports...) {
		format, name, _ := strings.Cut(r, "=")
		usual, _ := reports.File(format)
		name = cmp.Or(name, strings.TrimSuffix(file, ".jsonl")+"."+usual)
		var b bytes.Buffer
		if err = errors.Join(err, reports.Write(inspected(run.Protocol), format, run, &b)); b.Len() > 0 {
			// The file is replaced atomically. A test that waits for it never reads an incomplete file.
			err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), replaceFile(name, b.Bytes(), 0o644))
		}
	}
	return cmp.Or(err, ended(run.Exit))
}

// unnamed returns a name for an editor or front end that did not send one.
func (p protocol) unnamed() string {
	if p.front != nil {
		return "front end"
	}
	return "editor without a name"
}

// serveWeb serves front ends until it is interrupted.
func (h *host) serveWeb(ctx context.Context, side agentSide, log *transcript.Transcript, file string,
	o *serving) error {
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return errors.Join(fmt.Errorf("--listen: %w", err), log.Close())
	}
	var script *serve.Script
	if side.script != nil {
		script = &side.script.Script
	}
	web := side.of.front(script, side.recording, log)
	fmt.Fprintf(h.err, "serving http://%s/ until it is interrupted\n", listener.Addr())
	if err := serveHTTP(ctx, listener, web); err != nil {
		return errors.Join(err, log.Close())
	}
	web.Wait()
	if err := log.Close(); err != nil || o.quiet {
		return err
	}
	return h.judgeEditor(side, log, file, o)
}

// agentSide is an agent that serve plays: a script or a recording, and its protocol.
type agentSide struct {
	of        protocol
	script    *language.AgentScript
	recording *transcript.Transcript
	name, id  string // word on the command line, and id of the scenario
}

// agentSide returns the script or recording that an argument on the command line names.
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

// agentScenario returns a shipped agent-side scenario by its id or the beginning of its id. It searches the protocol
// that --protocol names, or else all protocols in order.
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
	return protocol{}, nil, fmt.Errorf("%q is neither a file nor an agent-side scenario%s", name,
		mistake.Meant(name, names))
}
