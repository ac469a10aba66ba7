package invariants

import (
	"cmp"

	"github.com/acp-test/acp-test/wire"
)

// clip shortens text from an agent for a sentence.
func clip(s string) string { return wire.Clip(s, 120) }

// orNothing is the text of a value for a sentence.
func orNothing(v wire.Value) string {
	if !v.Exists() {
		return "missing"
	}
	return clip(string(v.Raw()))
}

func orEmpty(s string) string {
	return cmp.Or(s, "without an id")
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// keep filters in place.
func keep[T any](all []T, want func(T) bool) []T {
	kept := all[:0]
	for _, one := range all {
		if want(one) {
			kept = append(kept, one)
		}
	}
	clear(all[len(kept):])
	return kept
}
