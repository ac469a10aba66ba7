package main

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/scenarios"
)

//go:embed templates
var templates embed.FS

// ciFiles are the CI systems init knows: their template, and where it belongs.
var ciFiles = []struct{ name, template, file string }{
	{"github", "github.yml", ".github/workflows/acp.yml"},
	{"gitlab", "gitlab.yml", ".gitlab-ci.yml"},
	{"jenkins", "Jenkinsfile", "Jenkinsfile"},
	{"none", "", ""},
}

func ciNames() []string {
	var names []string
	for _, c := range ciFiles {
		names = append(names, c.name)
	}
	return names
}

func initCommand(h *host) *cobra.Command {
	var name, ci string
	c := &cobra.Command{
		Use:   "init [-- AGENT…]",
		Short: "makes a repository one whose agent is tested",
		Long: `Writes into this folder what testing an agent needs, and runs it:

  acp-test.yaml      the defaults of acp-test run
  acp/NAME.yaml      the agent's profile
  acp/hello.txtar    a first scenario
  acp/golden/        its golden
  a CI file          for GitHub, GitLab or Jenkins

What the command line leaves open is asked. No file is overwritten. The exit
status is that of the first run.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); dash != 0 && len(args) > 0 {
				return fmt.Errorf("init: %q is too much; the agent's command comes after --", args[0])
			}
			return h.init(c, args, name, ci)
		},
	}
	c.Flags().StringVar(&name, "name", "", "what to call the agent, `NAME` (default from its command)")
	c.Flags().StringVar(&ci, "ci", "", "the CI system: "+strings.Join(ciNames(), ", "))
	completeWords(c, "ci", ciNames)
	return c
}

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

func (h *host) init(c *cobra.Command, command []string, name, ci string) error {
	in := bufio.NewReader(h.in)
	if len(command) == 0 {
		answer := h.ask(in, "How is your agent started? ", "")
		var err error
		if command, err = words(answer); err != nil {
			return err
		}
		if len(command) == 0 {
			return errors.New("init: the agent's command is missing; usage: acp-test init -- AGENT…")
		}
		if ci == "" {
			ci = h.ask(in, "Which CI system ("+strings.Join(ciNames(), ", ")+")? [github] ", "github")
		}
	}
	if ci == "" {
		ci = "github"
	}
	if !slices.Contains(ciNames(), ci) {
		return fmt.Errorf("--ci: there is no %q%s; they are %s", ci, meant(ci, ciNames()), strings.Join(ciNames(), ", "))
	}
	p := agents.AdHoc(command)
	if name == "" {
		name = p.Name
	}
	if !agentName.MatchString(name) {
		return fmt.Errorf("--name %q: a name consists of small letters, digits, dots, dashes and underscores", name)
	}
	files, err := initFiles(p, name, ci)
	if err != nil {
		return err
	}
	if err := h.writeNew(files); err != nil {
		return err
	}
	fmt.Fprintf(h.out, "\nacp-test run --update\n")
	if code := execute(c.Context(), []string{"run", "--update"},
		&host{in: h.in, out: h.out, err: h.err, env: h.env, cwd: h.cwd, self: h.self}); code != 0 {
		fmt.Fprintf(h.out, "\nThe agent does not pass its first scenario yet. When it does, write the golden: acp-test "+
			"run --update\n")
		return status(code)
	}
	fmt.Fprintf(h.out, "\nCommit these files. From now on: acp-test run\n")
	return nil
}

// ask asks a question and reads a line; at the end of input the answer is the
// default.
func (h *host) ask(in *bufio.Reader, question, otherwise string) string {
	fmt.Fprint(h.out, question)
	line, _ := in.ReadString('\n')
	if line = strings.TrimSpace(line); line != "" {
		return line
	}
	return otherwise
}

// initFiles are the files of a repository, by their path.
func initFiles(p *agents.Profile, name, ci string) (map[string][]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# How to run the agent; see docs/profiles.md of acp-test.\nname: %s\ncommand: [", name)
	for i, w := range p.Command {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == 0 && !filepath.IsAbs(w) && strings.ContainsRune(w, '/') {
			w = "../" + strings.TrimPrefix(w, "./") // from the folder of this file
		}
		b.WriteString(strconv.Quote(strings.ReplaceAll(w, "$", "$$")))
	}
	b.WriteString("]\n# It is started at the root of the repository.\ndir: ..\n# Every way an agent may find its model " +
		"leads to the fake one, $LLM. Keep what\n# yours reads. Its wire format and its tools are learned from its " +
		"requests.\nenv:\n")
	var keys []string
	for k := range p.Env {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, "  %s: %s\n", k, p.Env[k])
	}
	hello, err := templates.ReadFile("templates/hello.txtar")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		scenarios.Config: []byte("# What acp-test run does in this repository.\nagent: acp/" + name +
			".yaml\nscenarios: [acp]\ngoldens: acp/golden\n"),
		"acp/" + name + ".yaml": []byte(b.String()),
		"acp/hello.txtar":       hello,
	}
	for _, c := range ciFiles {
		if c.name == ci && c.file != "" {
			if files[c.file], err = templates.ReadFile("templates/" + c.template); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// writeNew writes files below the user's folder, or none if one is there.
func (h *host) writeNew(files map[string][]byte) error {
	var names, there []string
	for name := range files {
		names = append(names, name)
		if _, err := os.Lstat(h.absolute(name)); err == nil {
			there = append(there, name)
		}
	}
	slices.Sort(names)
	if len(there) > 0 {
		slices.Sort(there)
		return fmt.Errorf("init: %s is there already; nothing was written", strings.Join(there, ", "))
	}
	for _, name := range names {
		file := h.absolute(name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return err
		}
		fmt.Fprintf(h.out, "wrote %s\n", name)
	}
	return nil
}

// words splits a command line as a shell does: spaces separate, quotes and
// backslashes keep together.
func words(line string) ([]string, error) {
	var all []string
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			if begun {
				all = append(all, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("the command %s ends inside a quote", line)
	}
	if begun {
		all = append(all, word.String())
	}
	return all, nil
}
