package sweep

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Act is an action of an editor, its user or the model at a point of a turn. It
// is defined in a table of acts.
type Act struct {
	Name string
	// Kind is the kind of act; "" means that Name is also the kind.
	Kind string
	// Rank orders acts: those with a lower rank are more likely to find a bug.
	Rank int
	// Needs is a capability that the agent must have, or "".
	Needs string
	// at lists the conditions under which the act is possible. flags has the other
	// words of its table entry.
	at    []script.Word
	flags []string
	body  []*script.Line
}

// Is reports whether the act has a flag in the table. It is false for a nil
// act.
func (a *Act) Is(flag string) bool { return a != nil && slices.Contains(a.flags, flag) }

// Acts is a table of acts in the commands of a protocol. B is the type that
// writes the lines of an act. The table has the syntax of scenarios:
//
//	act NAME rank=N kind=KIND needs=CAPABILITY FLAG… [CONDITION]… { LINES }
//	part NAME { LINES }
//
// A line of an act becomes a line of the generated scenario. A line that begins
// with "do" must stay when the scenario is shortened. "check" opens a check,
// and "post" sends a prompt. The name of a part is replaced by the part's
// lines; {1} in them is the first word after the name. {name} is a value. A
// line is omitted if one of its conditions is false. [open|idle] is true if at
// least one of the two is true, and [!open|idle] if neither is.
type Acts[B Writer] struct {
	List []*Act
	// Flags, Conditions, Values and Parts are the words that the protocol adds to
	// the language of tables.
	Flags      []string
	Conditions map[string]func(B) bool
	Values     map[string]func(B) script.Word
	Parts      map[string]func(B, *script.Line)
	parts      map[string][]*script.Line
}

// Writer is a Builder, or a type of a protocol that embeds one.
type Writer interface{ built() *Builder }

// Read adds the acts and parts of a table. It panics if the table has a
// mistake, because tables are part of the program.
func (t *Acts[B]) Read(text string) *Acts[B] {
	f, mistakes := script.Parse("acts", []byte(text))
	if len(mistakes) > 0 {
		panic(mistakes[0])
	}
	if t.parts == nil {
		t.parts = map[string][]*script.Line{}
	}
	for _, l := range f.Lines {
		switch {
		case l.Is("part"):
			t.parts[l.Words[0].Raw()] = l.Blocks[0]
		case l.Is("act"):
			t.List = append(t.List, t.act(l))
		}
	}
	for l := range f.All() {
		for _, w := range slices.Concat(l.Conditions, l.Words) {
			if strings.HasPrefix(w.Raw(), "[") {
				t.know(l, w)
			}
		}
	}
	return t
}

// know panics if the protocol does not define the condition w of the line l.
func (t *Acts[B]) know(l *script.Line, w script.Word) {
	names, _ := condition(w)
	for _, name := range names {
		if t.Conditions[name] == nil {
			panic(fmt.Sprintf("acts:%d: there is no condition %q", l.Number, name))
		}
	}
}

// act parses one entry of the table.
func (t *Acts[B]) act(l *script.Line) *Act {
	a := &Act{Name: l.Words[0].Raw(), body: l.Blocks[0]}
	for _, w := range l.Words[1:] {
		key, _, value, ok := w.Cut("=")
		switch {
		case strings.HasPrefix(w.Raw(), "["):
			a.at = append(a.at, w)
		case key == "kind":
			a.Kind = value.Raw()
		case key == "needs":
			a.Needs = value.Raw()
		case key == "rank":
			a.Rank, _ = strconv.Atoi(value.Raw())
		case ok || !slices.Contains(t.Flags, w.Raw()):
			panic(fmt.Sprintf("acts:%d: there is no option %q", l.Number, w.Raw()))
		default:
			a.flags = append(a.flags, w.Raw())
		}
	}
	return a
}

// Fits reports whether the act of b is possible at b's point of the turn.
func (t *Acts[B]) Fits(b B) bool { return t.hold(b, b.built().Act.at) }

// Write writes the lines of b's act.
func (t *Acts[B]) Write(b B) { t.Do(b, b.built().Act) }

// Do writes the lines of the act a.
func (t *Acts[B]) Do(b B, a *Act) { t.lines(b, a.body, nil) }

// Part writes the lines of the part with this name.
func (t *Acts[B]) Part(b B, name string) { t.lines(b, t.parts[name], nil) }

// condition parses a condition: [NAME|NAME…] or [!NAME|NAME…].
func condition(w script.Word) (names []string, negated bool) {
	list, negated := strings.CutPrefix(strings.Trim(w.Raw(), "[]"), "!")
	return strings.Split(list, "|"), negated
}

// hold reports whether all conditions are true.
func (t *Acts[B]) hold(b B, list []script.Word) bool {
	return !slices.ContainsFunc(list, func(w script.Word) bool {
		names, negated := condition(w)
		return negated == slices.ContainsFunc(names, func(name string) bool { return t.Conditions[name](b) })
	})
}

// lines writes lines of a table whose conditions are true. args are the
// arguments of a part.
func (t *Acts[B]) lines(b B, list []*script.Line, args []script.Word) {
	for _, l := range list {
		if l.Kind == script.Command && t.hold(b, l.Conditions) {
			t.line(b, t.filled(b, l, args))
		}
	}
}

// line writes one line whose values are already filled in.
func (t *Acts[B]) line(b B, l *script.Line) {
	name, builder := l.Name.Raw(), b.built()
	if part := t.parts[name]; part != nil {
		t.lines(b, part, l.Words)
		return
	}
	switch part := t.Parts[name]; {
	case part != nil:
		part(b, l)
	case name == "check":
		requirement, slug := "", l.Words[len(l.Words)-1].Raw()
		if len(l.Words) > 1 {
			requirement = l.Words[0].Raw()
		}
		builder.Check(requirement, slug)
	case name == "post":
		builder.post(l)
	case name == "do":
		l.Name, l.Words = l.Words[0], l.Words[1:]
		l.Text = l.String()
		t.line(b, l)
		builder.KeepLast()
	default:
		builder.Lines = append(builder.Lines, l)
	}
}

// value matches a placeholder for a value in a line of a table.
var value = lazy.Regexp(`\{[a-z0-9-]+\}`)

// filled returns a copy of a line with its values filled in, without its
// conditions.
func (t *Acts[B]) filled(b B, l *script.Line, args []script.Word) *script.Line {
	bare := *l
	bare.Conditions = nil
	text := value().ReplaceAllStringFunc(bare.String(), func(place string) string {
		name := strings.Trim(place, "{}")
		if n, err := strconv.Atoi(name); err == nil {
			return append(args, make([]script.Word, n)...)[n-1].String()
		}
		f := t.Values[name]
		if f == nil {
			panic(fmt.Sprintf("acts:%d: there is no value %s", l.Number, place))
		}
		return f(b).String()
	})
	out := script.New(strings.ReplaceAll(text, "%", "%%"))
	for i, block := range l.Blocks {
		out.Blocks[i] = nil
		for _, inner := range block {
			out.Blocks[i] = append(out.Blocks[i], t.filled(b, inner, args))
		}
	}
	return out
}
