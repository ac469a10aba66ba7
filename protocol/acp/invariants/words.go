package invariants

import (
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/wire"
)

func bare(text string) string { return hearing.Bare(text) }

// clip shortens an agent's text for use in a sentence.
func clip(s string) string { return wire.Clip(s, 120) }

// orNothing returns a value as text for use in a sentence, or "missing" if the value does not exist.
func orNothing(v wire.Value) string {
	if !v.Exists() {
		return "missing"
	}
	return clip(string(v.Raw()))
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
