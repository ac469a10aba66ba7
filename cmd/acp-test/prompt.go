package main

import (
	"cmp"
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
	"github.com/spf13/pflag"

	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/prompt"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// prompting holds the flags of prompt.
type prompting struct {
	target
	cwd          string
	output       string
	listCommands bool
	resume, save string
	attach       []string // files and URLs
	write, yolo  bool
	startTimeout time.Duration
	llm          string
	mode, model  string
	settingsOf   []string // values of session configuration options, K=V
	ask          bool
	interactive  bool
	timeout      time.Duration
	codes        string
	given        []string           // flags that the user gave
	at           *endpoint.Endpoint // the agent, if it is an AG-UI endpoint
}

func promptCommand(h *host) *cobra.Command {
	var o prompting
	c := command("prompt", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		var words []string
		words, o.command = atDash(c, args)
		if err := h.checkPrompting(&o, c, words); err != nil {
			return err
		}
		return h.prompt(c.Context(), &o, words)
	})
	f := c.Flags()
	f.SortFlags = false
	f.BoolVarP(&o.interactive, "interactive", "i", false,
		"hold a conversation: read one prompt after the other from the terminal")
	f.StringVarP(&o.agent, "agent", "a", "",
		"the agent, by the `NAME` or file of its profile, or by its name in --settings")
	f.StringVar(&o.settings, "settings", "", "take the agent from an editor's settings.json `FILE`")
	o.network(f)
	f.StringVar(&o.cwd, "cwd", "", "the workspace, `DIR` (default the current folder)")
	f.StringArrayVar(&o.attach, "attach", nil,
		"attach this `FILE`, or a link to this URL, to the prompt (repeatable); or write @FILE in the text")
	f.StringVarP(&o.output, "output", "o", "text", "what to show: text, simple or jsonl")
	f.StringVar(&o.llm, "llm", "", "serve a model script `FILE` to the agent instead of a provider")
	f.StringVar(&o.mode, "mode", "", "begin in the mode with this `ID`")
	f.StringArrayVar(&o.settingsOf, "option", nil, "set a configuration option of the session, `K=V` (repeatable)")
	f.BoolVar(&o.listCommands, "list-commands", false, "list the agent's slash commands, and send no prompt")
	f.StringVar(&o.resume, "resume", "", "continue the session `ID`, or the session in a file from --save-session")
	f.StringVar(&o.save, "save-session", "",
		"write the session without secrets to `FILE`, for --resume, show and check")
	f.BoolVar(&o.write, "write", false, "let the agent write and edit files in the workspace")
	f.BoolVar(&o.yolo, "yolo", false,
		"let the agent do whatever it asks for, and run commands; writes stay in the workspace")
	f.BoolVar(&o.ask, "ask", false, "ask at the terminal about permission requests that --write does not allow")
	f.StringArrayVar(&o.env, "env", nil, "set a variable in the agent's environment, `K=V` (repeatable)")
	f.DurationVar(&o.timeout, "timeout", 0, "cancel a turn that takes longer (default never)")
	f.DurationVar(&o.startTimeout, "start-timeout", 0,
		"timeout for initialize and for opening the session (default: the profile's)")
	f.StringVar(&o.codes, "exit-codes", "simple",
		"the meaning of the exit status: simple (0 or 1), or acp (by the stop reason)")
	completeWords(c, "output", prompt.Outputs)
	completeWords(c, "exit-codes", prompt.Codes)
	_ = c.RegisterFlagCompletionFunc("agent", completeAgents)
	return c
}

// checkPrompting returns an error if the command line is wrong.
func (h *host) checkPrompting(o *prompting, c *cobra.Command, words []string) error {
	if o.output == "json" {
		o.output = "jsonl"
	}
	_, atTerminal := h.terminal()
	first := strings.Join(words[:min(1, len(words))], "")
	if err := cmp.Or(oneOf("--output", "output", o.output, prompt.Outputs()), wrong([]contradiction{
		{c.ArgsLenAtDash() >= 0 && len(o.command) == 0, "prompt: the agent's command is missing after --"},
		{!slices.Contains(prompt.Codes(), o.codes), fmt.Sprintf("--exit-codes: there is no %q%s; expected %s", o.codes,
			mistake.Meant(o.codes, prompt.Codes()), strings.Join(prompt.Codes(), ", "))},
		{o.listCommands && len(o.attach) > 0, "--attach needs a prompt, and --list-commands sends none"},
		{o.listCommands && len(words) > 0,
			fmt.Sprintf("prompt: unexpected argument %q: --list-commands sends no prompt", first)},
		{o.interactive && len(words) > 0, fmt.Sprintf("prompt: unexpected argument %q: -i reads prompts", first)},
		{o.interactive && o.listCommands, "-i needs prompts, and --list-commands sends none"},
		{o.interactive && !atTerminal, "-i: stdin is not a terminal; give the prompt as an argument, or on stdin without -i"},
		{o.ask && !atTerminal,
			"--ask: stdin is not a terminal, so nobody can be asked; --write and --yolo allow without asking"},
		{o.ask && o.yolo, "--ask and --yolo contradict each other: one asks, the other allows without asking"},
		{o.url != "" && (o.agent != "" || o.settings != ""),
			"--url contradicts --agent and --settings: each of them names the agent"},
		{o.startTimeout < 0, fmt.Sprintf("--start-timeout %v: a time cannot be negative", o.startTimeout)},
		{o.timeout < 0, fmt.Sprintf("--timeout %v: a time cannot be negative", o.timeout)},
	})); err != nil {
		return err
	}
	o.given = nil
	c.Flags().Visit(func(f *pflag.Flag) { o.given = append(o.given, f.Name) })
	return cmp.Or(o.check(), checkPairs("--option", o.settingsOf))
}

// terminal returns the terminal at which the user types, if there is one.
func (h *host) terminal() (*os.File, bool) {
	in, ok := h.in.(*os.File)
	return in, ok && isTerminal(in)
}

// prompt runs the command prompt.
func (h *host) prompt(ctx context.Context, o *prompting, words []string) error {
	work, err := h.workspace(o.cwd)
	if err != nil {
		return err
	}
	resume, err := sessionOf(o.resume)
	if err != nil {
		return err
	}
	agent, stop, err := h.ownAgent(o, work)
	if err != nil {
		return err
	}
	defer stop()
	if o.at != nil {
		return h.promptEndpoint(ctx, o, agent, words)
	}
	return h.promptAgent(ctx, o, agent, work, resume, words)
}

// promptAgent sends a prompt to an ACP agent in the folder work. resume is the session to continue, or "".
func (h *host) promptAgent(
	ctx context.Context, o *prompting, agent prompt.Agent, work, resume string, words []string,
) (err error) {
	servers, err := mcpServers(o.settings, h.absolute)
	if err != nil {
		return err
	}
	in, atTerminal := h.terminal()
	var console *prompt.Console
	if atTerminal {
		console = &prompt.Console{In: in, Out: h.err}
	}
	attached, err := h.attached(o.attach)
	if err != nil {
		return err
	}
	text, converse := "", o.interactive || atTerminal && len(words) == 0 && !o.listCommands
	if !o.listCommands && !converse {
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
		Agent: agent, Work: work, Resume: resume, MCP: servers, Mode: o.mode, Model: o.model, Settings: o.settingsOf,
		Text: text, Attach: attached, Typed: len(words) > 0 && words[0] != "-",
		ListCommands: o.listCommands, Converse: converse, Write: o.write, Yolo: o.yolo, Ask: o.ask, Timeout: o.timeout,
		Codes: o.codes, Version: version(), Log: log, Console: console,
		Screen: prompt.Screen{Output: o.output, Out: h.out, Err: h.err, Paint: h.style(h.err).put,
			Secrets: h.secrets(o.env...)},
	})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer close(signals)
	defer signal.Stop(signals)
	go func() {
		for s := range signals {
			if t.Interrupt(s) {
				signal.Stop(signals) // a further signal ends this process, and its keeper ends the agent
			}
		}
	}()
	err = t.Run()
	if ended, ok := errors.AsType[prompt.Status](err); ok {
		return status(ended)
	}
	return err
}

// workspace returns the folder of the session.
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

// attached returns the files and URLs to attach. It returns an error for a file that does not exist.
func (h *host) attached(names []string) (all []string, err error) {
	for _, name := range names {
		if !strings.Contains(name, "://") {
			file := h.absolute(name)
			if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
				return nil, fmt.Errorf("--attach %s: this is neither a file nor a URL", name)
			}
			name = file
		}
		all = append(all, name)
	}
	return all, nil
}

// promptText returns the prompt from the command line. If the line has no text, or only "-", it reads the prompt from
// stdin.
func (h *host) promptText(words []string) (string, error) {
	text := strings.Join(words, " ")
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

// sessionOf returns the id of the session to continue. word is the id itself, or a file with a saved session.
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

// newSessionLog returns the transcript of the session. If file, the value of --save-session, is not "", the
// transcript is also written there, readable only by the user. It is an error if the file exists but is not a
// transcript.
func newSessionLog(file string, agent prompt.Agent) (*transcript.Transcript, error) {
	header := transcript.Header{Tool: tool(), Agent: agent.Name, Protocol: "1"}
	if file == "" {
		return transcript.New(header, transcript.Options{Classifier: acpframe.Classifier{}})
	}
	if err := mayReplace(file); err != nil {
		return nil, fmt.Errorf("--save-session: %w", err)
	}
	log, err := transcript.New(header, transcript.Options{Classifier: acpframe.Classifier{}, Path: file,
		Redact: replay.Redaction{Protocol: recordings.V1(), Known: secret.New(agent.Command.Env...)}.Func()})
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
		return fmt.Errorf("%s is not a saved session, and prompt does not overwrite it", file)
	}
	return old.Close()
}
