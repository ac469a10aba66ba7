package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

func pickCommand() *Command {
	return &Command{
		Name: "pick", Group: "back", Args: "LIST of REF [CONDITION…] as NAME", Captures: true,
		Summary: "find the first entry of a list that fulfils conditions",
		Detail: "LIST is the path of a list in REF. REF is the message of a line above (of a request, its\n" +
			"response), or an entry that another pick found. $NAME.path is a field of the entry.\n" +
			"Agents choose the order and the names of their entries, so choose an entry by its\n" +
			"content, not by its position. A list in groups counts as one list. needs pick skips\n" +
			"the scenario if no entry matches.",
		Compile: func(l *Line) Step {
			p := pickerOf(l, 0)
			return func(ctx context.Context, b *Branch) error {
				from, lacks, err := p.take(b)
				if err == nil && lacks != "" {
					return b.Back(l, false, lacks, "no such entry", from.Seq)
				}
				return err
			}
		},
	}
}

// compileNeedsPick compiles "needs pick". Such a line skips the scenario if no list entry meets its conditions.
func compileNeedsPick(l *Line) Step {
	p := pickerOf(l, 1)
	return func(_ context.Context, b *Branch) error {
		_, lacks, err := p.take(b)
		if err == nil && lacks != "" {
			return &Skipped{"the agent has no " + lacks}
		}
		return err
	}
}

// picker is a compiled line with the command pick.
type picker struct {
	line *Line
	path string
	of   string
	is   func(b *Branch) (func(wire.Value) bool, error)
	says string // the list and the conditions as they are written
}

// pickerOf compiles the words of a line, from index from on, to a picker.
func pickerOf(l *Line, from int) *picker {
	p := &picker{line: l, path: l.One(from, "the path of a list")}
	if w := l.Need(from+1, "of"); w.Raw() != "of" {
		l.Usage(w.Column, "expected LIST of REF, got %q", w.Raw())
	}
	p.of = l.Ref(from + 2)
	p.is, p.says = Where(l, from+3), p.path
	for _, w := range l.Rest[min(from+3, len(l.Rest)):] {
		p.says += " " + w.Raw()
	}
	if l.Alias == "" {
		l.Usage(l.End(), "\"as NAME\" is missing at the end")
	}
	return p
}

// take stores the first list entry that meets the conditions, under the name that the line gives. If no entry meets
// them, lacks describes what is missing. from is the transcript entry that contains the list.
func (p *picker) take(b *Branch) (from transcript.Entry, lacks string, err error) {
	entries, from, err := p.all(b)
	if err != nil {
		return from, "", err
	}
	if len(entries) == 0 {
		return from, p.says, nil
	}
	b.run.pick(p.line.Alias, entries[0])
	return from, "", nil
}

// all returns the list entries that meet the conditions. from is the transcript entry that contains the list.
func (p *picker) all(b *Branch) (entries []wire.Value, from transcript.Entry, err error) {
	list, from, err := p.list(b)
	if err != nil {
		return nil, from, p.line.Fault(err)
	}
	is, err := p.is(b)
	if err != nil {
		return nil, from, p.line.Fault(err)
	}
	for item := range flat(list, p.path) {
		if is(item) {
			entries = append(entries, item)
		}
	}
	return entries, from, nil
}

// pick stores an entry of a list under a name.
func (r *run) pick(name string, entry wire.Value) {
	r.change(func(s *state) { s.picked[name] = entry })
}

// list returns the list to pick from, and the transcript entry that contains it.
func (p *picker) list(b *Branch) (v wire.Value, from transcript.Entry, err error) {
	if v, ok := b.run.taken(p.of); ok {
		return v.Path(p.path), transcript.Entry{}, nil
	}
	e, ok := b.run.named(p.of)
	if !ok {
		return v, e, fmt.Errorf("%s has not happened", p.of)
	}
	e = b.run.answerOf(e)
	v, _, _ = b.run.lookup(e, p.path)
	return v, e, nil
}

// flat yields the items of a list. If an item contains a list with the same name, the item is a group: flat yields
// the items of that inner list instead.
func flat(list wire.Value, path string) func(yield func(wire.Value) bool) {
	name := path[strings.LastIndex(path, ".")+1:]
	return func(yield func(wire.Value) bool) {
		for item := range list.Items() {
			if inner := item.Get(name); inner.Kind() == wire.Array {
				for one := range inner.Items() {
					if !yield(one) {
						return
					}
				}
			} else if !yield(item) {
				return
			}
		}
	}
}

// taken returns the list entry that was stored under a name.
func (r *run) taken(name string) (v wire.Value, ok bool) {
	r.change(func(s *state) { v, ok = s.picked[name] })
	return v, ok
}

// answerOf returns the agent's response to e if e is a request of the editor that has a response. Otherwise it
// returns e.
func (r *run) answerOf(e transcript.Entry) transcript.Entry {
	if e.Source == transcript.Editor && e.Kind == transcript.Request {
		if a := r.t.At(r.AnswerTo(e.Seq)); a.Ref == e.Seq {
			return a
		}
	}
	return e
}

// Where parses conditions on a JSON value from the line's words, from index from on. The result expands their
// variables and returns a function that checks a value.
func Where(l *Line, from int) func(b *Branch) (is func(wire.Value) bool, err error) {
	var fields []language.Field
	for i := from; i < len(l.Rest); i++ {
		fields = append(fields, l.Field(l.Rest[i]))
	}
	return func(b *Branch) (func(wire.Value) bool, error) {
		var bound []boundField
		for _, f := range fields {
			bf, err := bindField(f, b)
			if err != nil {
				return nil, err
			}
			bound = append(bound, bf)
		}
		return func(v wire.Value) bool {
			return !slices.ContainsFunc(bound, func(f boundField) bool {
				at := v.Path(f.path)
				return !f.holds(at, at.Text(), at.Exists())
			})
		}, nil
	}
}

// bindField returns a condition with its variables expanded.
func bindField(f language.Field, b *Branch) (boundField, error) {
	value, err := b.Expand(f.Value)
	if err != nil {
		return boundField{}, err
	}
	bf := boundField{f.Path, f.Operator, value, f.Regexp}
	if strings.HasSuffix(f.Operator, "~") && bf.regexp == nil {
		if bf.regexp, err = regexp.Compile(value); err != nil {
			return bf, fmt.Errorf("%s~%s: %w", f.Path, value, err)
		}
	}
	return bf, nil
}

// mostOfEach is the maximum number of entries for which "each" plays its block. Some agents offer hundreds of models.
const mostOfEach = 20

func eachCommand() *Command {
	return &Command{
		Name: "each", Group: "structure", Args: "LIST of REF [CONDITION…] as NAME", Captures: true, Blocks: 1,
		Summary: "play a block for each entry of a list that fulfils conditions",
		Detail: "LIST, REF and the conditions are those of pick; in the block $NAME.path is a field of the\n" +
			"entry. The list is read once, when the line is played. The block is played for at most 20\n" +
			"entries. To skip the scenario if the list is empty, put needs pick before it.",
		Compile: compileEach,
	}
}

func compileEach(l *Line) Step {
	p := pickerOf(l, 0)
	l.DeclareName(l.Alias)
	steps := l.Body(0)
	return func(ctx context.Context, b *Branch) error {
		entries, _, err := p.all(b)
		if err != nil {
			return err
		}
		for _, entry := range entries[:min(len(entries), mostOfEach)] {
			b.run.pick(l.Alias, entry)
			if err := b.play(ctx, steps); err != nil {
				return err
			}
		}
		return nil
	}
}
