package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Expand expands the variables of a word.
func (b *Branch) Expand(w script.Word) (string, error) { return w.Expand(b.Variable) }

// Content returns a text to send. It expands variables, and also the variables within an expanded value.
func (b *Branch) Content(l *Line, w script.Word) (string, error) {
	text, err := b.Expand(w)
	if err == nil {
		text, err = script.ExpandText(l.File(), text, b.Variable)
	}
	if err != nil {
		return "", l.Fault(err)
	}
	return text, nil
}

// Dress adds headers from options of the form header=NAME:VALUE.
func (b *Branch) Dress(header map[string]string, options []script.Word) error {
	for _, w := range options {
		text, err := b.Expand(w)
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(text, ":")
		header[name] = strings.TrimSpace(value)
	}
	return nil
}

// Variable returns the value of $NAME, $NAME(ARG) or $NAME.path.
func (b *Branch) Variable(name string) (string, error) {
	r := b.run
	if v, err := r.Fixed(name); err == nil {
		return v, nil
	}
	head, arg, call := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	switch {
	case call && head == "SESSION":
		if s := r.Named(arg); s != nil {
			return s.ID, nil
		}
		return "", r.NotOpen(arg)
	case call && r.protocol().Variables[head] != nil:
		return r.protocol().Variables[head](r.t, arg)
	case name == "SESSION":
		if s := b.Session(); s != nil {
			return s.ID, nil
		}
		return "", errors.New("no session is open")
	}
	head, path, _ := strings.Cut(name, ".")
	if v, ok := r.taken(head); ok {
		return v.Path(path).Text(), nil
	}
	e, ok := r.named(head)
	if !ok {
		return "", unknownVariable(name, append([]string{"WORK", "HOME", "TMP", "SESSION"},
			slices.Sorted(maps.Keys(r.protocol().Variables))...))
	}
	from := r.answerOf(e) // the name of an editor's request means its response, once there is one
	if from.Seq != e.Seq {
		if _, text, ok := r.lookup(from, cmp.Or(path, r.protocol().SessionPath)); ok {
			return text, nil
		}
	}
	if path == "" {
		return r.natural(e), nil
	}
	if _, text, ok := r.lookup(e, path); ok {
		return text, nil
	}
	return "", &lacking{what: head + "." + path, entry: from}
}

// lacking is the error of a line that needs a field which an entry does not have. If the agent sent the entry, the
// error is no mistake of the scenario.
type lacking struct {
	what  string
	entry transcript.Entry
}

// Blameless implements language.Blameless.
func (e *lacking) Blameless() bool { return e.entry.Source == transcript.Agent }

func (e *lacking) Error() string {
	return fmt.Sprintf("there is no %s in #%d", e.what, e.entry.Seq)
}

// miss returns an inconclusive Miss that reports e.what as missing.
func (e *lacking) miss(r *run, l *Line) *Miss {
	return r.NoSituation(l, e.what, r.observed(e.entry), e.entry.Seq)
}

// Fixed returns the value of a variable that is known before the script starts.
func (r *run) Fixed(name string) (string, error) {
	switch name {
	case "WORK":
		return r.box.Work, nil
	case "HOME":
		return r.box.Home, nil
	case "TMP":
		return r.box.Temp, nil
	case "LLM":
		if r.model != nil {
			return r.model.URL(), nil
		}
		return "", nil
	case "SELF":
		return r.engine.Self, nil
	}
	return "", unknownVariable(name, []string{"WORK", "HOME", "TMP", "LLM", "SELF"})
}

// natural returns the value of a named entry for a script that gives no path.
func (r *run) natural(e transcript.Entry) string {
	for _, path := range r.protocol().Stands(e) {
		if _, text, ok := r.lookup(e, path); ok {
			return text
		}
	}
	if e.ID != "" {
		if v, err := wire.Parse([]byte(e.ID)); err == nil {
			return v.Text()
		}
	}
	return string(e.Raw)
}

func unknownVariable(name string, known []string) error {
	return fmt.Errorf("unknown variable $%s%s", name, mistake.Meant(name, known))
}
