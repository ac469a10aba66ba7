package scenarios

import "context"

// Silence is silence, for its test.
var Silence = silence

// Guarded plays one line that calls f, and returns what becomes of it.
func Guarded(f func()) error {
	line := func(context.Context, *Branch) error { f(); return nil }
	return (&Branch{}).play(context.Background(), []step{{run: line}})
}
