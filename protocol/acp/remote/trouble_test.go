package remote

import (
	"io"
	"strings"
	"testing"
)

// A stream can be resumed only after an event with an id, so a cut waits for one.
func TestACutWaitsForAnEventThatCanBeResumed(t *testing.T) {
	const event = "data: {}\n\n"
	for last, want := range map[string]string{"": event, "7": event[:4]} {
		h := &overHTTP{troubles: []Trouble{Cut}}
		f := &fragile{ReadCloser: io.NopCloser(strings.NewReader(event)), h: h, last: &last}
		if got, _ := io.ReadAll(f); string(got) != want {
			t.Errorf("after the event %q: got %q, want %q", last, got, want)
		}
	}
}
