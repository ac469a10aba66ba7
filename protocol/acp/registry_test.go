package acp_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
)

var updateBindings = flag.Bool("update-bindings", false,
	"write the checks of the scenarios of version 2 to bindings.yaml")

// The scenarios say which requirements their checks are about; bindings.yaml repeats it.
// Of version 1, kept.txt names those that hold in version 2.
func TestBindingsOfVersion2(t *testing.T) {
	all, err := acp.V2().Shipped()
	if err != nil {
		t.Fatal(err)
	}
	editors, err := acp.V2().ForEditors()
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, editors...)
	checks, err := proof.ChecksOf(all)
	if err != nil {
		t.Fatal(err)
	}
	if *updateBindings {
		if err := proof.Bind(acp.V2().Rules, checks, "invariants/v2/bindings.yaml"); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, u := range proof.Unlike(acp.V2().Rules, checks) {
		t.Error(u)
	}
}

// The registry has no gaps, and what is kept of version 1 is bound.
func TestRegistryOfVersion2(t *testing.T) {
	for _, g := range proof.Gaps(acp.V2().Rules, invariants.Kept()...) {
		if !strings.HasPrefix(g, "WIRE-VALID/") { // of models the protocol says nothing, and the session is dead
			t.Error(g)
		}
	}
}
