package main

import (
	"bufio"
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/language"
)

//go:embed templates
var templates embed.FS

// ciFile is a CI system that init knows: its name, its template, and the path of its file.
type ciFile struct{ name, template, file string }

var ciFiles = []ciFile{
	{"github", "github.yml", ".github/workflows/acp.yml"},
	{"gitlab", "gitlab.yml", ".gitlab-ci.yml"},
	{"jenkins", "Jenkinsfile", "Jenkinsfile"},
	{"forgejo", "forgejo.yml", ".forgejo/workflows/acp.yml"},
	{"woodpecker", "woodpecker.yml", ".woodpecker/acp.yml"},
	{"azure", "azure.yml", "azure-pipelines.yml"},
	{"none", "", ""},
}

func ciNames() []string {
	return lists.Map(ciFiles, func(c ciFile) string { return c.name })
}

// firstScenarios lists the templates of the scenarios that init writes.
var firstScenarios = []string{"hello.txtar", "cancel.txtar"}

// founding holds the flags of init.
type founding struct {
	name, ci, from string
	dry            bool
}

func initCommand(h *host) *cobra.Command {
	var o founding
	c := command("init", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		if dash := c.ArgsLenAtDash(); dash != 0 && len(args) > 0 {
			return fmt.Errorf("init: unexpected argument %q; the agent's command belongs after --", args[0])
		}
		return h.init(c, args, o)
	})
	c.Flags().StringVar(&o.name, "name", "",
		"the `NAME` of the agent (default: from the repository, or from the agent's command)")
	c.Flags().StringVar(&o.ci, "ci", "",
		"the CI system: "+strings.Join(ciNames(), ", ")+" (default: the one that the repository uses, else github)")
	c.Flags().StringVar(&o.from, "from", "",
		"where CI gets acp-test: `SOURCE` is a checkout's folder, a tarball of ci/release in this repository, the URL "+
			"of a tarball, a release's version, or latest (default: the release or checkout of this program)")
	c.Flags().BoolVar(&o.dry, "dry-run", false, "show what would be written, and write nothing")
	completeWords(c, "ci", ciNames)
	return c
}

var agentName = lazy.Regexp(`^[a-z0-9][a-z0-9._-]*$`)

func (h *host) init(c *cobra.Command, command []string, o founding) error {
	repo := look(h.cwd)
	_, err := os.Lstat(h.absolute(language.Config))
	again := err == nil && len(command) == 0
	if command, err = h.open(&o, repo, command, again); err != nil {
		return err
	}
	if !slices.Contains(ciNames(), o.ci) {
		return fmt.Errorf("--ci: there is no CI system %q%s; expected one of %s", o.ci, mistake.Meant(o.ci, ciNames()),
			strings.Join(ciNames(), ", "))
	}
	if again {
		files, err := h.ciFile(repo, o, again)
		if err != nil {
			return err
		}
		return h.initAgain(files, o.dry)
	}
	p := agents.AdHoc(command)
	if o.name == "" && slices.Equal(command, repo.Command) && agentName().MatchString(repo.Name) {
		o.name = repo.Name
	}
	o.name = cmp.Or(o.name, p.Name)
	if !agentName().MatchString(o.name) {
		return fmt.Errorf("--name %q: a name consists of small letters, digits, dots, dashes and underscores", o.name)
	}
	if _, err := p.Locate(h.sandbox()); err != nil && !o.dry {
		return fmt.Errorf("init: %w; nothing was written", err)
	}
	files, err := h.ciFile(repo, o, again)
	if err != nil {
		return err
	}
	add := func(learned shown) error {
		more, err := h.initFiles(p, o.name, repo, learned, o.dry)
		maps.Copy(files, more)
		return err
	}
	learned := shown{profile: p}
	if err := cmp.Or(add(learned), h.absent(files)); err != nil && !o.dry {
		return err // fail before the agent is started
	}
	if !o.dry {
		if learned, err = h.probe(c.Context(), p); err != nil {
			return fmt.Errorf("init: %w", err)
		}
		h.say("%s\n", learned)
	}
	if err := add(learned); err != nil {
		return err
	}
	if err := h.writeNew(files, o.dry); err != nil || o.dry {
		return err
	}
	return h.first(c)
}

// first runs the scenarios that init wrote, and tells the user how to run all others.
func (h *host) first(c *cobra.Command) error {
	all, err := protocols()[0].over("stdio")
	if err != nil {
		return err
	}
	fmt.Fprintf(h.out, "\nacp-test run acp --update\n")
	code := execute(c.Context(), []string{"run", "acp", "--update"},
		&host{in: h.in, out: h.out, err: h.err, env: h.env, cwd: h.cwd, self: h.self})
	next := "Commit these files."
	if code != 0 {
		next = "The agent does not pass its first scenarios yet. When it does, write their goldens: acp-test run acp --update"
	}
	own := len(firstScenarios)
	fmt.Fprintf(h.out, "\n%s\nOnly %d of %d scenarios ran, from acp/. Run all, as CI will: acp-test run\n", next, own,
		own+all)
	return ended(code)
}

// initAgain adds the CI file of another system to a repository in which init has already run.
func (h *host) initAgain(files map[string][]byte, dry bool) error {
	if len(files) == 0 {
		return fmt.Errorf("init: %s exists already, and with --ci none there is nothing else to write", language.Config)
	}
	if err := h.writeNew(files, dry); err != nil || dry {
		return err
	}
	fmt.Fprintf(h.out, "\n%s existed already. Commit the new file.\n", language.Config)
	return nil
}

// open fills in values that the command line does not set. It takes them from the repository; at a terminal it asks
// the user and offers the repository's values as defaults. It returns the agent's command.
func (h *host) open(o *founding, repo repository, command []string, again bool) ([]string, error) {
	_, atTerminal := h.terminal()
	in := bufio.NewReader(h.in)
	ci := cmp.Or(repo.CI, "github")
	if len(command) == 0 && !again {
		command = repo.Command
		if atTerminal {
			proposed := quoted(command)
			var err error
			if command, err = words(h.ask(in, "How is your agent started?"+offered(proposed)+" ", proposed)); err != nil {
				return nil, err
			}
			if o.ci == "" {
				o.ci = h.ask(in, "Which CI system ("+strings.Join(ciNames(), ", ")+")?"+offered(ci)+" ", ci)
			}
		}
		if len(command) == 0 {
			return nil, errors.New("init: the agent's command is missing, and no package.json, pyproject.toml, " +
				"Cargo.toml or go.mod here names it; usage: acp-test init -- AGENT…")
		}
		h.say("the agent is started by: %s\n", quoted(command))
	}
	o.ci = cmp.Or(o.ci, ci)
	return command, nil
}

func offered(answer string) string {
	if answer == "" {
		return ""
	}
	return " [" + answer + "]"
}

// ask prints a question and returns the line that the user types. For an empty line or at the end of input, it
// returns the default, otherwise.
func (h *host) ask(in *bufio.Reader, question, otherwise string) string {
	fmt.Fprint(h.out, question)
	line, _ := in.ReadString('\n')
	return cmp.Or(strings.TrimSpace(line), otherwise)
}

// ciFile returns the CI file of the chosen system, keyed by its path. The map is empty for the system "none". It is
// also empty if CI has no way to get this program and the user did not request a CI file.
func (h *host) ciFile(repo repository, o founding, asked bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, c := range ciFiles {
		if c.name != o.ci || c.file == "" {
			continue
		}
		from, err := h.sourceOf(o.from)
		if errors.Is(err, errUnknownSource) && !asked {
			fmt.Fprintf(h.err, "no CI file is written: %v\n  acp-test init --ci %s --from … adds it later\n", err, o.ci)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("init: %w", err)
		}
		h.say("%s assumes: %s\n", c.file, from.assumed)
		t, err := template.ParseFS(templates, "templates/"+c.template+".tmpl")
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, repo.recipe(from)); err != nil {
			return nil, err
		}
		files[c.file] = text.Bytes()
	}
	return files, nil
}

// initFiles returns all files that init writes except the CI file, keyed by path.
func (h *host) initFiles(p *agents.Profile, name string, repo repository, learned shown, dry bool) (map[string][]byte,
	error) {
	var b strings.Builder
	b.WriteString("# How to run the agent; see docs/profiles.md of acp-test.\n")
	if dry {
		b.WriteString("# A dry run does not start the agent, so this profile lacks what acp-test learns from a turn.\n")
	}
	fmt.Fprintf(&b, "name: %s\n", name)
	if title := learned.greeting.Path("agentInfo.title").Str(); title != "" {
		fmt.Fprintf(&b, "title: %s\n", flow(title))
	}
	b.WriteString("command: [")
	for i, w := range p.Command {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == 0 && !filepath.IsAbs(w) && strings.ContainsRune(w, '/') {
			w = "../" + strings.TrimPrefix(w, "./") // relative to the folder of the profile
		}
		b.WriteString(strconv.Quote(strings.ReplaceAll(w, "$", "$$")))
	}
	b.WriteString("]\n# acp-test starts the agent at the root of the repository.\ndir: ..\n")
	b.WriteString(learned.profileText())
	files := map[string][]byte{
		language.Config: []byte("# The defaults of acp-test run in this repository.\nagent: acp/" + name +
			".yaml\nscenarios: [acp]\n# The suites in acp-test: all, or a list such as [prompt-turn, cancel].\n" +
			"suites: all\ngoldens: acp/golden\n"),
		"acp/" + name + ".yaml": []byte(b.String()),
	}
	for _, scenario := range firstScenarios {
		text, err := templates.ReadFile("templates/" + scenario)
		if err != nil {
			return nil, err
		}
		files["acp/"+scenario] = text
	}
	if !has(h.cwd, ".gitignore") {
		files[".gitignore"] = []byte(languages[repo.Language].ignore + "acp-test-out*/\nrepro/\n")
	}
	return files, nil
}

// absent returns an error that lists the files that already exist, or nil if none does.
func (h *host) absent(files map[string][]byte) error {
	there := lists.Where(slices.Sorted(maps.Keys(files)), func(name string) bool {
		_, err := os.Lstat(h.absolute(name))
		return err == nil
	})
	if len(there) > 0 {
		return fmt.Errorf("init: these files exist already: %s; nothing was written", strings.Join(there, ", "))
	}
	return nil
}

// writeNew writes files below the user's folder. If one of them already exists, it writes none. With dry it only
// prints them.
func (h *host) writeNew(files map[string][]byte, dry bool) error {
	if err := h.absent(files); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if dry {
			h.say("would write %s:\n  %s\n", name,
				strings.ReplaceAll(strings.TrimSpace(string(files[name])), "\n", "\n  "))
			continue
		}
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

// words splits a command line as a shell does: at spaces, except inside quotes or after a backslash.
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
		return nil, fmt.Errorf("the command %s ends inside quotes or after a backslash", line)
	}
	if begun {
		all = append(all, word.String())
	}
	return all, nil
}
