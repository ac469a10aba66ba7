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
	run          Step
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
	kinds    map[string]*Kind
	protocol *Protocol
}

// Line is one line while it is compiled.
type Line struct {
	*script.Line
	// Rest are the arguments that have not been taken yet.
	Rest []script.Word
	// Alias is the name that the line gives to what comes of it, or "".
	Alias string
	// Comment is what the lines right above say.
	Comment string

	p *parser
}

// Implied returns a line that the script need not have, since an act needs it.
func Implied(text string) *Line { return &Line{Line: script.New(text), p: &parser{}} }

func (l *Line) Mistake(column int, hint, format string, args ...any) *Mistake {
	return &Mistake{File: l.p.file, Line: l.Number, Column: column, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// usage is the mistake of a line whose arguments are not what the command
// takes.
func (l *Line) Usage(column int, format string, args ...any) *Mistake {
	c := l.p.commands[l.Name.Raw()]
	return l.Mistake(column, "usage: "+strings.TrimSpace(c.Name+" "+c.Args), format, args...)
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
		l := &Line{Line: node, p: p, Rest: node.Words, Alias: node.As.Raw(), Comment: comment}
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
func (l *Line) holds() (bool, error) {
	holds := true
	for _, w := range l.Conditions {
		name, bracketed := strings.CutSuffix(strings.TrimPrefix(w.Raw(), "["), "]")
		ok, known := condition(name)
		if !bracketed || !known {
			return false, l.Mistake(w.Column, "conditions are [v1] [v2] [linux] [darwin] [windows], each also with !", "unknown condition %s", w.Raw())
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
func (l *Line) compile() (s *step, holds bool, err error) {
	if holds, err = l.holds(); err != nil {
		return nil, false, err
	}
	name := l.Name.Raw()
	c, ok := l.p.commands[name]
	if !ok || l.Name.Quoted {
		hint := mistake.Nearest(name, slices.Collect(maps.Keys(l.p.commands)))
		if l.p.scenario.Agent != nil && tableOf(l.p.protocol.agentActs())[name] != nil {
			hint = "acts stand inside a handler: on EVENT { … }"
		}
		return nil, false, l.Mistake(l.Name.Column, hint, "unknown command %q", name)
	}
	switch n := len(l.Blocks); {
	case l.Negated && !c.Negatable:
		return nil, false, l.Mistake(1, "only looking back can be negated", "%s cannot be negated", name)
	case n > 0 && c.Blocks == 0:
		return nil, false, l.Usage(l.End(), "%s takes no block", name)
	case n == 0 && c.Blocks > 0:
		return nil, false, l.Usage(l.End(), "%s needs a block { }", name)
	case n < c.Blocks:
		return nil, false, l.Mistake(l.End(), "both { … }{ … }", "both needs a second block")
	case n > c.Blocks:
		return nil, false, l.Usage(l.End(), "%s takes one block", name)
	case l.Alias != "" && !c.Captures:
		return nil, false, l.Usage(1, "%s gives nothing that could have a name", name)
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
	if l.Alias != "" {
		l.p.names[l.Alias] = true
	}
	return s, holds, nil
}

// phase is a comment: it structures the log and the transcript.
func phase(text string, number int) step {
	return step{line: number, text: "# " + text, run: func(_ context.Context, b *Branch) error {
		b.run.phase(text)
		return nil
	}}
}

// Helpers for the commands' own parsing.

// text is the word at i, or a mistake that names what is missing.
func (l *Line) Need(i int, what string) (script.Word, *Mistake) {
	if i >= len(l.Rest) {
		return script.Word{}, l.Usage(l.End()+1, "%s is missing", what)
	}
	return l.Rest[i], nil
}

// atMost rejects extra words.
func (l *Line) AtMost(n int) *Mistake {
	if len(l.Rest) > n {
		return l.Usage(l.Rest[n].Column, "%q is one word too many", l.Rest[n].Raw())
	}
	return nil
}

// one is the literal text of the word at i.
func (l *Line) One(i int, what string) (string, *Mistake) {
	w, m := l.Need(i, what)
	if m != nil {
		return "", m
	}
	s, ok := w.Literal()
	if !ok {
		return "", l.Usage(w.Column, "%s must not hold a variable", what)
	}
	return s, nil
}

// duration reads a duration.
func (l *Line) Duration(w script.Word) (time.Duration, *Mistake) {
	s, _ := w.Literal()
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, l.Mistake(w.Column, "a duration is a number with a unit, such as 250ms or 2s", "%q is no duration", w.Raw())
	}
	return d, nil
}

// options takes words of the form KEY=VALUE off the line. known maps a key to
// what its value is; an unknown key is a mistake only if strict.
func (l *Line) Options(known ...string) (map[string]script.Word, *Mistake) {
	got := map[string]script.Word{}
	var rest []script.Word
	for _, w := range l.Rest {
		key, _, value, ok := w.Cut("=")
		if !ok || !slices.Contains(known, key) {
			rest = append(rest, w)
			continue
		}
		if _, twice := got[key]; twice {
			return nil, l.Usage(w.Column, "%s= is given twice", key)
		}
		got[key] = value
	}
	l.Rest = rest
	return got, nil
}

// session takes a session name: the word at i if it names one.
func (l *Line) SessionName(i int) (string, bool) {
	if i >= len(l.Rest) || l.Rest[i].Quoted {
		return "", false
	}
	s, ok := l.Rest[i].Literal()
	return s, ok && l.p.sessions[s]
}

// File is the name of the scenario's file.
func (l *Line) File() string { return l.p.file }

// HasSession reports whether a line above opens a session of that name.
func (l *Line) HasSession(name string) bool { return l.p.sessions[name] }

// DeclareSession says that the line opens a session of that name.
func (l *Line) DeclareSession(name string) { l.p.sessions[name] = true }

// Ref is the word at i as the name of a line above.
func (l *Line) Ref(i int) (string, *Mistake) {
	s, m := l.One(i, "the name of a line above")
	if m != nil {
		return "", m
	}
	if !l.p.names[s] {
		return "", l.Mistake(l.Rest[i].Column, "end a line above with \"as "+s+"\"", "no line above is named %s", s)
	}
	return s, nil
}

// DeclarePrompt says that the line prompts a session, "" for the current one,
// with a text: the model's turns are found by it. index counts the prompts of
// the script from 1.
func (l *Line) DeclarePrompt(session string, text script.Word) (index int, m *Mistake) {
	s := l.p.scenario
	for _, p := range s.prompts {
		if p.text == text.Raw() {
			return 0, l.Mistake(text.Column, fmt.Sprintf("the first is on line %d", p.line),
				"two prompts have the same text; the model's turns are found by it")
		}
	}
	s.prompts = append(s.prompts, promptDecl{session, text.Raw(), l.Number})
	return len(s.prompts), nil
}

// Source is the text of a word, which may be @FILE for a file of the archive.
func (l *Line) Source(w script.Word) (script.Word, error) {
	s, ok := w.Literal()
	if !ok || w.Quoted || !strings.HasPrefix(s, "@") {
		return w, nil
	}
	data, ok := l.p.scenario.archived(s[1:])
	if !ok {
		return script.Word{}, l.Mistake(w.Column, "add it below as -- "+s[1:]+" --", "the archive holds no file %q", s[1:])
	}
	return script.Quote(string(data)), nil
}
