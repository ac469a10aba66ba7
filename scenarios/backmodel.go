package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

func compileModel(l *Line) (Step, error) {
	w, m := l.Need(0, "requests or saw")
	if m != nil {
		return nil, m
	}
	if w.Raw() == "saw" {
		return compileModelSaw(l)
	}
	key, op, value, ok := w.Cut("==", "<=", ">=")
	if !ok || key != "requests" {
		return nil, l.Usage(w.Column, "%q is neither requests==N nor saw", w.Raw())
	}
	if m := l.AtMost(1); m != nil {
		return nil, m
	}
	n, err := strconv.Atoi(value.Raw())
	if err != nil {
		return nil, l.Usage(value.Column, "%q is no number", value.Raw())
	}
	return func(_ context.Context, b *Branch) error {
		from, _, err := b.run.window(b.Session(), "", 0)
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
	}, nil
}

func (b *Branch) owns(e transcript.Entry) bool {
	s := b.Session()
	return s == nil || e.Session == "" || e.Session == s.ID
}

func compileModelSaw(l *Line) (Step, error) {
	p := &pattern{of: l.p.kinds["model"], text: l.Text}
	p.arg, p.hasArg = script.Text("request"), true
	for _, w := range l.Rest[1:] {
		f, m := l.field(w)
		if m != nil {
			return nil, m
		}
		if f.path == "text" {
			f.path = "raw"
		}
		p.fields = append(p.fields, *f)
	}
	return func(_ context.Context, b *Branch) error {
		x, err := p.bind(b)
		if err != nil {
			return l.Fault(err)
		}
		from, _, err := b.run.window(b.Session(), "", 0)
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
			return b.Back(l, true, "no such model request", fmt.Sprintf("#%d is one", found), found)
		}
		if found == 0 && !l.Negated {
			return b.Back(l, true, "a model request with "+strings.TrimPrefix(l.Text, "model saw "), "none of the requests since the prompt")
		}
		return nil
	}, nil
}
