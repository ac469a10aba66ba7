package words

import (
	"context"

	"github.com/acp-test/acp-test/scenarios"
)

// v2Commands are the acts that version 2 alone has.
func v2Commands() []*scenarios.Command {
	return []*scenarios.Command{{
		Name: "cancel-tool", Group: "acts", Cuts: true, Args: "[NAME] ID", Captures: true,
		Summary: "send tool_call/cancel and wait for the answer",
		Detail:  "An error answer is a failure, unless the line has a name: then the script judges it.",
		Compile: compileCancelItem("tool_call/cancel", "toolCallId"),
	}, {
		Name: "cancel-terminal", Group: "acts", Cuts: true, Args: "[NAME] ID", Captures: true,
		Summary: "send terminal/cancel and wait for the answer",
		Detail:  "An error answer is a failure, unless the line has a name: then the script judges it.",
		Compile: compileCancelItem("terminal/cancel", "terminalId"),
	}}
}

func compileCancelItem(method, key string) func(*scenarios.Line) scenarios.Step {
	return func(l *scenarios.Line) scenarios.Step {
		name := l.TakeSession(1, openIt)
		l.Need(0, "an id")
		l.AtMost(1)
		return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error {
			id, err := b.Expand(l.Rest[0])
			if err != nil {
				return l.Fault(err)
			}
			if l.Alias != "" { // the script judges the answer: it may name what cannot be cancelled
				defer func(from int) { b.ExcuseSince(from, method) }(b.Transcript().Len())
			}
			_, err = call(ctx, b, l, s, method, map[string]any{"sessionId": s.ID, key: id}, true)
			return err
		})
	}
}
