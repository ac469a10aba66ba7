package main

import (
	"cmp"
	"embed"
	_ "embed" // the pages
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/docs"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
)

// The pages about writing scenarios and profiles.
var (
	//go:embed help/scenario.txt
	scenarioHelp string
	//go:embed help/profile.txt
	aboutProfiles string
)

//go:embed help/*.txtar
var archives embed.FS

// texts maps ARCHIVE/FILE to the text of each file in the embedded archives.
var texts = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, archive := range []string{"commands", "pages"} {
		raw, _ := archives.ReadFile("help/" + archive + ".txtar") // the file is embedded
		for _, f := range txtar.Parse(raw).Files {
			all[archive+"/"+f.Name] = string(f.Data)
		}
	}
	return all
})

// page returns the introduction of a reference page.
func page(name string) string { return texts()["pages/"+name] }

// command returns a command of the program. Its usage, texts and examples are in help/commands.txtar.
func command(name string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	about, examples, _ := strings.Cut(texts()["commands/"+name], "\nExamples:\n")
	use, about, _ := strings.Cut(about, "\n")
	short, long, _ := strings.Cut(about, "\n")
	return &cobra.Command{Use: use, Short: short, Long: strings.TrimSpace(long),
		Example: strings.TrimRight(examples, "\n"), Args: args, RunE: run}
}

// helpCommand explains commands of the program, and words and topics of the scenario language. If a command and a
// word have the same name, it explains both.
func helpCommand(h *host) *cobra.Command {
	c := command("help", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		root := c.Root()
		if len(args) == 0 {
			h.explain(root, true)
			return nil
		}
		if len(args) == 2 && slices.Contains(kinds, args[0]) {
			args = args[1:]
		}
		if sub, rest, err := root.Find(args); len(args) > 1 && err == nil && len(rest) == 0 {
			h.explain(sub, true)
			return nil
		}
		if len(args) > 1 {
			return fmt.Errorf("help: unexpected argument %q; usage: acp-test help [KIND] [TOPIC]", args[1])
		}
		return h.help(root, args[0])
	})
	c.ValidArgsFunction = func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return topics(c.Root()), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// kinds lists words that the user may type before a topic, as in "help rule NAME"; help ignores them.
var kinds = []string{"command", "rule", "requirement", "word"}

func topics(root *cobra.Command) []string {
	names := []string{"scenario", "commands", "patterns", "reference", "model", "llm", "profile", "rules", "requirements",
		"suites", "faults", "sabotage", "personas", "gate", "causes", "liberties", "goldens", "verdicts"}
	return slices.Concat(names, commandNames(root),
		lists.Map(acp.V1().Commands(), func(c *scenarios.Command) string { return c.Name }))
}

// ids returns the ids of rules and requirements.
func ids() []string {
	set := invariants.V1()
	return append(lists.Map(set.Rules(), func(r rules.Rule) string { return r.ID }),
		lists.Map(set.Requirements(), func(q rules.Requirement) string { return q.ID })...)
}

// written returns the full page of a topic. ok is false if the topic has no such page.
func (h *host) written(root *cobra.Command, topic string) (page string, ok bool) {
	switch topic {
	case "scenario", "scenarios":
		return scenarioHelp, true
	case "reference":
		return acp.V1().Reference(), true
	case "model", "llm":
		return docs.Page("reference/model-script")
	case "profile", "profiles":
		return profileHelp(), true
	case "sabotage":
		return sabotageHelp(), true
	case "rules", "requirements", "personas":
		return pages(root)[topic], true
	}
	if r, ok := invariants.V1().Rule(topic); ok {
		text := ruleText(r) + examplesOf(invariants.V1(), r.ID, everyPoint)
		if page, ok := explainV2(topic); ok {
			text += "\nIn version 2 (--protocol acp-v2):\n\n" + page
		}
		return text, true
	}
	if q, ok := invariants.V1().Requirement(topic); ok {
		return explainRequirement(q), true
	}
	return explainV2(topic)
}

// help prints everything on a topic: a command, a page of the guide, a word of the scenario language.
func (h *host) help(root *cobra.Command, topic string) error {
	switch topic {
	case "suites":
		return h.suites()
	case "faults":
		fmt.Fprint(h.out, "acp-test run --fault NAME tests the reference agent with one of its deliberate faults, and\n"+
			"acp-test help RULE names the faults that a rule finds. The faults are:\n\n")
		return h.listDifferences(reference{protocol: cmp.Or(h.protocol, faults.ACPv1), listFaults: true})
	}
	if page, ok := h.written(root, topic); ok {
		fmt.Fprint(h.out, page)
		return nil
	}
	found := false
	for _, c := range root.Commands() {
		if c.Name() == topic && !c.Hidden {
			h.explain(c, true)
			found = true
		}
	}
	word, err := acp.V1().Help(topic)
	if err != nil {
		word, err = acp.V2().Help(topic)
	}
	for _, name := range []string{topic, topic + "s"} {
		if text, ok := docs.Page(name); ok {
			fmt.Fprint(h.out, text)
			if found || err != nil {
				return nil
			}
			found = true
		}
	}
	switch {
	case err == nil && found:
		fmt.Fprintf(h.out, "\nIn a scenario:\n\n%s", word)
	case err == nil:
		fmt.Fprint(h.out, word)
	case !found:
		return fmt.Errorf("there is no help on %q%s: acp-test help help lists the topics", topic,
			mistake.Meant(topic, append(topics(root), ids()...)))
	}
	return nil
}

// explain prints the description and the flags of a command. The description is the full text if long, else one line.
// Flags are wrapped to the terminal's width.
func (h *host) explain(c *cobra.Command, long bool) {
	says := strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	if long && c.Long != "" {
		says = strings.TrimSpace(c.Long)
	}
	usage := c.UseLine()
	if c.HasAvailableSubCommands() {
		usage = c.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(h.out, "%s\n\nUsage:\n  %s\n", says, usage)
	if long && c.HasExample() {
		fmt.Fprintf(h.out, "\nExamples:\n%s\n", c.Example)
	}
	h.commands(c)
	for _, g := range flagGroups(c, long) {
		if g.HasAvailableFlags() {
			fmt.Fprintf(h.out, "\n%s:\n%s\n", g.title, strings.TrimRight(g.FlagUsagesWrapped(width(h.out)), "\n"))
		}
	}
	if c.CommandPath() == "acp-test run" && !long {
		fmt.Fprintln(h.out, "\nAll flags, under headings: acp-test help run")
	} else if !long {
		fmt.Fprintf(h.out, "\nMore: acp-test help%s\n", strings.TrimPrefix(c.CommandPath(), "acp-test"))
	}
}

// commandGroups lists the headings in the list of commands, each followed by the names of its commands.
var commandGroups = [][2]string{
	{"Every day", "run init prompt agents review help"},
	{"Find bugs", "sweep explore conformance matrix reduce upgrade"},
	{"Files", "lint fmt show check diff replay convert report ui mcp"},
	{"Editors", "record keep serve editors"},
	{"Parts", "fakellm refagent completion version"},
}

// commands prints the subcommands of c. For the program itself, it prints them in groups with headings.
func (h *host) commands(c *cobra.Command) {
	groups := commandGroups
	if c.HasParent() {
		groups = [][2]string{{"Commands", ""}}
		for _, sub := range c.Commands() {
			groups[0][1] += " " + sub.Name()
		}
	}
	for _, g := range groups {
		if !c.HasAvailableSubCommands() {
			return
		}
		fmt.Fprintf(h.out, "\n%s:\n", g[0])
		for _, name := range strings.Fields(g[1]) {
			if sub, _, err := c.Find([]string{name}); err == nil && sub != c {
				fmt.Fprintf(h.out, "  %-12s %s\n", sub.Name(), sub.Short)
			}
		}
	}
}

// flagGroup is a group of flags under a heading.
type flagGroup struct {
	*pflag.FlagSet
	title string
}

// runGroups lists the headings for the flags of run, each followed by the names of its flags. The first group is for
// everyday use. Flags in no group come last.
var runGroups = [][2]string{
	{"Flags of every day", "agent suite run failed budget jobs watch update report out verbose quiet"},
	{"The agent", "settings fault liberty url over header env pass-env profile auth-method"},
	{"Which scenarios", "since tag list shard durations"},
	{"How they run", "repeat fresh until-fail fail-fast seed timeout step-timeout linger debug keep editor sabotage " +
		"no-trap isolate isolate-read perturb smoke no-smoke"},
	{"How they are judged", "strict golden golden-required baseline baseline-write against severity"},
}

// flagGroups returns the flags of a command. For run it returns the everyday flags or, if long is set, all flags
// under headings.
func flagGroups(c *cobra.Command, long bool) (all []flagGroup) {
	rest := flagGroup{pflag.NewFlagSet("", pflag.ContinueOnError), "Flags"}
	rest.SortFlags = c.LocalFlags().SortFlags
	in := map[string]int{}
	if c.CommandPath() == "acp-test run" {
		for _, g := range runGroups {
			for _, name := range strings.Fields(g[1]) {
				in[name] = len(all) + 1
			}
			all = append(all, flagGroup{pflag.NewFlagSet("", pflag.ContinueOnError), g[0]})
			all[len(all)-1].SortFlags = false
		}
		rest.title = "More flags"
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if n := in[f.Name]; n > 0 {
			all[n-1].AddFlag(f)
		} else {
			rest.AddFlag(f)
		}
	})
	if all != nil && !long {
		return all[:1]
	}
	return append(all, rest)
}

// suites prints the shipped suites and their scenarios.
func (h *host) suites() error {
	list, err := acp.V1().Shipped()
	if err != nil {
		return err
	}
	suite := ""
	for _, s := range list {
		if s.Suite != suite {
			suite = s.Suite
			fmt.Fprintf(h.out, "%s\n", suite)
		}
		fmt.Fprintf(h.out, "  %-32s %s\n", s.ID, strings.TrimSuffix(s.Title, "."))
	}
	return nil
}

// profileHelp returns the page on writing a profile.
func profileHelp() string {
	var tools strings.Builder
	for _, t := range agents.NeutralTools() {
		fmt.Fprintf(&tools, "  %-12s%s", t.Name, strings.Join(t.Args, ", "))
		if len(t.Can) > 0 {
			fmt.Fprintf(&tools, "; cannot: %s", strings.Join(t.Can, ", "))
		}
		tools.WriteByte('\n')
	}
	return strings.NewReplacer("WIRES", "or "+strings.Join(fakellm.Wires(), ", "), "TOOLS\n", tools.String(),
		"CHANGES", strings.Join(fakellm.Transforms(), ", ")).Replace(aboutProfiles)
}
