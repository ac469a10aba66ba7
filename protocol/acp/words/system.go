package words

import (
	"context"

	"github.com/acp-test/acp-test/scenarios"
)

// compileSystem compiles the system prompt that an editor gives to its sessions.
func compileSystem(l *scenarios.Line) scenarios.Step {
	l.AtMost(2)
	text, mode := l.One(0, "a text or none"), "append"
	if len(l.Rest) > 1 {
		mode = l.Choice(1, "way of giving it", "override")
	}
	var given map[string]any
	if text != "none" || mode == "override" {
		given = map[string]any{"mode": mode, "content": []any{map[string]any{"type": "text", "text": text}}}
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		of(b).change(func() { of(b).system = given })
		return nil
	}
}
