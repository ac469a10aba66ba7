package agui_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
)

var updateBindings = flag.Bool("update-bindings", false, "write the checks of the scenarios to bindings.yaml")

// The scenarios say which requirements their checks are about; bindings.yaml repeats it.
func TestBindings(t *testing.T) {
	checks, err := proof.ChecksOf(shipped(t))
	if err != nil {
		t.Fatal(err)
	}
	if *updateBindings {
		if err := proof.Bind(agui.V1().Rules, checks, "invariants/bindings.yaml"); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, u := range proof.Unlike(agui.V1().Rules, checks) {
		t.Error(u)
	}
}

// The registry has no gaps, quotes no more than six words, and knows what liberties rest on.
func TestRegistry(t *testing.T) {
	set := agui.V1().Rules
	for _, g := range proof.Gaps(set) {
		t.Error(g)
	}
	for _, q := range set.Requirements() {
		if len(strings.Fields(q.Cite.Quote)) > 6 {
			t.Errorf("%s quotes more than six words: %s", q.ID, q.Cite.Quote)
		}
	}
	for _, l := range liberties.All(faults.AGUI) {
		if _, ok := set.Requirement(l.Allows); !ok {
			t.Errorf("the liberty %s rests on %s, which does not exist", l.Name, l.Allows)
		}
	}
}
