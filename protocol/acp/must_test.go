package acp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/rules"
)

// newMusts are the requirements of notices, compactions, system prompts, subagents, ends of
// replays and idempotency keys whose level in the specification is MUST.
const newMusts = `
	NOTICE-001 NOTICE-002 NOTICE-003 COMPACT-001 COMPACT-002 COMPACT-003 COMPACT-005 COMPACT-006
	SYS-001 SYS-002 SYS-003 SYS-004 SYS-005 SYS-007 SYS-008
	SUB-001 SUB-002 SUB-003 SUB-004 SUB-005 SUB-006 SUB-007 SUB-008 SUB-009 SUB-011 SUB-012 SUB-013
	SUB-014 SUB-015 SUB-016 SUB-017 SUB-018 SUB-020 SUB-021 SUB-023 SUB-024
	V2-RPL-001 V2-RPL-002 V2-RPL-003 V2-RPL-004 V2-RPL-005 V2-RPL-006
	V2-IDEM-001 V2-IDEM-002 V2-IDEM-003 V2-IDEM-005 V2-IDEM-008
	V2-SUB-002 V2-SUB-003 V2-SUB-004 V2-SUB-007`

// Each of them turns red by a fault of the reference agent. What a client must is judged by a rule,
// whose examples break it, or shown by an editor's scenario. For the others there is a reason.
func TestNewMustsAreProved(t *testing.T) {
	found := map[string]bool{}
	for _, protocol := range []string{faults.ACPv1, faults.ACPv2} {
		for _, f := range faults.All(protocol) {
			for _, name := range f.Reddens {
				found[strings.TrimSuffix(name, "?")] = true
			}
		}
	}
	proves := func(name string) bool {
		return found[name] || strings.HasPrefix(name, "editors/") || strings.HasPrefix(name, "C-") ||
			strings.HasPrefix(name, "V2-CLIENT-")
	}
	for _, id := range strings.Fields(newMusts) {
		known := false
		for _, set := range []*rules.Set{acp.V1().Rules, acp.V2().Rules} {
			q, ok := set.Requirement(id)
			if !ok {
				continue
			}
			known = true
			finders := slices.Concat(q.Rules, q.Checks)
			if q.Excluded == "" && !slices.ContainsFunc(finders, proves) {
				t.Errorf("%s: no fault turns one of %q red, and it is not excluded: write the fault, or the reason "+
					"in bindings.yaml",
					id, finders)
			}
		}
		if !known {
			t.Errorf("no requirement is %s", id)
		}
	}
}
