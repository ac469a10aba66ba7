package language

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// Pattern describes entries of one kind, with conditions on their fields.
type Pattern struct {
	Text   string // the pattern as it is written
	Of     *Kind
	Arg    script.Word
	HasArg bool
	Fields []Field
	// Session is the name of the session to which an entry must belong. "" means the branch's session, and "any" means
	// every session.
	Session string
}

// Field is a condition on the value at a path.
type Field struct {
	Path     string
	Operator string // = != ~ !~ ?
	Value    script.Word
	Regexp   *regexp.Regexp // set if Value is literal
}

// Pattern parses a pattern that begins at Rest[from]. The pattern ends before a word in stop or at the end of the
// line. next is the index after the pattern.
func (l *Line[B]) Pattern(from int, stop ...string) (p *Pattern, next int) {
	p = &Pattern{Of: &Kind{}}
	if from >= len(l.Rest) {
		l.Usage(len(l.Text)+1, "a pattern is missing")
		return p, from
	}
	first := l.Rest[from]
	if !l.kindOf(first, p) {
		return p, len(l.Rest)
	}
	if p.Of.Alone {
		l.p.scenario.needsAlone(fmt.Sprintf("line %d: %s", l.Number, p.Of.Name))
	}
	arg := p.Of.Arg
	for next = from + 1; next < len(l.Rest); next++ {
		w := l.Rest[next]
		if s, ok := w.Literal(); ok && !w.Quoted && slices.Contains(stop, s) {
			break
		}
		if next == from+1 && arg != "" && !isField(w) {
			p.Arg, p.HasArg = w, true
			continue
		}
		l.condition(w, p)
	}
	if arg != "" && arg != "?" && !p.HasArg {
		l.Mistake(first.Column, first.Raw()+" "+arg, "%s needs %s", first.Raw(), arg)
	}
	l.checkArg(p)
	p.Text = strings.Join(lists.Map(l.Rest[from:next], script.Word.Raw), " ")
	return p, next
}

// kindOf sets a pattern's kind from its first word. It reports false if there is no such kind.
func (l *Line[B]) kindOf(first script.Word, p *Pattern) bool {
	name, ok := first.Literal()
	ok = ok && !first.Quoted
	switch kind := l.p.kinds[name]; {
	case ok && kind != nil:
		p.Of = kind
	case ok && strings.Contains(name, "/"):
		p.Of, p.Arg, p.HasArg = &l.p.dialect.Method, first, true
	default:
		const how = "a pattern begins with a kind of entry: acp-test help patterns"
		hint := ""
		if ok {
			hint = mistake.Nearest(name, slices.Sorted(maps.Keys(l.p.kinds)))
		}
		l.Mistake(first.Column, strings.TrimSpace(hint+" "+how), "%q is not a pattern", first.Raw())
		return false
	}
	return true
}

// condition adds a condition to a pattern, or sets the pattern's session if the word is session=NAME.
func (l *Line[B]) condition(w script.Word, p *Pattern) {
	f := l.Field(w)
	if f.Path != "session" || f.Operator != "=" {
		p.Fields = append(p.Fields, f)
		return
	}
	s, ok := f.Value.Literal()
	if !ok || s != "any" && !l.p.sessions[s] {
		l.Mistake(w.Column, "", "session= takes the name of a session opened above, or any")
	}
	p.Session = s
}

// checkArg records mistakes in the argument of a pattern. It skips an argument with variables.
func (l *Line[B]) checkArg(p *Pattern) {
	s, ok := p.Arg.Literal()
	if !p.HasArg || !ok {
		return
	}
	switch of := p.Of; {
	case of.Name == "turn":
		ends := append(slices.Clone(l.p.dialect.StopReasons), "any", "error")
		for _, r := range strings.Split(s, "|") {
			if !slices.Contains(ends, r) {
				l.Mistake(p.Arg.Column, mistake.Nearest(r, ends), "%q is no stop reason", r)
			}
		}
	case of.Events != nil && !slices.Contains(of.Events, s):
		last := len(of.Events) - 1
		l.Mistake(p.Arg.Column, strings.Join(of.Events[:last], ", ")+" or "+of.Events[last], "%s has no event %q", of.Of, s)
	case of.Name == "gate":
		l.p.scenario.gates = append(l.p.scenario.gates, gate{s, l.Number})
	case of.OfRequest() && !l.p.names[s]:
		l.Mistake(p.Arg.Column, "name a request with \"… as NAME\" first", "no line above is named %s", s)
	}
}

func isField(w script.Word) bool {
	if _, _, _, ok := w.Cut("!=", "!~", "=", "~"); ok {
		return true
	}
	s, ok := w.Literal()
	return ok && !w.Quoted && len(s) > 1 && strings.HasSuffix(s, "?")
}

func (l *Line[B]) Field(w script.Word) Field {
	if key, op, value, ok := w.Cut("!=", "!~", "=", "~"); ok {
		f := Field{Path: key, Operator: op, Value: value}
		if s, literal := value.Literal(); literal && strings.HasSuffix(op, "~") {
			f.Regexp = l.Regexp(value.Column, s)
		}
		return f
	}
	s, ok := w.Literal()
	if !ok || w.Quoted || len(s) < 2 || !strings.HasSuffix(s, "?") {
		l.Mistake(w.Column, "a condition is path=value, path!=value, path~regexp or path?", "%q is no condition", w.Raw())
	}
	return Field{Path: strings.TrimSuffix(s, "?"), Operator: "?"}
}

// kinds returns the kinds of patterns by name, including aliases.
func (d *Dialect[B]) kinds() map[string]*Kind {
	all := map[string]*Kind{}
	for _, k := range slices.Concat(d.Kinds, d.AnyKinds) {
		for _, name := range append([]string{k.Name}, k.Aliases...) {
			all[name] = &k
		}
	}
	return all
}

// Kind is a kind of pattern, such as turn or request.
type Kind struct {
	// Name is the first word of the pattern. Arg is the usage of the argument that follows: "" for none, "?" for an
	// optional one, or "REF" for the name of a line that sent a request. Help describes the matching entries.
	Name, Arg, Help string
	// Aliases are other names.
	Aliases []string
	// Events lists the allowed arguments, which are events of the source in the field Of. If it is nil, every argument
	// is allowed.
	Events []string
	Of     string
	// Match reports whether an entry matches. own is true if the entry belongs to the pattern's session.
	Match func(x Bound, e transcript.Entry, own bool) bool
	// Inner means that the entry can only come before the end of the turn. Opens means that later lines have no
	// situation to judge if the entry is missing. Effect means that the entry shows an effect or an end. Outlives means
	// that the entry may come after the agent has exited. Answered means that "after" refers to the response to the
	// entry, not to the entry itself.
	Inner, Opens, Effect, Outlives, Answered bool
	// Alone means that a scenario with this kind needs an agent process that no other scenario has used.
	Alone bool

	// InnerArg reports whether a pattern with this argument counts as Inner and Opens. If it is nil, none does.
	InnerArg func(arg string) bool
}

// OfRequest reports whether the argument is the name of a request. The search for entries then begins at that
// request.
func (k *Kind) OfRequest() bool { return k.Arg == "REF" }

// Bound holds a pattern's conditions on entries, with variables expanded.
type Bound struct {
	// Arg is the pattern's argument, or "".
	Arg string
	// Session is the id of the pattern's session; "" means any session.
	Session string
	// Ref is the Seq of the request that the pattern names.
	Ref int
	// Over lists the prompts whose turns have ended. A second response to such a prompt ends no other turn.
	Over []int
}
