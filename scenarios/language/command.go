package language

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/serve"
)

// Command is one command of the scenario language. Help, errors and the
// reference page are made from it.
type Command[B any] struct {
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
	// where that call failed.
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
	Compile func(l *Line[B]) Step[B]
	// Act is the same for what a scripted agent does.
	Act func(l *Line[B]) func(*serve.Run) error
}

// Step is what a line does when it is played on a branch of the run.
type Step[B any] func(ctx context.Context, b B) error

// Dialect is the scenario language of one protocol: the words and patterns that any protocol
// has, which the engine adds, and its own. B is the engine's line of control, which the
// language hands to steps and never looks into. Name "" takes scenarios of any protocol.
type Dialect[B any] struct {
	// Name is what users and the first line of a scenario call the protocol.
	Name string
	// Suites has a folder of scenarios for each suite. SuitesAt is its place in the source tree.
	Suites   fs.FS
	SuitesAt string
	// Words are the protocol's own commands, Kinds its own kinds of patterns. Any are the
	// commands that every protocol has, AnyKinds the kinds; Method is the kind of a pattern that
	// is the name of a method.
	Words, Any      []*Command[B]
	Kinds, AnyKinds []Kind
	Method          Kind
	// AgentActs are the protocol's own acts for handlers of a scripted agent, made with
	// AgentAct. Events are the methods that a handler may be for, by their names in scripts.
	AgentActs []*Command[B]
	Events    map[string]string
	// Remote: its agents are servers, so that a scripted one has no process to act on.
	Remote bool
	// PatternHelp says in help where the path of a condition is looked up.
	PatternHelp string
	// StopReasons are the reasons with which a turn may end.
	StopReasons []string
	// Requirement reports whether there is a requirement of an id.
	Requirement func(id string) bool
	// Phase returns the step of a comment, which structures log and transcript. OfProcess
	// returns the step of a command about the agent's process.
	Phase     func(text string) Step[B]
	OfProcess func(name string, do Step[B]) Step[B]
}

// Groups are the groups of commands in the order of the reference, with their
// titles.
func Groups() [][2]string {
	return [][2]string{
		{"conditions", "Conditions"}, {"setup", "Set-up"}, {"acts", "Acts"},
		{"forward", "Looking forward"}, {"back", "Looking back"}, {"structure", "Structure"},
	}
}

// Commands returns all commands of the language, those of the protocol first.
func (d *Dialect[B]) Commands() []*Command[B] { return slices.Concat(d.Words, d.Any) }

// CommandTable returns all commands of the language by their names.
func (d *Dialect[B]) CommandTable() map[string]*Command[B] { return tableOf(d.Commands()) }

// Looks reports whether a line of the command leaves the run as it is.
func (c *Command[B]) Looks() bool { return c.Passive || c.Group == "back" }

// SetsUp reports whether a line of the command stands before the agent starts, or
// may.
func (c *Command[B]) SetsUp() bool {
	return (c.Group == "setup" || c.Group == "conditions") && !c.Passive
}

func tableOf[B any](all []*Command[B]) map[string]*Command[B] {
	table := map[string]*Command[B]{}
	for _, c := range all {
		table[c.Name] = c
	}
	return table
}

// Vocabulary returns the commands of both sides by their names, the editor's where both have one.
func (d *Dialect[B]) Vocabulary() map[string]*Command[B] {
	return tableOf(slices.Concat(d.agentActs(), d.agentCommands(), d.Commands()))
}

// Help returns the page of one command, or of a topic: "commands" lists all,
// "patterns" explains patterns.
func (d *Dialect[B]) Help(topic string) (string, error) {
	switch topic {
	case "commands":
		return d.commandList(), nil
	case "patterns":
		return d.patternHelp(), nil
	case "agent-side":
		return d.agentHelp(), nil
	}
	table := d.Vocabulary()
	c, ok := table[topic]
	if !ok {
		names := slices.AppendSeq([]string{"commands", "patterns", "agent-side"}, maps.Keys(table))
		return "", fmt.Errorf("no help on %q%s", topic, mistake.Meant(topic, names))
	}
	return c.page(), nil
}

func (c *Command[B]) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s.\n", c.usage(), strings.ToUpper(c.Summary[:1])+c.Summary[1:])
	if c.Detail != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Detail)
	}
	return b.String()
}

// namedArgs end the usage of a command that needs a name.
const namedArgs = " as NAME"

func (c *Command[B]) usage() string {
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

func (d *Dialect[B]) commandList() string {
	var b strings.Builder
	for _, g := range Groups() {
		fmt.Fprintf(&b, "%s\n", g[1])
		for _, c := range d.Commands() {
			if c.Group == g[0] {
				fmt.Fprintf(&b, "  %-15s %s\n", c.Name, c.Summary)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("acp-test help COMMAND explains one.\n")
	return b.String()
}

func (d *Dialect[B]) patternHelp() string {
	var b strings.Builder
	b.WriteString("A pattern is a kind of entry and any number of conditions:\n\n" +
		"  KIND [path=value] [path!=value] [path~regexp] [path!~regexp] [path?]\n\n" +
		d.PatternHelp + "value may be a|b. path? asks that the field is there and not null;\n" +
		"result? asks only that a response is no error. In list.*.field the condition is\n" +
		"about the entries of a list: one of them has to be so, with != and !~ all.\n" +
		"session=NAME asks for another session than the current one, session=any for none.\n\n")
	for _, k := range slices.Concat(d.Kinds, d.AnyKinds) {
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
func (d *Dialect[B]) Reference() string {
	var b strings.Builder
	b.WriteString("# Scenario language\n\nThis page is generated by `acp-test help reference`.\n\n")
	for _, g := range Groups() {
		fmt.Fprintf(&b, "## %s\n\n", g[1])
		for _, c := range d.Commands() {
			if c.Group != g[0] {
				continue
			}
			fmt.Fprintf(&b, "### %s\n\n```\n%s\n```\n\n%s.\n\n", c.Name, c.usage(), strings.ToUpper(c.Summary[:1])+c.Summary[1:])
			if c.Detail != "" {
				b.WriteString(c.Detail + "\n\n")
			}
		}
	}
	b.WriteString("## Patterns\n\n```\n" + d.patternHelp() + "```\n\n## The agent's side\n\n```\n" + d.agentHelp() +
		"```\n")
	return b.String()
}

// Mistake is something wrong with a scenario file: the user's to mend, never the
// agent's.
type Mistake = mistake.Mistake
