package language

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Line is a line that is being compiled.
type Line[B any] struct {
	*script.Line
	// Rest holds the arguments that have not been read yet.
	Rest []script.Word
	// Alias is the name that the line gives to its result, or "".
	Alias string
	// Comment is the text of the comment lines directly above the line.
	Comment string

	p   *parser[B]
	bad *Mistake // the first mistake; nil if there is none
}

// Starts records that the line starts a program, or that it gives the agent something that may start a program. The
// text in what describes this.
func (l *Line[B]) Starts(what string) {
	s := l.p.scenario
	s.starts = append(s.starts, &Mistake{File: s.File, Line: l.Number, Message: what + ": " + l.Line.Text})
}

// Inside records a mistake for each word that names a path outside the workspace. It skips words with variables.
func (l *Line[B]) Inside(words ...script.Word) {
	for _, w := range words {
		if name, ok := w.Literal(); ok && name != "" && !filepath.IsLocal(filepath.FromSlash(name)) {
			l.Mistake(w.Column, "name a file of the workspace, or one below $WORK, $HOME or $TMP",
				"%s is outside of the workspace", name)
		}
	}
}

// Implied returns a line for a step that another line requires but the script may omit.
func Implied[B any](text string) *Line[B] { return &Line[B]{Line: script.New(text), p: &parser[B]{}} }

// Mistake records a mistake of the line. Only the first mistake of a line counts. Mistake returns nil, so that
// Compile functions can return its result.
func (l *Line[B]) Mistake(column int, hint, format string, args ...any) Step[B] {
	if l.bad == nil {
		l.bad = &Mistake{File: l.p.file, Line: l.Number, Column: column, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	return nil
}

// Usage records a mistake in the arguments, with the command's usage as the hint.
func (l *Line[B]) Usage(column int, format string, args ...any) Step[B] {
	c := l.p.commands[l.Name.Raw()]
	return l.Mistake(column, "usage: "+strings.TrimSpace(c.Name+" "+c.Args), format, args...)
}

// holds reports whether all conditions of a line, such as [linux], are true.
func (l *Line[B]) holds() bool {
	holds := true
	for _, w := range l.Conditions {
		name, bracketed := strings.CutSuffix(strings.TrimPrefix(w.Raw(), "["), "]")
		ok, known := l.p.dialect.holds(name)
		if !bracketed || !known {
			l.Mistake(w.Column, "conditions are [v1] [v2] [linux] [darwin] [windows]; a ! inside negates one",
				"unknown condition %s", w.Raw())
		}
		holds = holds && ok
	}
	return holds
}

// demand sets Denies of the open check if the line forbids an entry, or Claims if the line requires one.
func (l *Line[B]) demand(c *Command[B]) {
	all := l.p.scenario.Checks
	if len(all) == 0 {
		return
	}
	d := all[len(all)-1]
	switch turn := len(l.Rest) > 0 && l.Rest[0].Raw() == "turn"; {
	case l.Negated:
		d.Denies = true
	case c.Group == "back", c.Effect, c.Name == "await" && !turn:
		d.Claims = true
	}
}

// checkForm records mistakes in the form of a line: a negation, blocks, or a name that the command does not allow or
// requires.
func (l *Line[B]) checkForm(c *Command[B]) {
	name := c.Name
	switch n := len(l.Blocks); {
	case l.Negated && !c.Negatable:
		l.Mistake(1, "only commands that look back can be negated", "%s cannot be negated", name)
	case n > 0 && c.Blocks == 0:
		l.Usage(l.End(), "%s takes no block", name)
	case n == 0 && c.Blocks > 0:
		l.Usage(l.End(), "%s needs a block { }", name)
	case n < c.Blocks:
		l.Mistake(l.End(), "both { … }{ … }", "both needs a second block")
	case n > c.Blocks:
		l.Usage(l.End(), "%s takes one block", name)
	case l.Alias != "" && !c.Captures:
		l.Usage(1, "%s has no result that could be named with as", name)
	}
}

// The functions below read the arguments of a line. If an argument is missing or wrong, they record a mistake and
// return the zero value.

// Need returns the word at index i. If the word is missing, Need records a mistake and adds an empty word. Mistakes
// call the word by the noun in what.
func (l *Line[B]) Need(i int, what string) script.Word {
	for i >= len(l.Rest) {
		l.Usage(l.End()+1, "%s is missing", what)
		l.Rest = append(l.Rest, script.Word{Column: l.End() + 1})
	}
	return l.Rest[i]
}

// AtMost records a mistake if the line has more than n words. hint, if given, replaces the usage in that mistake.
func (l *Line[B]) AtMost(n int, hint ...string) {
	if len(l.Rest) <= n {
		return
	}
	if l.Usage(l.Rest[n].Column, "%q is one word too many", l.Rest[n].Raw()); hint != nil {
		l.bad.Hint = hint[0]
	}
}

// One returns the literal text of the word at index i. Mistakes call the word by the noun in what.
func (l *Line[B]) One(i int, what string) string {
	w := l.Need(i, what)
	s, ok := w.Literal()
	if !ok {
		l.Usage(w.Column, "%s must not contain a variable", what)
		return ""
	}
	return s
}

// Choice returns the literal text of the word at index i. It records a mistake if the text is not in allowed.
// Mistakes call the word by the noun in what.
func (l *Line[B]) Choice(i int, what string, allowed ...string) string {
	s := l.One(i, strings.Join(allowed, ", "))
	if !slices.Contains(allowed, s) {
		l.Usage(l.Rest[i].Column, "%q is no %s%s", s, what, mistake.Meant(s, allowed))
	}
	return s
}

// Int returns the number in a word. It records a mistake with the formatted text if the word is no number or less
// than least.
func (l *Line[B]) Int(w script.Word, least int, format string, args ...any) int {
	n, err := strconv.Atoi(w.Raw())
	if err != nil || n < least {
		l.Usage(w.Column, format, args...)
		return 0
	}
	return n
}

// Duration parses the duration in a word, such as 250ms.
func (l *Line[B]) Duration(w script.Word) time.Duration {
	s, _ := w.Literal()
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		l.Mistake(w.Column, "a duration is a number with a unit, such as 250ms or 2s", "%q is no duration", w.Raw())
		return 0
	}
	return d
}

// Options removes words of the form KEY=VALUE with a known key from the line and returns them.
func (l *Line[B]) Options(known ...string) map[string]script.Word {
	got := map[string]script.Word{}
	l.Rest = slices.DeleteFunc(slices.Clone(l.Rest), func(w script.Word) bool {
		key, _, value, ok := w.Cut("=")
		if !ok || !slices.Contains(known, key) {
			return false
		}
		if _, twice := got[key]; twice {
			l.Usage(w.Column, "%s= is given twice", key)
		}
		got[key] = value
		return true
	})
	return got
}

// Every removes all words KEY=VALUE with this key from the line and returns the values.
func (l *Line[B]) Every(key string) (values []script.Word) {
	l.Rest = slices.DeleteFunc(slices.Clone(l.Rest), func(w script.Word) bool {
		k, _, value, ok := w.Cut("=")
		if ok = ok && k == key; ok {
			values = append(values, value)
		}
		return ok
	})
	return values
}

// Headers removes the options header=NAME:VALUE from the line and returns the values.
func (l *Line[B]) Headers() []script.Word {
	headers := l.Every("header")
	for _, w := range headers {
		if !strings.Contains(w.Raw(), ":") {
			l.Usage(w.Column, "header= is NAME:VALUE")
		}
	}
	return headers
}

// SessionName returns the word at index i and true if the word is the name of a session.
func (l *Line[B]) SessionName(i int) (string, bool) {
	if i >= len(l.Rest) || l.Rest[i].Quoted {
		return "", false
	}
	s, ok := l.Rest[i].Literal()
	return s, ok && l.p.sessions[s]
}

// TakeSession removes and returns the first word of a line that has exactly needs+1 words. This word must be the name
// of a session; hint is for the mistake. If the line has another number of words, TakeSession returns "", which means
// the current session.
func (l *Line[B]) TakeSession(needs int, hint string) string {
	if len(l.Rest) != needs+1 {
		return ""
	}
	name, ok := l.SessionName(0)
	if !ok {
		l.Mistake(l.Rest[0].Column, hint, "no session %s is open", l.Rest[0].Raw())
	}
	l.Rest = l.Rest[1:]
	return name
}

// File returns the name of the scenario's file.
func (l *Line[B]) File() string { return l.p.file }

// Scenario returns the scenario of the line. The line can store declarations in it.
func (l *Line[B]) Scenario() *Scenario[B] { return l.p.scenario }

// Body compiles the i-th block of the line.
func (l *Line[B]) Body(i int) []Played[B] { return l.p.block(l.Blocks[i]) }

// Kind returns a kind of patterns by its name.
func (l *Line[B]) Kind(name string) *Kind { return l.p.kinds[name] }

// Reject records a mistake at another line of the file, for example a line in a block.
func (l *Line[B]) Reject(line, column int, message string) {
	l.p.mistakes = append(l.p.mistakes, &Mistake{File: l.p.file, Line: line, Column: column, Message: message})
}

// UsesGate records that the line releases a gate of the model.
func (l *Line[B]) UsesGate(name string) {
	l.p.scenario.gates = append(l.p.scenario.gates, gate{name, l.Number})
}

// DeclareName records a name to which later lines may refer.
func (l *Line[B]) DeclareName(name string) { l.p.names[name] = true }

// Command returns the command of the line. It returns nil for a line that Implied made.
func (l *Line[B]) Command() *Command[B] { return l.p.commands[l.Name.Raw()] }

// Tilde reads "~ REGEXP", which must be all of the line's arguments.
func (l *Line[B]) Tilde() *regexp.Regexp {
	if len(l.Rest) < 2 || l.Rest[0].Raw() != "~" {
		l.Usage(len(l.Name.Raw())+2, "expected ~ and a regular expression")
		return nil
	}
	l.AtMost(2)
	s, ok := l.Rest[1].Literal()
	if !ok {
		l.Usage(l.Rest[1].Column, "a regular expression must not contain a variable")
	}
	return l.Regexp(l.Rest[1].Column, s)
}

// Regexp compiles a regular expression. A mistake in it is recorded at column.
func (l *Line[B]) Regexp(column int, s string) *regexp.Regexp {
	re, err := regexp.Compile(s)
	if err != nil {
		l.Mistake(column, "", "bad regular expression: %v", err)
	}
	return re
}

// Blameless is an error caused by the agent's behavior rather than by a mistake in the scenario.
type Blameless interface {
	error
	Blameless() bool
}

// Fault converts a runtime error to a *Mistake at this line. If err wraps a *Mistake or a Blameless error, Fault
// returns that error unchanged.
func (l *Line[B]) Fault(err error) error {
	var m *Mistake
	var blameless Blameless
	switch {
	case errors.As(err, &m):
		return m
	case errors.As(err, &blameless) && blameless.Blameless():
		return blameless
	}
	return &Mistake{File: l.p.file, Line: l.Number, Message: err.Error()}
}

// HasSession reports whether an earlier line opens a session with this name.
func (l *Line[B]) HasSession(name string) bool { return l.p.sessions[name] }

// DeclareSession records that the line opens a session with this name.
func (l *Line[B]) DeclareSession(name string) { l.p.sessions[name] = true }

// Ref returns the word at index i. It records a mistake if no earlier line declared this name with "as NAME".
func (l *Line[B]) Ref(i int) string {
	s := l.One(i, "the name of a line above")
	if !l.p.names[s] {
		l.Mistake(l.Rest[i].Column, "end a line above with \"as "+s+"\"", "no line above is named %s", s)
	}
	return s
}

// DeclarePrompt records that the line sends a prompt with this text. The model server recognizes the turn by the
// text. If session is "", the prompt belongs to the current session. index is the number of the prompt in the script,
// from 1.
func (l *Line[B]) DeclarePrompt(session string, text script.Word) (index int) {
	s := l.p.scenario
	s.Prompts = append(s.Prompts, Prompt{session, text.Raw(), l.Number})
	return len(s.Prompts)
}

// DeclareBusy records how the agent promises to treat a prompt during a running turn.
func (l *Line[B]) DeclareBusy(promise string) { l.p.scenario.Busy = promise }

// Source returns the text that a word stands for. For @FILE, this is the content of the file in the archive; any
// other word stands for itself.
func (l *Line[B]) Source(w script.Word) script.Word {
	s, ok := w.Literal()
	if !ok || w.Quoted || !strings.HasPrefix(s, "@") {
		return w
	}
	data, ok := l.p.scenario.Archived(s[1:])
	if !ok {
		l.Mistake(w.Column, "add it below as -- "+s[1:]+" --", "the archive holds no file %q", s[1:])
	}
	return script.Quote(string(data))
}

// OnlyDuration returns the duration in the line's only word.
func (l *Line[B]) OnlyDuration() time.Duration {
	w := l.Need(0, "a duration")
	l.AtMost(1)
	return l.Duration(w)
}
