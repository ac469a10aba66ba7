package language

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
)

// AgentScript is the script of a scenario that begins with "role agent". It contains the agent's reactions to the
// editor under test, and the checks of the editor.
type AgentScript struct {
	serve.Script
	RulesOff map[string]string
	Checks   []AgentCheck
}

// AgentCheck is a check of an agent-side scenario.
type AgentCheck struct {
	Slug, Title  string
	Requirements []string
	Line         int
	Lines        []AgentExpectation
}

// AgentExpectation is one line of a check: a condition on a frame of the editor, or on its other behavior.
type AgentExpectation struct {
	Text   string
	Negate bool
	// What is "sent", "tried", "repeated", "answered", "shown", "ended", "hung-up", "left-open" or "left-running". About
	// is a method, the name of a request, or a regular expression, depending on What.
	What, About string
	// Path is the path of the value that a repeated frame has again.
	Path string
	// Where restricts when the line applies. It is a regular expression for text that the editor must show, or the name
	// of a request that must have a result.
	Where string
	// Count is the required number of matches: "2", ">=2" or "<=1". "" means at least one.
	Count string
	// Fields are conditions on the frame.
	Fields []AgentField
}

// AgentField is a condition on a value of a frame. Path is looked up in params, result, error and then the whole
// message. The path "kind" is the kind of the chosen permission option.
type AgentField struct {
	Path, Operator string
	Value          script.Word
}

// agentScript compiles the lines of an agent-side scenario.
func (p *parser[B]) agentScript(lines []*script.Line) {
	s := &AgentScript{Script: serve.Script{Capabilities: map[string]string{}}, RulesOff: p.scenario.RulesOff}
	p.scenario.Agent = s
	p.commands = tableOf(p.dialect.agentCommands())
	p.block(lines)
	for _, c := range p.scenario.Checks {
		s.Checks = append(s.Checks, AgentCheck{Slug: c.Slug, Title: c.Title, Requirements: c.Requirements, Line: c.Line,
			Lines: c.expected})
	}
	if len(s.Handlers) == 0 && len(s.Checks) == 0 && len(p.mistakes) == 0 {
		p.mistakes = append(p.mistakes, &Mistake{File: p.file, Line: 1, Message: "the script does nothing",
			Hint: "acp-test help agent-side explains the language"})
	}
}

// agentCommands returns the commands of an agent-side script outside of handlers.
func (d *Dialect[B]) agentCommands() []*Command[B] {
	all := []*Command[B]{
		{
			Name: "capabilities", Group: "agent", Args: "PATH=VALUE…",
			Summary: "say what the agent advertises", Compile: compileCapabilities[B],
		}, {
			Name: "on", Group: "agent", Args: "EVENT [~ 'REGEXP'] [nth=N]", Blocks: 1,
			Summary: "say what the agent does at an event: a method, or prompt, cancel, new, load, resume, close, connect, eof",
			Compile: compileOn[B],
		}, {
			Name: "sent", Group: "agent", Args: "METHOD [count=N|>=N|<=N] [path=value…]", Negatable: true,
			Summary: "ask whether the editor sent a frame", Compile: compileExpectation[B],
		}, {
			Name: "tried", Group: "agent", Args: "METHOD [count=N|>=N|<=N]", Negatable: true,
			Summary: "ask how often the editor sent a frame, with those that the network lost or refused",
			Compile: compileExpectation[B],
		}, {
			Name: "repeated", Group: "agent", Args: "METHOD PATH", Negatable: true,
			Summary: "ask whether the editor sent two frames that have the same value at PATH",
			Compile: compileExpectation[B],
		}, {
			Name: "answered", Group: "agent", Args: "NAME [path=value…] [where=NAME]", Negatable: true,
			Summary: "ask how the editor answered: kind= of the option, error= code; where= a request that it granted",
			Compile: compileExpectation[B],
		}, {
			Name: "shown", Group: "agent", Args: "'REGEXP' [where='REGEXP']", Negatable: true,
			Summary: "ask whether the editor printed matching text; where= a line that it must print for this to apply",
			Compile: compileExpectation[B],
		}, {
			Name: "ended", Group: "agent", Negatable: true,
			Summary: "ask whether the editor ended by itself before its timeout", Compile: compileExpectation[B],
		}, {
			Name: "hung-up", Group: "agent", Args: "[count=N|>=N|<=N]", Negatable: true,
			Summary: "ask whether a front end closed the connection during a response", Compile: compileExpectation[B],
		}, {
			Name: "left-open", Group: "agent", Negatable: true,
			Summary: "ask whether the editor closed the agent's input during its own request", Compile: compileExpectation[B],
		}, {
			Name: "left-running", Group: "agent", Negatable: true,
			Summary: "ask whether the editor left a process of this agent running", Compile: compileExpectation[B],
		},
	}
	return append(all, lists.Where(d.Commands(), func(c *Command[B]) bool {
		return slices.Contains([]string{"protocol", "role", "tag", "timeout", "rules", "check"}, c.Name)
	})...)
}

func compileCapabilities[B any](l *Line[B]) Step[B] {
	for _, w := range l.Rest {
		key, _, value, ok := w.Cut("=")
		text, literal := value.Literal()
		if !ok || !literal {
			return l.Usage(w.Column, "%q is no capability", w.Raw())
		}
		l.p.scenario.Agent.Capabilities[key] = text
	}
	return nil
}

func compileOn[B any](l *Line[B]) Step[B] {
	opts := l.Options("nth")
	name := l.One(0, "an event")
	h := serve.Handler{Line: l.Number}
	var ok bool
	if h.Event, ok = l.p.dialect.event(name); !ok {
		return l.Mistake(l.Rest[0].Column, "an event is a method of the editor, or prompt, cancel, new, load, resume, "+
			"close, connect or eof", "%q is no event", name)
	}
	if w, ok := opts["nth"]; ok {
		h.Nth = l.Int(w, 1, "nth= takes a number from 1")
	}
	if l.Rest = l.Rest[1:]; len(l.Rest) > 0 {
		h.Text = l.Tilde()
	}
	h.Block = *l.p.acts(l.Blocks[0])
	l.p.scenario.Agent.Handlers = append(l.p.scenario.Agent.Handlers, h)
	return nil
}

// acts compiles the lines of a handler, or of a block within a handler.
func (p *parser[B]) acts(lines []*script.Line) *serve.Block {
	outer := p.commands
	defer func() { p.commands = outer }()
	p.commands = tableOf(p.dialect.agentActs())
	b := &serve.Block{}
	for _, s := range p.block(lines) {
		if s.act != nil {
			b.Acts = append(b.Acts, serve.Act{Line: s.Line, Name: s.Command.Name, Do: s.act})
		}
	}
	for l := range (&script.File{Lines: lines}).All() {
		b.Waits = b.Waits || l.Is("await")
	}
	return b
}

var countForm = lazy.Regexp(`^(>=|<=)?\d+$`)

func compileExpectation[B any](l *Line[B]) Step[B] {
	checks := l.p.scenario.Checks
	if len(checks) == 0 {
		return l.Mistake(l.Name.Column, "open a check first: check SLUG", "%s must be inside a check", l.Name.Raw())
	}
	x := AgentExpectation{Text: l.Text, Negate: l.Negated, What: l.Name.Raw()}
	switch x.What {
	case "shown":
		where := l.Options("where")["where"]
		x.About = l.One(0, "a regular expression")
		x.Where, _ = where.Literal()
		l.Regexp(l.Name.Column, x.About)
		l.Regexp(where.Column, x.Where)
		l.Rest = l.Rest[1:]
	case "sent", "tried", "repeated", "answered":
		x.Where, _ = l.Options("where")["where"].Literal()
		about := l.One(0, "a method or a name")
		ok := l.p.names[about]
		if x.About = about; x.What != "answered" {
			if x.About, ok = l.p.dialect.event(about); !ok {
				return l.Mistake(l.Rest[0].Column, "", "%q is no method", about)
			}
		} else if !ok || x.Where != "" && !l.p.names[x.Where] {
			return l.Mistake(l.Rest[0].Column, "name a request with as NAME", "no request above is named %s",
				cmp.Or(x.Where, about))
		}
		if l.Rest = l.Rest[1:]; x.What == "repeated" {
			x.Path = l.One(0, "a path")
			l.Rest = l.Rest[1:]
		}
	}
	for _, w := range l.Rest {
		f := l.Field(w)
		if f.Path == "count" {
			if x.Count, _ = f.Value.Literal(); !countForm().MatchString(x.Count) {
				l.Mistake(w.Column, "", "count= takes a number, >=N or <=N")
			}
			continue
		}
		x.Fields = append(x.Fields, AgentField{f.Path, f.Operator, f.Value})
	}
	last := checks[len(checks)-1]
	last.expected = append(last.expected, x)
	return nil
}

// agentHelp returns the help page of the agent-side language.
func (d *Dialect[B]) agentHelp() string {
	var b strings.Builder
	b.WriteString(`A file that begins with "role agent" scripts the agent; acp-test editors and
acp-test serve run it.

`)
	list := func(all []*Command[B]) {
		for _, c := range all {
			fmt.Fprintf(&b, "  %-48s %s\n", c.usage(), c.Summary)
		}
	}
	list(d.agentCommands())
	b.WriteString(`
Acts in a handler, with $SESSION, $WORK (its cwd), $ID (of the request), $I, and
$NAME.path for what a request was answered, in quotes too:

`)
	list(d.agentActs())
	return b.String()
}

// event returns the method of an event. name is the method itself or a short name. ok is false for an unknown event.
func (d *Dialect[B]) event(name string) (string, bool) {
	if long, ok := d.Events[name]; ok {
		return long, true
	}
	return name, strings.Contains(name, "/") || name == "connect" || name == "eof"
}
