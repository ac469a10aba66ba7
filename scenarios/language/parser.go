package language

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
)

// Played is one compiled line.
type Played[B any] struct {
	Line, Column int
	Text         string // the line as it is written, for logs
	Command      *Command[B]
	Do           Step[B]
	Source       *Line[B]               // nil for a comment
	act          func(*serve.Run) error // set instead of Do for a line of an agent-side scenario
}

// parser compiles the lines of a scenario.
type parser[B any] struct {
	scenario *Scenario[B]
	file     string
	mistakes []*Mistake

	comment  []string // the comment lines directly above the next line
	sessions map[string]bool
	names    map[string]bool // names that lines declared with "as NAME"
	commands map[string]*Command[B]
	kinds    map[string]*Kind
	dialect  *Dialect[B]
}

// suppose declares every word of a faulty line as the name of a session and of a result. Later lines that refer to
// the faulty line then cause no further mistakes.
func (p *parser[B]) suppose(l *script.Line) {
	for _, w := range strings.Fields(l.Text) {
		p.sessions[w], p.names[w] = true, true
	}
}

// block compiles lines. It omits lines that have a mistake.
func (p *parser[B]) block(lines []*script.Line) (steps []Played[B]) {
	for _, node := range lines {
		comment := strings.Join(p.comment, " ")
		p.comment = nil
		switch node.Kind {
		case script.Comment:
			said, title := strings.TrimSpace(comment+" "+node.Note()), &p.scenario.Title
			if *title == "" || *title == comment && strings.IndexFunc(node.Note(), unicode.IsLower) == 0 {
				*title = said
			}
			p.comment = append(p.comment, said)
			continue
		case script.Blank:
			continue
		case script.Broken:
			p.suppose(node)
			continue
		}
		l := &Line[B]{Line: node, p: p, Rest: node.Words, Alias: node.As.Raw(), Comment: comment}
		s, holds := l.compile()
		if l.bad != nil {
			p.mistakes = append(p.mistakes, l.bad)
			p.suppose(node)
			continue
		}
		if comment != "" && holds {
			steps = append(steps, Played[B]{Line: node.Number, Text: "# " + comment, Do: p.dialect.Phase(comment)})
		}
		if holds && (s.Do != nil || s.act != nil) {
			steps = append(steps, s)
		}
	}
	return steps
}

// holds reports whether a condition is true, and whether it is known. c is the condition without its brackets.
func (d *Dialect[B]) holds(c string) (holds, known bool) {
	want := !strings.HasPrefix(c, "!")
	switch c = strings.TrimPrefix(c, "!"); c {
	case "v1", "v2":
		return strings.HasSuffix(d.Name, "-"+c) == want, true
	case "linux", "darwin", "windows":
		return (runtime.GOOS == c) == want, true
	}
	return false, false
}

// compile looks up the command of a line and compiles its arguments. It does so even if a condition of the line is
// false; holds reports that. Mistakes are stored in l.bad.
func (l *Line[B]) compile() (s Played[B], holds bool) {
	holds = l.holds()
	name := l.Name.Raw()
	c, ok := l.p.commands[name]
	if !ok || l.Name.Quoted {
		hint := mistake.Nearest(name, slices.Collect(maps.Keys(l.p.commands)))
		if l.p.scenario.Agent != nil && tableOf(l.p.dialect.agentActs())[name] != nil {
			hint = "put it inside a handler: on EVENT { … }"
		}
		l.Mistake(l.Name.Column, hint, "unknown command %q", name)
		return s, false
	}
	l.checkForm(c)
	if l.bad != nil {
		return s, false
	}
	l.demand(c)
	s = Played[B]{Line: l.Number, Column: l.Name.Column, Text: l.Text, Command: c, Source: l}
	if c.Act != nil {
		s.act = c.Act(l)
	} else {
		s.Do = c.Compile(l)
	}
	if c.Process || c.Alone {
		l.p.scenario.needsAlone(fmt.Sprintf("line %d: %s", l.Number, name))
	}
	if c.Process && s.Do != nil {
		s.Do = l.p.dialect.OfProcess(name, s.Do)
	}
	if l.Alias != "" {
		l.p.names[l.Alias] = true
	}
	return s, holds
}
