package scenarios

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

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
	n := l.Int(value, math.MinInt, "%q is no number", value.Raw())
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
			return b.Back(l, true, "no such model request", fmt.Sprintf("#%d is one", found), found)
		}
		if found == 0 && !l.Negated {
			return b.Back(l, true, "a model request with "+strings.TrimPrefix(l.Text, "model saw "),
				"none of the requests since the prompt")
		}
		return nil
	}
}
