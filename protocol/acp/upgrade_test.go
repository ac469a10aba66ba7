package acp_test

import (
	"testing"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpreport"
)

// Each habit of version 1 rests on a requirement of version 2.
func TestHabits(t *testing.T) {
	for _, h := range acpreport.AllHabits() {
		if _, ok := acp.V2().Rules.Requirement(h.Requirement); !ok {
			t.Errorf("%s: there is no %s", h.Does, h.Requirement)
		}
	}
}
