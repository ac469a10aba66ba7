package scenarios

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

func compileCancelRequest(l *line) (func(context.Context, *branch) error, error) {
	ref, m := l.ref(0)
	if m != nil {
		return nil, m
	}
	return func(_ context.Context, b *branch) error {
		e, err := b.run.referred(l, ref)
		if err != nil {
			return err
		}
		return b.notify(l, b.current(), "$/cancel_request", map[string]any{"requestId": json.RawMessage(e.ID)})
	}, nil
}

// ref is the word at i as the name of a line above.
func (l *line) ref(i int) (string, *Mistake) {
	s, m := l.one(i, "the name of a line above")
	if m != nil {
		return "", m
	}
	if !l.p.names[s] {
		return "", l.mistake(l.words[i].Column, "end a line above with \"as "+s+"\"", "no line above is named %s", s)
	}
	return s, nil
}

func compileAnswer(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("result", "error", "id")
	if m != nil {
		return nil, m
	}
	ref, m := l.ref(0)
	if m != nil {
		return nil, m
	}
	if m := l.atMost(2); m != nil {
		return nil, m
	}
	if len(opts)+len(l.words) != 2 {
		return nil, l.usage(l.Name.Column, "one answer is needed: a choice, id=, result= or error=")
	}
	return func(_ context.Context, b *branch) error {
		r := b.run
		e, err := r.referred(l, ref)
		if err != nil {
			return err
		}
		result, rpc, err := b.answerOf(l, opts, e)
		if err != nil {
			return err
		}
		_, editor, err := r.live(l)
		if err != nil {
			return err
		}
		sent, err := editor.Answer(e.Seq, result, rpc)
		if err != nil && sent.Seq == 0 {
			return r.unsent(l, err)
		}
		r.excuse(sent.Seq, e.Seq)
		b.acted(b.current(), sent)
		r.name(l.as, sent)
		return nil
	}, nil
}

// answerOf is the answer a line gives to a request of the agent.
func (b *branch) answerOf(l *line, opts map[string]script.Word, e transcript.Entry) (any, *mockclient.RPCError, error) {
	selected := func(id string) any {
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": id}}
	}
	for key, w := range opts {
		text, err := b.expand(w)
		if err != nil {
			return nil, nil, l.runtime(err)
		}
		switch key {
		case "id":
			return selected(text), nil, nil
		case "result":
			if !json.Valid([]byte(text)) {
				return nil, nil, l.runtime(fmt.Errorf("result=%s is no JSON", text))
			}
			return json.RawMessage(text), nil, nil
		case "error":
			var code int64
			if _, err := fmt.Sscan(text, &code); err != nil {
				return nil, nil, l.runtime(fmt.Errorf("error=%s is no code", text))
			}
			return nil, &mockclient.RPCError{Code: code, Message: "Refused by the scenario"}, nil
		}
	}
	choice, err := b.expand(l.words[1])
	if err != nil {
		return nil, nil, l.runtime(err)
	}
	if choice == "cancelled" {
		return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}, nil, nil
	}
	for o := range e.JSON().Path("params.options").Items() {
		if o.Get("kind").Is(choice) {
			return selected(o.Get("optionId").Str()), nil, nil
		}
	}
	f := b.run.failure(l, transcript.Outcome{})
	f.Expected, f.Observed = []string{"a permission that offers " + choice}, b.run.engine.Canonical.Line(e)
	return nil, nil, &miss{failure: f, verdict: Inconclusive}
}
