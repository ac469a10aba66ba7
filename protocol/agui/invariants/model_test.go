package invariants

import (
	"testing"

	"github.com/acp-test/acp-test/protocol/hearing"
)

// A result that an agent hands on inside of JSON has reached the model; a changed one has not.
func TestHolds(t *testing.T) {
	told := hearing.Loose(`{"result": "first \"line\"\nsecond <line>\n"}`)
	if !holds(told, "first \"line\"\nsecond <line>\n") {
		t.Error("what is escaped is missed")
	}
	if holds(told, "first \"line\"\nthird line\n") {
		t.Error("a line that is not there is found")
	}
}
