package scenarios

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// pattern is a compiled description of one kind of entry with conditions on
// its fields.
type pattern struct {
	text   string // as written
	of     *Kind
	arg    script.Word
	hasArg bool
	fields []field
	// session is the name of the session it must belong to; "" the branch's,
	// "any" whatever.
	session string
}

type field struct {
	path     string
	operator string // = != ~ !~ ?
	value    script.Word
	regexp   *regexp.Regexp // if value is literal
}

// pattern reads a pattern from words[from:], up to a word of stop or the end,
// and returns the index behind it.
func (l *Line) pattern(from int, stop ...string) (p *pattern, next int) {
	p = &pattern{of: &Kind{}}
	if from >= len(l.Rest) {
		l.Usage(len(l.Text)+1, "a pattern is missing")
		return p, from
	}
	first := l.Rest[from]
	name, ok := first.Literal()
	switch p.of = l.p.kinds[name]; {
	case !ok || first.Quoted || p.of == nil && !strings.Contains(name, "/"):
		const how = "a pattern begins with a kind of entry: acp-test help patterns"
		hint := ""
		if ok && !first.Quoted {
			hint = mistake.Nearest(name, slices.Sorted(maps.Keys(l.p.kinds)))
		}
		l.Mistake(first.Column, strings.TrimSpace(hint+" "+how), "%q is no pattern", first.Raw())
		return p, len(l.Rest)
	case p.of == nil:
		p.of, p.arg, p.hasArg = methodKind(l.p.protocol), first, true
	}
	if p.of.Alone {
		l.p.scenario.needsAlone(fmt.Sprintf("line %d: %s", l.Number, p.of.Name))
	}
	arg := p.of.Arg
	for next = from + 1; next < len(l.Rest); next++ {
		w := l.Rest[next]
		if s, ok := w.Literal(); ok && !w.Quoted && slices.Contains(stop, s) {
			break
		}
		if next == from+1 && arg != "" && !isField(w) {
			p.arg, p.hasArg = w, true
			continue
		}
		f := l.field(w)
		if f.path == "session" && f.operator == "=" {
			s, ok := f.value.Literal()
			if !ok || s != "any" && !l.p.sessions[s] {
				l.Mistake(w.Column, "", "session= takes the name of a session opened above, or any")
			}
			p.session = s
			continue
		}
		p.fields = append(p.fields, f)
	}
	if arg != "" && arg != "?" && !p.hasArg {
		l.Mistake(first.Column, name+" "+arg, "%s needs %s", name, arg)
	}
	l.checkArg(p)
	var text []string
	for _, w := range l.Rest[from:next] {
		text = append(text, w.Raw())
	}
	p.text = strings.Join(text, " ")
	return p, next
}

// checkArg finds mistakes in the argument of a pattern before the run.
func (l *Line) checkArg(p *pattern) {
	s, ok := p.arg.Literal()
	if !p.hasArg || !ok {
		return
	}
	switch of := p.of; {
	case of.Name == "turn":
		ends := append(slices.Clone(l.p.protocol.StopReasons), "any", "error")
		for _, r := range strings.Split(s, "|") {
			if !slices.Contains(ends, r) {
				l.Mistake(p.arg.Column, mistake.Nearest(r, ends), "%q is no stop reason", r)
			}
		}
	case of.Events != nil && !slices.Contains(of.Events, s):
		last := len(of.Events) - 1
		l.Mistake(p.arg.Column, strings.Join(of.Events[:last], ", ")+" or "+of.Events[last], "%s has no event %q", of.Of, s)
	case of.Name == "gate":
		l.p.scenario.gates = append(l.p.scenario.gates, gateUse{s, l.Number})
	case of.ofRequest() && !l.p.names[s]:
		l.Mistake(p.arg.Column, "name a request with \"… as NAME\" first", "no line above is named %s", s)
	}
}

func isField(w script.Word) bool {
	if _, _, _, ok := w.Cut("!=", "!~", "=", "~"); ok {
		return true
	}
	s, ok := w.Literal()
	return ok && !w.Quoted && len(s) > 1 && strings.HasSuffix(s, "?")
}

func (l *Line) field(w script.Word) field {
	if key, op, value, ok := w.Cut("!=", "!~", "=", "~"); ok {
		f := field{path: key, operator: op, value: value}
		if s, literal := value.Literal(); literal && strings.HasSuffix(op, "~") {
			f.regexp = l.regexp(value.Column, s)
		}
		return f
	}
	s, ok := w.Literal()
	if !ok || w.Quoted || len(s) < 2 || !strings.HasSuffix(s, "?") {
		l.Mistake(w.Column, "a condition is path=value, path!=value, path~regexp or path?", "%q is no condition", w.Raw())
	}
	return field{path: strings.TrimSuffix(s, "?"), operator: "?"}
}

// bound is a pattern with its variables expanded, for one branch.
type bound struct {
	Pattern
	run    *run
	text   string
	of     *Kind
	fields []boundField
	prompt int // Seq of the prompt that is open where we look from; 0 if none
}

type boundField struct {
	path, operator, value string
	regexp                *regexp.Regexp
}

func (p *pattern) bind(b *Branch) (*bound, error) {
	x := &bound{run: b.run, text: p.text, of: p.of}
	if p.hasArg {
		arg, err := b.Expand(p.arg)
		if err != nil {
			return nil, err
		}
		x.Arg = arg
	}
	if p.of.ofRequest() {
		e, ok := b.run.named(x.Arg)
		if !ok {
			return nil, fmt.Errorf("%s has not happened", x.Arg)
		}
		x.Ref = e.Seq
	}
	switch p.session {
	case "any":
	case "":
		if s := b.Session(); s != nil {
			x.Session = s.ID
		}
	default:
		s := b.Named(p.session)
		if s == nil {
			return nil, b.NotOpen(p.session)
		}
		x.Session = s.ID
	}
	for _, f := range p.fields {
		bf, err := f.bind(b)
		if err != nil {
			return nil, err
		}
		x.fields = append(x.fields, bf)
	}
	return x, nil
}

// match reports whether an entry is of the pattern's kind and session and
// fulfils all its conditions.
func (x *bound) match(e transcript.Entry) bool {
	if !x.matchKind(e) {
		return false
	}
	for _, f := range x.fields {
		if !f.match(x.run, e) {
			return false
		}
	}
	return true
}

func (x *bound) matchKind(e transcript.Entry) bool {
	return x.of.Match(x.Pattern, e, x.Session == "" || e.Session == "" || e.Session == x.Session)
}

// match reports whether an entry fulfils the condition. With * in its path it is
// about the entries of a list: one of them has to be so, or none may.
func (f *boundField) match(r *run, e transcript.Entry) bool {
	list, field, any := strings.Cut(f.path, ".*.")
	if !any {
		return f.holds(r.lookup(e, f.path))
	}
	all, _, _ := r.lookup(e, list)
	none := strings.HasPrefix(f.operator, "!")
	for item := range flat(all, list) {
		v := item.Path(field)
		if f.holds(v, v.Text(), v.Exists()) != none {
			return !none
		}
	}
	return none
}

// holds reports whether a value fulfils the condition.
func (f *boundField) holds(v wire.Value, text string, found bool) bool {
	switch f.operator {
	case "?":
		// A null result is a success all the same, as the pages of the
		// specification show it; what is wrong with it is for SHAPE to say.
		return found && (f.path == "result" || !v.IsNull())
	case "=":
		return found && OneOf(text, f.value)
	case "!=":
		return !found || !OneOf(text, f.value)
	case "~":
		return found && f.regexp.MatchString(text)
	case "!~":
		return !found || !f.regexp.MatchString(text)
	}
	return false
}

// OneOf reports whether a text is one of the values that stand in a pattern,
// separated by |.
func OneOf(text, values string) bool {
	return text == values || strings.Contains(values, "|") && slices.Contains(strings.Split(values, "|"), text)
}

// lookup finds the value at a path of an entry: first in the part of the
// message a reader means, then further out. "text" is also that of stderr.
func (r *run) lookup(e transcript.Entry, path string) (v wire.Value, text string, found bool) {
	switch {
	case path == "raw":
		return wire.Value{}, string(e.Raw), true
	case path == "problem" && e.Problem != "":
		return wire.Value{}, e.Problem, true
	case path == "text" && e.Source == transcript.Stderr:
		return wire.Value{}, string(e.Raw), true
	}
	if text, ok := r.told(e, path); ok {
		return wire.Value{}, text, true
	}
	within, path := r.protocol().Lookup(e, path)
	for _, in := range append(within, e.JSON()) {
		if v := in.Path(path); v.Exists() {
			return v, v.Text(), true
		}
	}
	return wire.Value{}, "", false
}
