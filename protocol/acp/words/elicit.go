package words

import (
	"context"
	"encoding/json"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
)

func compileElicit(l *scenarios.Line) scenarios.Step {
	opts := l.Options("mode", "message", "nth", "content")
	choice := l.One(0, "a choice")
	l.AtMost(1)
	rule := mockclient.ElicitRule{Mode: opts["mode"].Raw(), Message: opts["message"].Raw()}
	switch choice {
	case "accept":
		rule.Answer.Accept = true
	case "decline":
		rule.Answer.Decline = true
	case "cancel":
		rule.Answer.Cancel = true
	case "hold":
		rule.Answer.Hold = true
	case "error":
		rule.Answer.Error = &mockclient.RPCError{Code: -32603, Message: "the client failed, as the scenario says"}
	default:
		return l.Usage(l.Rest[0].Column, "%q is no answer%s", choice,
			mistake.Meant(choice, []string{"accept", "decline", "cancel", "hold", "error"}))
	}
	if w, ok := opts["nth"]; ok {
		rule.Nth = l.Int(w, 1, "nth= is a number from 1")
	}
	if w, ok := opts["content"]; ok {
		if err := json.Unmarshal([]byte(w.Raw()), &rule.Answer.Content); err != nil {
			return l.Usage(w.Column, "content= is a JSON object")
		}
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		ready, c := b.Ready(), of(b)
		c.change(func() {
			for _, mode := range []string{"form", "url"} {
				if !ready && (rule.Mode == "" || rule.Mode == mode) {
					c.offers.Set("elicitation."+mode, map[string]any{})
				}
			}
			c.elicits = append([]mockclient.ElicitRule{rule}, c.elicits...)
			if c.editor != nil {
				c.editor.SetElicitation(&mockclient.Elicitation{Rules: c.elicits})
			}
		})
		return nil
	}
}
