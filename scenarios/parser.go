package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
)

// step is one compiled line.
type step struct {
	line, column int
	text         string // the line as written, for logs
	command      *Command
	run          func(ctx context.Context, b *branch) error
	act          func(*serve.Scene) error // of a scripted agent
}

// parser compiles the lines of a scenario.
type parser struct {
	scenario *Scenario
	file     string
	mistakes []*Mistake

	comment  []string // comment lines right above the next line
	sessions map[string]bool
	names    map[string]bool // captures
	commands map[string]*Command
}

// line is one line while it is compiled.
type line struct {
	*script.Line
	p       *parser
	as      string
	words   []script.Word // the arguments that have not been taken yet
	comment string        // of the lines right above
}

// implied is a line that the script need not have, since an act needs it.
func implied(text string) *line { return &line{Line: script.New(text), p: &parser{}} }

func (l *line) mistake(column int, hint, format string, args ...any) *Mistake {
	return &Mistake{File: l.p.file, Line: l.Number, Column: column, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// usage is the mistake of a line whose arguments are not what the command
// takes.
func (l *line) usage(column int, format string, args ...any) *Mistake {
	c := l.p.commands[l.Name.Raw()]
	return l.mistake(column, "usage: "+strings.TrimSpace(c.Name+" "+c.Args), format, args...)
}

// failed notes what is wrong with a line. What the line would have opened or
// named counts as there, so that the lines below are not blamed for it.
func (p *parser) failed(l *script.Line, err error) {
	var m *Mistake
	if !errors.As(err, &m) {
		m = &Mistake{File: p.file, Line: l.Number, Message: err.Error()}
	}
	p.mistakes = append(p.mistakes, m)
	p.suppose(l)
}

func (p *parser) suppose(l *script.Line) {
	for _, w := range strings.Fields(l.Text) {
		p.sessions[w], p.names[w] = true, true
	}
}

// block compiles lines. Those with a mistake are left out.
func (p *parser) block(lines []*script.Line) (steps []step) {
	for _, node := range lines {
		comment := strings.Join(p.comment, " ")
		p.comment = nil
		switch node.Kind {
		case script.Comment:
			p.scenario.Title = cmp.Or(p.scenario.Title, node.Note())
			p.comment = append(p.comment, strings.TrimSpace(comment+" "+node.Note()))
			continue
		case script.Blank:
			continue
		case script.Broken:
			p.suppose(node)
			continue
		}
		l := &line{Line: node, p: p, words: node.Words, as: node.As.Raw(), comment: comment}
		s, holds, err := l.compile()
		if err != nil {
			p.failed(node, err)
			continue
		}
		if comment != "" && holds {
			steps = append(steps, phase(comment, node.Number))
		}
		if holds && (s.run != nil || s.act != nil) {
			steps = append(steps, *s)
		}
	}
	return steps
}

// holds evaluates the conditions of a line.
func (l *line) holds() (bool, error) {
	holds := true
	for _, w := range l.Conditions {
		name, bracketed := strings.CutSuffix(strings.TrimPrefix(w.Raw(), "["), "]")
		ok, known := condition(name)
		if !bracketed || !known {
			return false, l.mistake(w.Column, "conditions are [v1] [v2] [linux] [darwin] [windows], each also with !", "unknown condition %s", w.Raw())
		}
		holds = holds && ok
	}
	return holds, nil
}

func condition(c string) (holds, known bool) {
	want := !strings.HasPrefix(c, "!")
	switch c = strings.TrimPrefix(c, "!"); c {
	case "v1":
		return want, true
	case "v2":
		return !want, true
	case "linux", "darwin", "windows":
		return (runtime.GOOS == c) == want, true
	}
	return false, false
}

// compile finds the command of a line and lets it read its arguments. A line
// whose conditions do not hold is read all the same.
func (l *line) compile() (s *step, holds bool, err error) {
	if holds, err = l.holds(); err != nil {
		return nil, false, err
	}
	name := l.Name.Raw()
	c, ok := l.p.commands[name]
	if !ok || l.Name.Quoted {
		hint := mistake.Nearest(name, slices.Collect(maps.Keys(l.p.commands)))
		if l.p.scenario.Agent != nil && tableOf(agentActs())[name] != nil {
			hint = "acts stand inside a handler: on EVENT { … }"
		}
		return nil, false, l.mistake(l.Name.Column, hint, "unknown command %q", name)
	}
	switch n := len(l.Blocks); {
	case l.Negated && !c.Negatable:
		return nil, false, l.mistake(1, "only looking back can be negated", "%s cannot be negated", name)
	case n > 0 && c.Blocks == 0:
		return nil, false, l.usage(l.End(), "%s takes no block", name)
	case n == 0 && c.Blocks > 0:
		return nil, false, l.usage(l.End(), "%s needs a block { }", name)
	case n < c.Blocks:
		return nil, false, l.mistake(l.End(), "both { … }{ … }", "both needs a second block")
	case n > c.Blocks:
		return nil, false, l.usage(l.End(), "%s takes one block", name)
	case l.as != "" && !c.Captures:
		return nil, false, l.usage(1, "%s gives nothing that could have a name", name)
	}
	s = &step{line: l.Number, column: l.Name.Column, text: l.Text, command: c}
	if c.Act != nil {
		s.act, err = c.Act(l)
	} else {
		s.run, err = c.Compile(l)
	}
	if err != nil {
		return nil, false, err
	}
	if c.Process && s.run != nil {
		s.run = aboutProcess(name, s.run)
	}
	if l.as != "" {
		l.p.names[l.as] = true
	}
	return s, holds, nil
}

// phase is a comment: it structures the log and the transcript.
func phase(text string, number int) step {
	return step{line: number, text: "# " + text, run: func(_ context.Context, b *branch) error {
		b.run.phase(text)
		return nil
	}}
}

// Helpers for the commands' own parsing.

// text is the word at i, or a mistake that names what is missing.
func (l *line) need(i int, what string) (script.Word, *Mistake) {
	if i >= len(l.words) {
		return script.Word{}, l.usage(l.End()+1, "%s is missing", what)
	}
	return l.words[i], nil
}

// atMost rejects extra words.
func (l *line) atMost(n int) *Mistake {
	if len(l.words) > n {
		return l.usage(l.words[n].Column, "%q is one word too many", l.words[n].Raw())
	}
	return nil
}

// one is the literal text of the word at i.
func (l *line) one(i int, what string) (string, *Mistake) {
	w, m := l.need(i, what)
	if m != nil {
		return "", m
	}
	s, ok := w.Literal()
	if !ok {
		return "", l.usage(w.Column, "%s must not hold a variable", what)
	}
	return s, nil
}

// duration reads a duration.
func (l *line) duration(w script.Word) (time.Duration, *Mistake) {
	s, _ := w.Literal()
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, l.mistake(w.Column, "a duration is a number with a unit, such as 250ms or 2s", "%q is no duration", w.Raw())
	}
	return d, nil
}

// options takes words of the form KEY=VALUE off the line. known maps a key to
// what its value is; an unknown key is a mistake only if strict.
func (l *line) options(known ...string) (map[string]script.Word, *Mistake) {
	got := map[string]script.Word{}
	var rest []script.Word
	for _, w := range l.words {
		key, _, value, ok := w.Cut("=")
		if !ok || !slices.Contains(known, key) {
			rest = append(rest, w)
			continue
		}
		if _, twice := got[key]; twice {
			return nil, l.usage(w.Column, "%s= is given twice", key)
		}
		got[key] = value
	}
	l.words = rest
	return got, nil
}

// session takes a session name: the word at i if it names one.
func (l *line) session(i int) (string, bool) {
	if i >= len(l.words) || l.words[i].Quoted {
		return "", false
	}
	s, ok := l.words[i].Literal()
	return s, ok && l.p.sessions[s]
}
