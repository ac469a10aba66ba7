package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/serve"
)

// Command is one command of the scenario language. Help, errors and the
// reference page are made from it.
type Command struct {
	Name string
	// Group is where it stands in the reference: conditions, set-up, acts,
	// forward, back, structure.
	Group string
	// Args is the usage behind the name.
	Args string
	// Summary is one line, a verb phrase; Detail the rest of its page.
	Summary, Detail string
	// Negatable: ! in front of it is allowed. Captures: it may end in "as
	// NAME". Blocks is how many { } follow it.
	Negatable, Captures bool
	Blocks              int
	// Passive: it only looks, or says something about the file, so that the run
	// is the same without it. All that looks back is.
	Passive bool
	// Effect: it is about an effect or an end, so that a miss fails also in a
	// check without a requirement.
	Effect bool
	// OfTool: what it asks for may come of a tool call, so that a miss proves nothing
	// where the agent's own tool refused the call.
	OfTool bool
	// Cuts: it may cut a turn off, so that the model may be held for ever.
	Cuts bool
	// Process: it is about the agent's process. Where the agent has none here,
	// it does not apply and the scenario is skipped.
	Process bool
	// Alone: a scenario with it needs a process of the agent that no other used. So
	// does one about the process.
	Alone bool
	// Compile reads the arguments of a line, and notes what is wrong with them.
	// A nil Step means that the line only declares something.
	Compile func(l *Line) Step
	// Act is the same for what a scripted agent does.
	Act func(l *Line) func(*serve.Run) error
}

// Step is what a line does when it is played.
type Step = func(ctx context.Context, b *Branch) error

// Groups are the groups of commands in the order of the reference, with their
// titles.
func Groups() [][2]string {
	return [][2]string{
		{"conditions", "Conditions"}, {"setup", "Set-up"}, {"acts", "Acts"},
		{"forward", "Looking forward"}, {"back", "Looking back"}, {"structure", "Structure"},
	}
}

// Commands returns all commands of the language: those of the protocol, then
// those that any has.
func (p *Protocol) Commands() []*Command {
	all := slices.Clone(p.Words)
	for _, part := range [][]*Command{conditionCommands(p), setupCommands(), actCommands(), transportCommands(),
		forwardCommands(), backCommands(), structureCommands()} {
		all = append(all, part...)
	}
	return all
}

// CommandTable returns all commands of the language by their names.
func (p *Protocol) CommandTable() map[string]*Command { return tableOf(p.Commands()) }

// Looks reports whether a line of the command leaves the run as it is.
func (c *Command) Looks() bool { return c.Passive || c.Group == "back" }

// SetsUp reports whether a line of the command stands before the agent starts, or
// may.
func (c *Command) SetsUp() bool { return (c.Group == "setup" || c.Group == "conditions") && !c.Passive }

func tableOf(all []*Command) map[string]*Command {
	table := map[string]*Command{}
	for _, c := range all {
		table[c.Name] = c
	}
	return table
}

// Help returns the page of one command, or of a topic: "commands" lists all,
// "patterns" explains patterns.
func (p *Protocol) Help(topic string) (string, error) {
	switch topic {
	case "commands":
		return p.commandList(), nil
	case "patterns":
		return p.patternHelp(), nil
	case "agent-side":
		return p.agentHelp(), nil
	}
	table := tableOf(slices.Concat(p.agentActs(), p.agentCommands(), p.Commands())) // the editor's of a name explain it
	c, ok := table[topic]
	if !ok {
		names := []string{"commands", "patterns", "agent-side"}
		for n := range table {
			names = append(names, n)
		}
		return "", fmt.Errorf("no help on %q%s", topic, Suggestion(topic, names...))
	}
	return c.page(), nil
}

func (c *Command) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s.\n", c.usage(), strings.ToUpper(c.Summary[:1])+c.Summary[1:])
	if c.Detail != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Detail)
	}
	return b.String()
}

// namedArgs end the usage of a command that needs a name.
const namedArgs = " as NAME"

func (c *Command) usage() string {
	s := c.Name
	if c.Args != "" {
		s += " " + c.Args
	}
	if c.Negatable {
		s = "[!] " + s
	}
	if c.Captures && !strings.HasSuffix(c.Args, namedArgs) {
		s += " [as NAME]"
	}
	s += strings.Repeat(" { … }", c.Blocks)
	return s
}

func (p *Protocol) commandList() string {
	var b strings.Builder
	for _, g := range Groups() {
		fmt.Fprintf(&b, "%s\n", g[1])
		for _, c := range p.Commands() {
			if c.Group == g[0] {
				fmt.Fprintf(&b, "  %-15s %s\n", c.Name, c.Summary)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("acp-test help COMMAND explains one.\n")
	return b.String()
}

func (p *Protocol) patternHelp() string {
	var b strings.Builder
	b.WriteString("A pattern is a kind of entry and any number of conditions:\n\n" +
		"  KIND [path=value] [path!=value] [path~regexp] [path!~regexp] [path?]\n\n" +
		p.PatternHelp + "value may be a|b. path? asks that the field is there and not null;\n" +
		"result? asks only that a response is no error. In list.*.field the condition is\n" +
		"about the entries of a list: one of them has to be so, with != and !~ all.\n" +
		"session=NAME asks for another session than the current one, session=any for none.\n\n")
	for _, k := range p.kindList() {
		arg := k.Arg
		if arg == "?" {
			arg = "[X]"
		}
		fmt.Fprintf(&b, "  %-26s %s\n", strings.TrimSpace(k.Name+" "+arg), k.Help)
	}
	return b.String()
}

// Reference is the page of the whole language in Markdown, made from the
// commands.
func (p *Protocol) Reference() string {
	var b strings.Builder
	b.WriteString("# Scenario language\n\nThis page is generated by `acp-test help reference`.\n\n")
	for _, g := range Groups() {
		fmt.Fprintf(&b, "## %s\n\n", g[1])
		for _, c := range p.Commands() {
			if c.Group != g[0] {
				continue
			}
			fmt.Fprintf(&b, "### %s\n\n```\n%s\n```\n\n%s.\n\n", c.Name, c.usage(), strings.ToUpper(c.Summary[:1])+c.Summary[1:])
			if c.Detail != "" {
				b.WriteString(c.Detail + "\n\n")
			}
		}
	}
	b.WriteString("## Patterns\n\n```\n" + p.patternHelp() + "```\n\n## The agent's side\n\n```\n" + p.agentHelp() +
		"```\n")
	return b.String()
}
