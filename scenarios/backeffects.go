package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// compared is the size in bytes of the largest file for which a failure shows a diff.
const compared = 1 << 20

func compileCmp(l *Line) Step {
	file := l.Need(0, "a file of the workspace")
	want := l.One(1, "a file of the archive")
	l.AtMost(2)
	l.Inside(file)
	data, ok := l.Scenario().Archived(want)
	if !ok {
		return l.Mistake(l.Rest[1].Column, "add it below as -- "+want+" --", "the archive holds no file %q", want)
	}
	return func(ctx context.Context, b *Branch) error {
		name, err := b.Path(l, file)
		if err != nil {
			return err
		}
		b.settleFiles(ctx)
		expect, err := script.ExpandText(want, string(data), b.Fixed)
		if err != nil {
			return err
		}
		got, err := b.ReadFile(ctx, name)
		if err != nil {
			what := err.Error()
			if errors.Is(err, fs.ErrNotExist) {
				what = name + " does not exist"
			}
			return b.Back(l, true, name+" like "+want, what)
		}
		if !bytes.Equal(got, []byte(expect)) {
			if len(got) > compared {
				return b.Back(l, true, name+" like "+want, fmt.Sprintf("another content, of %d bytes", len(got)))
			}
			err := b.Back(l, true, name+" like "+want, "another content")
			err.(*Miss).Failure.Diff = golden.Diff(expect, string(got))
			return err
		}
		return nil
	}
}

// settleFiles waits until the editor has written the files that the agent requested. An agent may end its turn
// without waiting for the editor's response.
func (b *Branch) settleFiles(ctx context.Context) {
	wait, cancel := b.StepTimeout(ctx, 0)
	defer cancel()
	b.client.Settle(wait)
}

func compileExists(l *Line) Step {
	l.Need(0, "a file")
	l.Inside(l.Rest...)
	return func(ctx context.Context, b *Branch) error {
		b.settleFiles(ctx)
		for _, w := range l.Rest {
			name, err := b.Path(l, w)
			if err != nil {
				return err
			}
			err = b.run.lstat(name)
			switch {
			case errors.Is(err, confined.ErrOutside):
				return b.Back(l, true, l.Text, err.Error())
			case err == nil && l.Negated:
				return b.Back(l, true, "no file "+name, "it exists")
			case err != nil && !l.Negated:
				return b.Back(l, true, "a file "+name, "it does not exist")
			}
		}
		return nil
	}
}

func compileModel(l *Line) Step {
	w := l.Need(0, "requests or saw")
	if w.Raw() == "saw" {
		return compileModelSaw(l)
	}
	key, op, value, ok := w.Cut("==", "<=", ">=")
	if !ok || key != "requests" {
		return l.Usage(w.Column, "%q is neither requests==N nor saw", w.Raw())
	}
	l.AtMost(1)
	n := l.Int(value, math.MinInt, "%q is not a number", value.Raw())
	return func(_ context.Context, b *Branch) error {
		from, _, err := looker{}.window(b, b.Session())
		if err != nil {
			return l.Fault(err)
		}
		steps := map[string]bool{}
		for e := range b.run.t.From(from + 1) {
			if v := e.JSON(); e.Kind == transcript.ModelRequest && v.Get("lane").Is("main") && b.owns(e) {
				steps[v.Get("prompt").Text()+"/"+v.Get("step").Text()] = true
			}
		}
		got := len(steps)
		if op == "==" && got != n || op == "<=" && got > n || op == ">=" && got < n {
			return b.Back(l, true, fmt.Sprintf("model requests %s %d", op, n), fmt.Sprintf("%d", got))
		}
		return nil
	}
}

func (b *Branch) owns(e transcript.Entry) bool {
	s := b.Session()
	return s == nil || e.Session == "" || e.Session == s.ID
}

func compileModelSaw(l *Line) Step {
	p := &language.Pattern{Of: l.Kind("model"), Text: l.Text}
	p.Arg, p.HasArg = script.Text("request"), true
	for _, w := range l.Rest[1:] {
		f := l.Field(w)
		if f.Path == "text" {
			f.Path = "raw"
		}
		p.Fields = append(p.Fields, f)
	}
	return func(_ context.Context, b *Branch) error {
		x, err := bind(p, b)
		if err != nil {
			return l.Fault(err)
		}
		from, _, err := looker{}.window(b, b.Session())
		if err != nil {
			return l.Fault(err)
		}
		found := 0
		for e := range b.run.t.From(from + 1) {
			if x.match(e) {
				found = e.Seq
				break
			}
		}
		if found > 0 && l.Negated {
			return b.Back(l, true, "no such model request", fmt.Sprintf("one (#%d)", found), found)
		}
		if found == 0 && !l.Negated {
			return b.Back(l, true, "a model request with "+strings.TrimPrefix(l.Text, "model saw "),
				"none of the requests since the prompt")
		}
		return nil
	}
}
