package words

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/wire"
)

// threadName removes the name of a thread from the beginning of a line. ok is false if the line does not begin with
// one.
func threadName(l *scenarios.Line) (name string, ok bool) {
	if name, ok = l.SessionName(0); !ok {
		return "", false
	}
	l.Rest = l.Rest[1:]
	return name, true
}

// threadOf removes the name of a thread from the beginning of a line. It returns a function that returns the thread.
// If the line names no thread, it is the current one.
func threadOf(l *scenarios.Line) func(b *scenarios.Branch) (*scenarios.Session, error) {
	name, ok := threadName(l)
	return func(b *scenarios.Branch) (*scenarios.Session, error) {
		s := b.Session()
		if ok {
			s = b.Named(name)
		}
		if s == nil {
			return nil, b.NoSituation(l, "a thread", "none")
		}
		return s, nil
	}
}

func compileMessages(l *scenarios.Line) scenarios.Step {
	find := threadOf(l)
	l.Need(0, "a role")
	var want []string
	named := map[string]bool{}
	for i := range l.Rest {
		role := l.Choice(i, "role", "user", "assistant", "tool", "system", "developer", "reasoning", "activity")
		want = append(want, role)
		named[role] = true
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		s, err := find(b)
		if err != nil {
			return err
		}
		var have []string
		of(b).change(s.ID, func(t *thread) {
			for _, m := range t.Messages {
				if role := m.Role(); named[role] || role != "reasoning" && role != "activity" {
					have = append(have, role)
				}
			}
		})
		if strings.Join(have, " ") != strings.Join(want, " ") {
			return b.Back(l, true, "messages of "+strings.Join(want, ", "), "messages of "+strings.Join(have, ", "))
		}
		return nil
	}
}

// demand is one condition of a line with the command state.
type demand struct {
	path, operator, value string
	regexp                *regexp.Regexp
}

func compileState(l *scenarios.Line) scenarios.Step {
	find := threadOf(l)
	l.Need(0, "a condition")
	var demands []demand
	for _, w := range l.Rest {
		var d demand
		if key, op, value, ok := w.Cut("=", "~"); ok {
			d = demand{path: key, operator: op, value: value.Raw()}
		} else if path, ok := strings.CutSuffix(w.Raw(), "?"); ok {
			d = demand{path: path, operator: "?"}
		} else {
			return l.Usage(w.Column, "%q is no condition", w.Raw())
		}
		if d.operator == "~" {
			var err error
			if d.regexp, err = regexp.Compile(d.value); err != nil {
				return l.Usage(w.Column, "bad regular expression: %v", err)
			}
		}
		demands = append(demands, d)
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		s, err := find(b)
		if err != nil {
			return err
		}
		raw := "{}"
		of(b).change(s.ID, func(t *thread) {
			if t.State != nil {
				raw = string(t.State)
			}
		})
		state, err := wire.Parse([]byte(raw))
		if err != nil {
			return fmt.Errorf("the state of thread %s: %w", s.Name, err)
		}
		for _, d := range demands {
			if d.holds(state.Path(d.path)) == l.Negated {
				return b.Back(l, true, strings.TrimPrefix(l.Text, "! "), "the state "+wire.Clip(raw, 400))
			}
		}
		return nil
	}
}

func (d demand) holds(v wire.Value) bool {
	switch {
	case !v.Exists():
		return false
	case d.operator == "=":
		return v.Text() == d.value
	case d.operator == "~":
		return d.regexp.MatchString(v.Text())
	}
	return !v.IsNull()
}
