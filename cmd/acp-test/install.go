package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/mistake"
)

// installing holds the flags of record that change the settings of an editor.
type installing struct {
	in, out string // values of --install and --uninstall
	agent   string
	dry     bool
}

// pasted maps an editor whose settings are a program to the lines that its user must paste. The first string
// separates the words of the command line. The second is a template in which $WORDS is replaced by the quoted words.
var pasted = map[string][2]string{
	"agent-shell": {" ", ";; in init.el; each agent has its variable, this is Gemini's\n" +
		"(setq agent-shell-google-gemini-acp-command '($WORDS))\n"},
	"codecompanion": {", ", "-- in setup; each agent has its adapter, this is Gemini's\n" +
		"adapters = { acp = { gemini_cli = function()\n" +
		"  return require(\"codecompanion.adapters\").extend(\"gemini_cli\", {\n" +
		"    commands = { default = { $WORDS } },\n  })\nend } }\n"},
	"avante": {", ", "-- in setup; each agent has its provider, this is Gemini's\n" +
		"acp_providers = { [\"gemini-cli\"] = { command = $COMMAND, args = { $ARGS } } }\n"},
}

// editor returns the value of --install or --uninstall, or "" if neither is set.
func (o *installing) editor() string { return o.in + o.out }

// check returns an error if the flags contradict each other or the words after -- do not fit them.
func (o *installing) check(c *cobra.Command, args []string) error {
	_, lines := pasted[o.editor()]
	switch {
	case o.editor() == "":
		return errors.New("record: --agent and --dry-run require --install or --uninstall")
	case o.in != "" && o.out != "":
		return errors.New("--install and --uninstall contradict each other")
	case c.Flags().Changed("url"):
		return errors.New("record: --url cannot be used with --install: an editor's settings name commands")
	case len(args) > 0 && !lines:
		return fmt.Errorf("record: unexpected argument %q: the editor's settings name the agent's command", args[0])
	}
	return nil
}

// settingsFile returns the settings file of a known editor, or the absolute path of the settings file that editor
// names. It returns an error for a bare word that is neither.
func (h *host) settingsFile(editor string) (string, error) {
	home, _ := h.getenv("HOME")
	if home == "" {
		home, _ = h.getenv("USERPROFILE")
	}
	switch editor {
	case "jetbrains":
		return filepath.Join(home, ".jetbrains", "acp.json"), nil
	case "zed":
		config, _ := h.getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(config) || runtime.GOOS == "darwin" {
			config = filepath.Join(home, ".config")
		}
		if data, ok := h.getenv("APPDATA"); ok && runtime.GOOS == "windows" {
			config = data
		}
		return filepath.Join(config, "zed", "settings.json"), nil
	}
	file := h.absolute(editor)
	if _, err := os.Stat(file); err != nil && filepath.Base(editor) == editor {
		names := []string{"zed", "jetbrains", "agent-shell", "codecompanion", "avante"}
		return "", fmt.Errorf("%q is neither an editor nor a settings file%s; known editors: %s", editor,
			mistake.Meant(editor, names), strings.Join(names, ", "))
	}
	return file, nil
}

// wrapper returns the wrapper that --install puts before the agent's command: record, with the flags of this command
// line.
func (h *host) wrapper(c *cobra.Command, o *recording) agents.Wrapper {
	words := []string{h.self, "record", "--ring=" + o.ring, "--out=" + o.out}
	for _, name := range []string{"live", "llm", "keep-text", "mask-text", "no-files"} {
		if f := c.Flags().Lookup(name); f.Changed {
			words = append(words, "--"+name+"="+f.Value.String())
		}
	}
	for _, p := range o.redact {
		words = append(words, "--redact="+p)
	}
	return agents.Wrapper{Words: append(words, "--"), Agent: o.install.agent, Ours: oursIn}
}

// recorder matches the words of a command line that records into a ring. The program may have any name.
var recorder = lazy.Regexp(`^[^\x00]+\x00record\x00(?:.*\x00)?--ring\b`)

// oursIn returns how many words of argv come before the agent's command. It returns 0 if --install did not write
// argv.
func oursIn(argv []string) int {
	end := slices.Index(argv, "--")
	if end < 0 || end == len(argv)-1 || !recorder().MatchString(strings.Join(argv[:end], "\x00")) {
		return 0
	}
	return end + 1
}

// install changes an editor's settings so that its agents run under record, or undoes that. For editors whose
// settings are programs, it prints lines to paste instead.
func (h *host) install(c *cobra.Command, o *recording, agent []string) error {
	flag, editor := "--install", o.install.editor()
	if o.install.out != "" {
		flag = "--uninstall"
	}
	w := h.wrapper(c, o)
	if lines, ok := pasted[editor]; ok {
		if flag == "--uninstall" {
			fmt.Fprintln(h.out, "Remove from your settings the lines that --install printed.")
			return nil
		}
		if len(agent) == 0 {
			agent = []string{"gemini", "--acp"}
		}
		words := lists.Map(append(w.Words, agent...), strconv.Quote)
		fmt.Fprint(h.out, strings.NewReplacer("$WORDS", strings.Join(words, lines[0]), "$COMMAND", words[0],
			"$ARGS", strings.Join(words[1:], lines[0])).Replace(lines[1]))
		return nil
	}
	file, err := h.settingsFile(editor)
	var src []byte
	if err == nil {
		src, err = os.ReadFile(file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	var text []byte
	var changed, already []string
	if o.install.in != "" {
		text, changed, already, err = w.Wrap(file, src)
	} else {
		text, changed, err = w.Unwrap(file, src)
	}
	if err == nil && len(changed) == 0 {
		err = unchanged(file, src, o, already)
	}
	if err != nil {
		return err
	}
	shown := secret.New(h.env...).Text(udiff.Unified(file, file, string(src), string(text)))
	fmt.Fprint(h.out, printable.Text(strings.ReplaceAll(shown, "\r\n", "\n")))
	if o.install.dry {
		fmt.Fprintln(h.out, "\nNothing was written, because of --dry-run.")
		return nil
	}
	if err := replaceSettings(file, text); err != nil {
		return err
	}
	_, skipped, err := agents.ParseSettings(file, src)
	h.installed(o, editor, changed, append(skipped, lists.Map(already, func(name string) string {
		return name + ": it is recorded already"
	})...))
	return err
}

// installed tells the user which agents are recorded now, where the recordings go, and how to undo it.
func (h *host) installed(o *recording, editor string, changed, left []string) {
	if o.install.out != "" {
		fmt.Fprintf(h.out, "\nNo longer recorded: %s. Recordings stay where they are.\n", strings.Join(changed, ", "))
		return
	}
	fmt.Fprintf(h.out, `
Recorded from the next start of the agent on: %s%s
Recordings:  %s (--ring=%s limits their number, size and age; the oldest are removed)
Kept:        %s (when something goes wrong, or by acp-test keep)
Undo:        acp-test record --uninstall %s
`, strings.Join(changed, ", "), because(left), o.out, o.ring, filepath.Join(o.out, "kept"), editor)
}

// unchanged returns an error that explains why install changed no entry in the settings.
func unchanged(file string, src []byte, o *recording, already []string) error {
	if len(already) > 0 {
		return fmt.Errorf("%s: already recorded: %s; acp-test record --uninstall %s removes the recorder", file,
			strings.Join(already, ", "), o.install.in)
	}
	list, skipped, err := agents.ParseSettings(file, src)
	names := lists.Map(list, func(p *agents.Profile) string { return p.Title })
	switch agent := o.install.agent; {
	case err != nil:
		return err
	case len(list) == 0 && len(skipped) > 0:
		return fmt.Errorf("%s: no entry in agent_servers has a command%s", file, because(skipped))
	case len(list) > 0 && agent != "" && !slices.Contains(names, agent):
		return fmt.Errorf("%s: it has no agent %q%s; it has %s%s", file, agent, mistake.Meant(agent, names),
			strings.Join(names, ", "), because(skipped))
	}
	if o.install.in != "" {
		return fmt.Errorf("%s: it has no agent_servers, the list in which editors name their agents", file)
	}
	return fmt.Errorf("%s: nothing to remove: no agent's command is acp-test record --ring", file)
}

// replaceSettings replaces the content of a settings file and keeps its mode. A symbolic link stays a link to the new
// file.
func replaceSettings(file string, text []byte) error {
	file, err := filepath.EvalSymlinks(file)
	info, failed := os.Stat(file)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return replaceFile(file, text, info.Mode().Perm())
}
