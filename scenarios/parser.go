package scenarios

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/mistake"
)

// step is one compiled line.
type step struct {
	line, column int
	text         string // the line as written, for logs
	command      *Command
	run          func(ctx context.Context, b *branch) error
}

// parser compiles the script part of a scenario.
type parser struct {
	scenario *Scenario
	file     string
	lines    []string
	next     int // index into lines

	comment  []string // comment lines right above the next line
	sessions map[string]bool
	names    map[string]bool // captures
	commands map[string]*Command
}

// line is one line, split, with what belongs to every command taken off.
type line struct {
	p      *parser
	number int
	text   string
	negate bool
	as     string
	words  []word // without the command's name
	name   word
	opens  bool // ends in {
}

func (l *line) mistake(column int, hint, format string, args ...any) *Mistake {
	return &Mistake{File: l.p.file, Line: l.number, Column: column, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// usage is the mistake of a line whose arguments are not what the command
// takes.
func (l *line) usage(column int, format string, args ...any) *Mistake {
	c := l.p.commands[l.name.raw()]
	return l.mistake(column, "usage: "+strings.TrimSpace(c.Name+" "+c.Args), format, args...)
}

func (p *parser) parse() ([]step, error) {
	p.sessions, p.names = map[string]bool{"main": true}, map[string]bool{} // main is what a prompt opens by itself
	steps, closed, err := p.block()
	if err != nil {
		return nil, err
	}
	if closed != nil {
		return nil, closed.mistake(closed.name.column, "", "this } closes no block")
	}
	return steps, nil
}

// block compiles lines up to the } that closes it, or to the end. The closing
// line is returned.
func (p *parser) block() (steps []step, closed *line, err error) {
	for p.next < len(p.lines) {
		number := p.next + 1
		text := strings.TrimRight(p.lines[p.next], " \t\r")
		p.next++
		trimmed := strings.TrimSpace(text)
		if strings.HasPrefix(trimmed, "#") {
			note := strings.TrimSpace(strings.TrimLeft(trimmed, "#"))
			if p.scenario.Title == "" {
				p.scenario.Title = note
			}
			p.comment = append(p.comment, note)
			continue
		}
		if trimmed == "" {
			p.comment = nil
			continue
		}
		l, holds, err := p.line(number, text)
		if err != nil {
			return nil, nil, err
		}
		if strings.HasPrefix(l.name.raw(), "}") && !l.name.quoted {
			return steps, l, nil
		}
		s, err := p.compile(l)
		if err != nil {
			return nil, nil, err
		}
		if len(p.comment) > 0 && holds {
			steps = append(steps, phase(strings.Join(p.comment, " "), number))
		}
		p.comment = nil
		if holds && s.run != nil {
			steps = append(steps, *s)
		}
	}
	return steps, nil, nil
}

// line splits a line and takes off conditions, !, "as NAME" and a brace.
func (p *parser) line(number int, text string) (*line, bool, error) {
	words, m := split(text)
	if m != nil {
		m.File, m.Line = p.file, number
		return nil, false, m
	}
	l := &line{p: p, number: number, text: strings.TrimSpace(text)}
	holds := true
	for len(words) > 0 && strings.HasPrefix(words[0].raw(), "[") && !words[0].quoted {
		c := words[0].raw()
		ok, known := condition(strings.Trim(c, "[]"))
		if !strings.HasSuffix(c, "]") || !known {
			return nil, false, l.mistake(words[0].column, "conditions are [v1] [v2] [linux] [darwin] [windows], each also with !", "unknown condition %s", c)
		}
		holds = holds && ok
		words = words[1:]
	}
	if len(words) > 0 && words[0].raw() == "!" && !words[0].quoted {
		l.negate = true
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, false, l.mistake(1, "", "a line needs a command")
	}
	l.name, l.words = words[0], words[1:]
	if n := len(l.words); n > 0 && l.words[n-1].raw() == "{" && !l.words[n-1].quoted {
		l.opens, l.words = true, l.words[:n-1]
	}
	if n := len(l.words); n >= 2 && l.words[n-2].raw() == "as" && !l.words[n-2].quoted {
		name, ok := l.words[n-1].literal()
		if !ok || !isName(name) {
			return nil, false, l.mistake(l.words[n-1].column, "a name is letters, digits and _", "%q cannot name what this line gives", l.words[n-1].raw())
		}
		l.as, l.words = name, l.words[:n-2]
	}
	return l, holds, nil
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isLetter(s[i]) && s[i] != '_' && !(i > 0 && isDigit(s[i])) {
			return false
		}
	}
	return s != ""
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

// compile finds the command of a line and lets it read its arguments.
func (p *parser) compile(l *line) (*step, error) {
	name := l.name.raw()
	c, ok := p.commands[name]
	if !ok || l.name.quoted {
		return nil, l.mistake(l.name.column, mistake.Nearest(name, slices.Collect(maps.Keys(p.commands))), "unknown command %q", name)
	}
	if l.negate && !c.Negatable {
		return nil, l.mistake(1, "only looking back can be negated", "%s cannot be negated", name)
	}
	if l.opens && c.Blocks == 0 {
		return nil, l.usage(len(l.text), "%s takes no block", name)
	}
	if !l.opens && c.Blocks > 0 {
		return nil, l.usage(len(l.text), "%s needs a block { }", name)
	}
	if l.as != "" && !c.Captures {
		return nil, l.usage(1, "%s gives nothing that could have a name", name)
	}
	run, err := c.Compile(l)
	if err != nil {
		return nil, err
	}
	if l.as != "" {
		p.names[l.as] = true
	}
	s := &step{line: l.number, column: l.name.column, text: l.text, command: c, run: run}
	return s, nil
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
func (l *line) need(i int, what string) (word, *Mistake) {
	if i >= len(l.words) {
		return word{}, l.usage(len(l.text)+1, "%s is missing", what)
	}
	return l.words[i], nil
}

// atMost rejects extra words.
func (l *line) atMost(n int) *Mistake {
	if len(l.words) > n {
		return l.usage(l.words[n].column, "%q is one word too many", l.words[n].raw())
	}
	return nil
}

// one is the literal text of the word at i.
func (l *line) one(i int, what string) (string, *Mistake) {
	w, m := l.need(i, what)
	if m != nil {
		return "", m
	}
	s, ok := w.literal()
	if !ok {
		return "", l.usage(w.column, "%s must not hold a variable", what)
	}
	return s, nil
}

// duration reads a duration.
func (l *line) duration(w word) (time.Duration, *Mistake) {
	s, _ := w.literal()
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, l.mistake(w.column, "a duration is a number with a unit, such as 250ms or 2s", "%q is no duration", w.raw())
	}
	return d, nil
}

// options takes words of the form KEY=VALUE off the line. known maps a key to
// what its value is; an unknown key is a mistake only if strict.
func (l *line) options(known ...string) (map[string]word, *Mistake) {
	got := map[string]word{}
	var rest []word
	for _, w := range l.words {
		key, _, value, ok := w.cut("=")
		if !ok || !slices.Contains(known, key) {
			rest = append(rest, w)
			continue
		}
		if _, twice := got[key]; twice {
			return nil, l.usage(w.column, "%s= is given twice", key)
		}
		got[key] = value
	}
	l.words = rest
	return got, nil
}

// session takes a session name: the word at i if it names one.
func (l *line) session(i int) (string, bool) {
	if i >= len(l.words) || l.words[i].quoted {
		return "", false
	}
	s, ok := l.words[i].literal()
	return s, ok && l.p.sessions[s]
}
