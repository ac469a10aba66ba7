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
	// Summary is one line, a verb phrase; Detail the rest of its page.
	Summary, Detail string
	// Negatable: a line may put ! in front of it. Captures: a line may end in "as NAME". Blocks is the number of { }
	// that follow.
	Negatable, Captures bool
	Blocks              int
	// Passive: the command only looks, or declares something about the file, so that the run is the same without the
	// command. Commands of the group back count as passive without this field.
	Passive bool
	// Effect: the command expects an effect or an end. Its miss is then a failure even in a check without a
	// requirement.
	Effect bool
	// OfTool: a tool call may have to produce the effect that the command expects. The command's miss proves nothing if
	// that tool call failed.
	OfTool bool
	// Cuts: the command may cut off a turn, so that the model may wait at a gate for ever.
	Cuts bool
	// Process: the command is about the agent's process. If the agent has no local process, the scenario is skipped.
	Process bool
	// Alone: a scenario with this command needs a process of the agent that no other scenario used. Process implies
	// it.
	Alone bool
	// Compile reads the arguments of a line and records mistakes in them. A nil Step means that the line only declares
	// something.
	Compile func(l *Line[B]) Step[B]
	// Act is Compile for a line in a handler of a scripted agent.
	Act func(l *Line[B]) func(*serve.Run) error
}

// Step plays a line on a branch of the run.
type Step[B any] func(ctx context.Context, b B) error

// Dialect is the scenario language of one protocol: the protocol's own commands and patterns, and the common ones that
// the engine adds. B is the engine's branch type; the language only passes branches to steps. With Name "" it reads
// scenarios of any protocol.
type Dialect[B any] struct {
	// Name is the protocol's name for users and in the first line of a scenario.
	Name string
	// Suites has a folder of scenarios for each suite. SuitesAt is the path of Suites in the source tree.
	Suites   fs.FS
	SuitesAt string
	// Words are the protocol's own commands, Kinds its own kinds of patterns. Any and AnyKinds are the commands and
	// kinds of every protocol. Method is the kind of a pattern that begins with a method.
	Words, Any      []*Command[B]
	Kinds, AnyKinds []Kind
	Method          Kind
	// AgentActs are the protocol's own acts for handlers of a scripted agent, made with AgentAct. Events maps the
	// names of events in scripts to their methods.
	AgentActs []*Command[B]
	Events    map[string]string
	// Remote: the protocol's agents are servers, so that a scripted agent has no process for acts like exit.
	Remote bool
	// PatternHelp explains, in the help on patterns, where the path of a condition is looked up.
	PatternHelp string
	// StopReasons are the reasons with which a turn may end.
	StopReasons []string
	// Requirement reports whether a requirement has this id.
	Requirement func(id string) bool
	// Phase returns the step of a comment, which begins a phase of log and transcript. OfProcess wraps the step of a
	// command about the agent's process.
	Phase     func(text string) Step[B]
	OfProcess func(name string, do Step[B]) Step[B]
}

// Groups returns the groups of commands and their titles, in the order of the reference.
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

// Looks reports whether the command leaves the run unchanged.
func (c *Command[B]) Looks() bool { return c.Passive || c.Group == "back" }

// SetsUp reports whether the command belongs, or may belong, before the agent's start.
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

// Vocabulary returns the commands of editor and agent scripts by name. A name of both means the editor's command.
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

// Mistake is an error in a scenario file, which the user must fix. The agent is never to blame for it.
type Mistake = mistake.Mistake
