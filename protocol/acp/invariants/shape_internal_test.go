package invariants

import (
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/schema"
)

// A subject that names a type the protocol does not have would never be found.
func TestShapeSubjectsAreTypes(t *testing.T) {
	known := map[string]bool{}
	for _, name := range schema.V1().Types() {
		known[name] = true
	}
	for _, s := range subjects() {
		for _, name := range s.types {
			if !known[name] {
				t.Errorf("the protocol has no type %s", name)
			}
		}
	}
}
