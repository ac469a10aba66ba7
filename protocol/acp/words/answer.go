package words

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

func compileCancel(l *scenarios.Line) scenarios.Step {
	name := l.TakeSession(0, openIt)
	l.AtMost(0)
	return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error {
		return notify(ctx, b, l, s, "session/cancel", map[string]any{"sessionId": s.ID})
	})
}

func compileCancelRequest(l *scenarios.Line) scenarios.Step {
	ref := l.Ref(0)
	return func(ctx context.Context, b *scenarios.Branch) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		return notify(ctx, b, l, b.Session(), "$/cancel_request", map[string]any{"requestId": json.RawMessage(e.ID)})
	}
}

func compileSendAgain(l *scenarios.Line) scenarios.Step {
	ref := l.Ref(0)
	l.AtMost(1)
	return func(ctx context.Context, b *scenarios.Branch) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		_, err = send(ctx, b, l, b.Session(), e.Method, json.RawMessage(e.JSON().Get("params").Raw()))
		return err
	}
}

func compileAnswer(l *scenarios.Line) scenarios.Step {
	opts := l.Options("result", "error", "id")
	ref := l.Ref(0)
	l.AtMost(2)
	if len(opts)+len(l.Rest) != 2 {
		return l.Usage(l.Name.Column, "one answer is needed: a choice, id=, result= or error=")
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		result, rpc, err := answerOf(b, l, opts, e)
		if err != nil {
			return err
		}
		editor, err := live(b, l)
		if err != nil {
			return err
		}
		sent, err := editor.Answer(e.Seq, result, rpc)
		if err != nil && sent.Seq == 0 {
			return b.Unsent(l, err)
		}
		b.Excuse(sent.Seq, e.Seq)
		b.Acted(b.Session(), sent)
		b.Name(l.Alias, sent)
		return nil
	}
}

// answerOf is the answer a line gives to a request of the agent.
func answerOf(b *scenarios.Branch, l *scenarios.Line, opts map[string]script.Word, e transcript.Entry) (any,
	*mockclient.RPCError, error) {
	selected := func(id string) any {
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": id}}
	}
	for key, w := range opts {
		text, err := b.Expand(w)
		if err != nil {
			return nil, nil, l.Fault(err)
		}
		switch key {
		case "id":
			return selected(text), nil, nil
		case "result":
			if !json.Valid([]byte(text)) {
				return nil, nil, l.Fault(fmt.Errorf("result=%s is no JSON", text))
			}
			return json.RawMessage(text), nil, nil
		case "error":
			rpc := &mockclient.RPCError{Message: "Refused by the scenario"}
			if _, bad := fmt.Sscan(text, &rpc.Code); bad != nil && json.Unmarshal([]byte(text), rpc) != nil {
				return nil, nil, l.Fault(fmt.Errorf("error=%s is neither a code nor a JSON object with code and message", text))
			}
			return nil, rpc, nil
		}
	}
	choice, err := b.Expand(l.Rest[1])
	if err != nil {
		return nil, nil, l.Fault(err)
	}
	if choice == "cancelled" {
		return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}, nil, nil
	}
	if o := e.JSON().Path("params.options").Find("kind", choice); o.Exists() {
		return selected(o.Get("optionId").Str()), nil, nil
	}
	f := b.Failure(l, transcript.Outcome{})
	f.Expected, f.Observed = []string{"a permission that offers " + choice}, b.Line(e)
	return nil, nil, &scenarios.Miss{Failure: f, Verdict: results.Inconclusive}
}
