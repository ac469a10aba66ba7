package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/prompt"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// prompting are the flags of prompt.
type prompting struct {
	agent, settings string
	command         []string // the words after --
	cwd             string
	output          string
	listCommands    bool
	resume, save    string
	write, yolo     bool
	env             []string
	startTimeout    time.Duration
}

func promptCommand(h *host) *cobra.Command {
	var o prompting
	c := &cobra.Command{
		Use:   "prompt [TEXT…] [-- AGENT…]",
		Short: "one turn from the terminal, as a minimal editor",
		Long: `Starts an agent, gives it one prompt and shows what it answers. TEXT is the prompt;
without it, or as -, it is what stdin holds. The agent is the command after --, the
profile that --agent names, or an entry of agent_servers in the settings.json of an
editor: the one that --agent names, else the first.

Unlike in a test the agent is the user's own: it gets the whole environment of this
command, credentials too, then what its settings or its profile say, then --env. Of
a profile, which is written for tests, keys and what points into a test do not
count, nor do the files of its HOME.

The agent may read files of the workspace, the folder it is asked to work in. What
it asks permission for is rejected. With --write it may edit files there, with --yolo
it may also do all else and run commands; both allow only once, and neither allows
to write, edit, move or delete outside the workspace. What an agent does without
asking, and what commands do that --yolo let run, nobody can confine from here.

The first interrupt (Ctrl-C) cancels the turn, the second one ends the agent.

  text    what the agent says; on stderr a line for each tool call and permission
  simple  only what the agent says
  jsonl   every message, in both directions, byte for byte, and nothing else

The exit status is 0 if the turn ended with end_turn, 1 if it ended in another way
(why is on stderr), 130 if it was cancelled, and 2 if it did not come to a turn.`,
		Example: `  acp-test prompt 'What does main.go do?' -- gemini --acp
  git diff | acp-test prompt --settings ~/.config/zed/settings.json
  acp-test prompt --agent opencode --write 'Fix the typo in README.md'
  acp-test prompt --save-session talk.jsonl 'Remember 42.' -- ./my-agent
  acp-test prompt --resume talk.jsonl 'Which number?' -- ./my-agent`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			words := args
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				words, o.command = args[:dash], args[dash:]
			}
			if err := o.check(c, words); err != nil {
				return err
			}
			return h.prompt(c.Context(), &o, words)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.agent, "agent", "", "the agent, by the `NAME` or file of its profile, or by its name in --settings")
	f.StringVar(&o.settings, "settings", "", "take the agent from an editor's settings.json `FILE`")
	f.StringVar(&o.cwd, "cwd", "", "the workspace, `DIR` (default the current folder)")
	f.StringVar(&o.output, "output", "text", "what to show: text, simple or jsonl")
	f.BoolVar(&o.listCommands, "list-commands", false, "list the agent's slash commands, and prompt nothing")
	f.StringVar(&o.resume, "resume", "", "go on with the session `ID`, or that of a file that --save-session wrote")
	f.StringVar(&o.save, "save-session", "",
		"write the session to `FILE`, for --resume, show and check; secrets are taken out")
	f.BoolVar(&o.write, "write", false, "the agent may write and edit files in the workspace")
	f.BoolVar(&o.yolo, "yolo", false,
		"the agent may do whatever it asks for, and run commands; writes stay in the workspace")
	f.StringArrayVar(&o.env, "env", nil, "more environment for the agent, `K=V` (repeatable)")
	f.DurationVar(&o.startTimeout, "start-timeout", 0,
		"how long the agent may take to answer initialize, and to open the session (default that of its profile)")
	completeWords(c, "output", prompt.Outputs)
	_ = c.RegisterFlagCompletionFunc("agent", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return agents.Names(), cobra.ShellCompDirectiveDefault
	})
	return c
}

// check says what is wrong with the command line.
func (o *prompting) check(c *cobra.Command, words []string) error {
	switch {
	case c.ArgsLenAtDash() >= 0 && len(o.command) == 0:
		return errors.New("prompt: after -- the agent's command is missing")
	case !slices.Contains(prompt.Outputs(), o.output):
		return fmt.Errorf("--output: there is no output %q%s; they are %s", o.output, meant(o.output, prompt.Outputs()),
			strings.Join(prompt.Outputs(), ", "))
	case o.listCommands && len(words) > 0:
		return fmt.Errorf("prompt: %q is too much: --list-commands prompts nothing", words[0])
	case o.startTimeout < 0:
		return fmt.Errorf("--start-timeout %v: a time cannot be negative", o.startTimeout)
	}
	for _, kv := range o.env {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return fmt.Errorf("--env %q: K=V is expected", kv)
		}
	}
	return nil
}

// prompt is the whole of the command.
func (h *host) prompt(ctx context.Context, o *prompting, words []string) (err error) {
	work, err := h.workspace(o.cwd)
	if err != nil {
		return err
	}
	resume, err := sessionOf(o.resume)
	if err != nil {
		return err
	}
	agent, err := h.ownAgent(o, work)
	if err != nil {
		return err
	}
	text := ""
	if !o.listCommands {
		if text, err = h.promptText(words); err != nil {
			return err
		}
	}
	log, err := newSessionLog(o.save, agent)
	if err != nil {
		return err
	}
	defer func() {
		if failed := log.Close(); failed != nil && o.save != "" {
			err = errors.Join(err, fmt.Errorf("--save-session: %w", failed))
		}
	}()
	t := prompt.New(ctx, prompt.Options{
		Agent: agent, Work: work, Resume: resume, Text: text, ListCommands: o.listCommands, Write: o.write, Yolo: o.yolo,
		Version: version(), Log: log,
		Screen: prompt.Screen{Output: o.output, Out: h.out, Err: h.err, Faint: h.style(h.err).faint,
			Terminal: isTerminal(h.out)},
	})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	defer close(over)
	go func() {
		defer signal.Stop(signals) // one more ends this process, and the keeper the agent
		for range 2 {
			select {
			case s := <-signals:
				t.Interrupt(s)
			case <-over:
				return
			}
		}
	}()
	err = t.Run()
	var ended prompt.Status
	if errors.As(err, &ended) {
		return status(ended)
	}
	return err
}

// workspace is the folder of the session.
func (h *host) workspace(dir string) (string, error) {
	if dir == "" {
		return h.cwd, nil
	}
	dir = h.absolute(dir)
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("--cwd: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("--cwd: %s is not a folder", dir)
	}
	return dir, nil
}

// promptText is the prompt, from the command line or from stdin.
func (h *host) promptText(words []string) (string, error) {
	text := strings.Join(words, " ")
	if in, ok := h.in.(*os.File); ok && len(words) == 0 && isTerminal(in) {
		return "", errors.New("prompt: the text is missing; give it as an argument, or - to type it and end it with Ctrl-D")
	}
	if len(words) == 0 || text == "-" {
		raw, err := io.ReadAll(h.in)
		if err != nil {
			return "", fmt.Errorf("reading the prompt from stdin: %w", err)
		}
		text = strings.TrimRight(string(raw), "\r\n")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("prompt: the text is empty")
	case !utf8.ValidString(text):
		return "", errors.New("prompt: the text is not UTF-8")
	}
	return text, nil
}

// sessionOf is the id of the session to go on with: the word itself, or what a
// saved session is called.
func sessionOf(word string) (string, error) {
	f, err := os.Open(word)
	if err != nil {
		if strings.HasSuffix(word, ".jsonl") {
			return "", fmt.Errorf("--resume: %w", err)
		}
		return word, nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return word, err
	}
	saved, err := transcript.Load(f, acpframe.Classifier{})
	if err != nil {
		return "", fmt.Errorf("--resume: %s: %w", word, err)
	}
	defer saved.Close()
	id := ""
	for e := range saved.All() {
		if e.Session != "" && e.Source == transcript.Editor {
			id = e.Session
		}
	}
	if id == "" {
		return "", fmt.Errorf("--resume: %s holds no session with a prompt", word)
	}
	return id, nil
}

// newSessionLog is the transcript of the session, which --save-session wants on
// the disk. A file that is not one is left alone, and others may not read it.
func newSessionLog(file string, agent prompt.Agent) (*transcript.Transcript, error) {
	header := transcript.Header{Tool: tool(), Agent: agent.Name, Protocol: "1"}
	if file == "" {
		return transcript.New(header, transcript.Options{Classifier: acpframe.Classifier{}})
	}
	if err := mayReplace(file); err != nil {
		return nil, fmt.Errorf("--save-session: %w", err)
	}
	log, err := transcript.New(header, transcript.Options{Classifier: acpframe.Classifier{}, Path: file,
		Redact: replay.Redaction{Protocol: recordings.V1(), Env: agent.Command.Env}.Func()})
	if err != nil {
		return nil, fmt.Errorf("--save-session: %w", err)
	}
	return log, nil
}

func mayReplace(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return err
	}
	old, err := transcript.Load(f, acpframe.Classifier{})
	if err != nil {
		return fmt.Errorf("%s is no saved session, and is not replaced", file)
	}
	return old.Close()
}
