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

// Command is one command of the scenario language. Help, errors and the reference page are generated from it.
type Command[B any] struct {
	Name string
	// Group is the command's section in the reference: conditions, setup, acts, forward, back, structure.
	Group string
	// Args is the usage text after the name.
	Args string
	// Summary is a verb phrase on one line. Detail is the rest of the command's help page.
	Summary, Detail string
	// Negatable means that a line may begin with "!". Captures means that a line may end with "as NAME". Blocks is the
	// number of { } blocks that follow.
	Negatable, Captures bool
	Blocks              int
	// Passive means that the run is the same without the command: it only looks, or declares something about the file.
	// Commands of the group back are passive even if this field is false.
	Passive bool
	// Effect means that the command expects an effect or an end. Its miss is a failure even in a check without
	// requirements.
	Effect bool
	// OfTool means that the expected effect may require a tool call. If that tool call failed, the command's miss proves
	// nothing.
	OfTool bool
	// Cuts means that the command may cut off a turn. The model may then wait at a gate for ever.
	Cuts bool
	// Process means that the command concerns the agent's process. If the agent has no local process, the scenario is
	// skipped.
	Process bool
	// Alone means that a scenario with this command needs an agent process that no other scenario has used. Process
	// implies Alone.
	Alone bool
	// Compile parses the arguments of a line and records mistakes in them. A nil Step means that the line is only a
	// declaration.
	Compile func(l *Line[B]) Step[B]
	// Act replaces Compile for a line in a handler of a scripted agent.
	Act func(l *Line[B]) func(*serve.Run) error
}

// Step plays a line on a branch of the run.
type Step[B any] func(ctx context.Context, b B) error

// Dialect is the scenario language of one protocol. It has the protocol's own commands and patterns, and the common
// ones, which the engine adds. B is the engine's branch type; the language only passes branches to steps. A Dialect
// with Name "" reads scenarios of any protocol.
type Dialect[B any] struct {
	// Name is the protocol's name, for users and for the first line of a scenario.
	Name string
	// Suites has a folder of scenarios for each suite. SuitesAt is the path of Suites in the source tree.
	Suites   fs.FS
	SuitesAt string
	// Words and Kinds are the protocol's own commands and kinds of patterns. Any and AnyKinds are those that every
	// protocol has. Method is the kind of patterns that begin with a method.
	Words, Any      []*Command[B]
	Kinds, AnyKinds []Kind
	Method          Kind
	// AgentActs lists the protocol's own acts for handlers of a scripted agent, made with AgentAct. Events maps the
	// short name of an event to its method.
	AgentActs []*Command[B]
	Events    map[string]string
	// Remote means that the protocol's agents are servers. A scripted agent then has no process for acts such as exit.
	Remote bool
	// PatternHelp is a text for the help on patterns. It explains where the path of a condition is looked up.
	PatternHelp string
	// StopReasons lists the reasons with which a turn may end.
	StopReasons []string
	// Requirement reports whether a requirement has this id.
	Requirement func(id string) bool
	// Phase returns the step of a comment, which starts a phase in the log and transcript. OfProcess wraps the step of a
	// command that concerns the agent's process.
	Phase     func(text string) Step[B]
	OfProcess func(name string, do Step[B]) Step[B]
}

// Groups returns pairs of a group's name and title, in the order of the reference.
func Groups() [][2]string {
	return [][2]string{
		{"conditions", "Conditions"}, {"setup", "Set-up"}, {"acts", "Acts"},
		{"forward", "Looking forward"}, {"back", "Looking back"}, {"structure", "Structure"},
	}
}

// Commands returns all commands for editor scripts, those of the protocol first.
func (d *Dialect[B]) Commands() []*Command[B] { return slices.Concat(d.Words, d.Any) }

// CommandTable returns all commands for editor scripts by name.
func (d *Dialect[B]) CommandTable() map[string]*Command[B] { return tableOf(d.Commands()) }

// Looks reports whether the run is the same without the command.
func (c *Command[B]) Looks() bool { return c.Passive || c.Group == "back" }

// SetsUp reports whether the command may come before the agent's start.
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

// Vocabulary returns the commands of editor and agent scripts by name. If both have a command with the same name, it
// returns the editor's.
func (d *Dialect[B]) Vocabulary() map[string]*Command[B] {
	return tableOf(slices.Concat(d.agentActs(), d.agentCommands(), d.Commands()))
}

// Help returns the help page of one command or topic. The topics are "commands" (a list of all), "patterns" and
// "agent-side".
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

// namedArgs is the end of the usage of a command that requires a name.
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
	b.WriteString("A pattern is a kind of entry, followed by any number of conditions:\n\n" +
		"  KIND [path=value] [path!=value] [path~regexp] [path!~regexp] [path?]\n\n" +
		d.PatternHelp + "value may be a|b. path? matches if the field exists and is not null;\n" +
		"result? matches every response that is not an error. list.*.field is about the\n" +
		"entries of a list: one entry must match, with != and !~ all of them must.\n" +
		"session=NAME looks at another session than the current one, session=any at all.\n\n")
	for _, k := range slices.Concat(d.Kinds, d.AnyKinds) {
		arg := k.Arg
		if arg == "?" {
			arg = "[X]"
		}
		fmt.Fprintf(&b, "  %-26s %s\n", strings.TrimSpace(k.Name+" "+arg), k.Help)
	}
	return b.String()
}

// Reference returns the reference page of the language in Markdown, generated from the commands.
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

// Mistake is an error in a scenario file, which the user must fix. It is never the agent's fault.
type Mistake = mistake.Mistake
