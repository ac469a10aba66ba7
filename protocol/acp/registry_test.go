package acp_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/invariants/second"
	"github.com/acp-test/acp-test/rules"
)

var updateBindings = flag.Bool("update-bindings", false, "write the checks of the scenarios of version 2 to bindings.yaml")

const bindingsFile = "invariants/second/bindings.yaml"

// checksOf are the checks of the scenarios of version 2, by requirement.
func checksOf(t *testing.T) map[string][]string {
	checks := map[string][]string{}
	all, err := acp.V2().Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		src, err := s.Source()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(src)) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "check" {
				continue
			}
			slug := strings.ToLower(words[1])
			var about []string
			for _, w := range words[1:] {
				if w == strings.ToUpper(w) {
					about = append(about, w)
				} else {
					slug = w
				}
			}
			for _, id := range about {
				checks[id] = append(checks[id], s.ID+"#"+slug)
			}
		}
	}
	return checks
}

// The scenarios say which requirements their checks are about; bindings.yaml repeats it.
func TestBindingsOfVersion2(t *testing.T) {
	checks, set := checksOf(t), acp.V2().Rules
	if *updateBindings {
		old, err := os.ReadFile(bindingsFile)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, _ := strings.Cut(string(old), "\nchecks:\n")
		_, tail, _ := strings.Cut(rest, "\n\n")
		out := head + "\nchecks:\n"
		for _, q := range set.Requirements() {
			if ids := checks[q.ID]; ids != nil {
				out += fmt.Sprintf("  %s: [%s]\n", q.ID, strings.Join(ids, ", "))
			}
		}
		if err := os.WriteFile(bindingsFile, []byte(out+"\n"+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, q := range set.Requirements() {
		if !slices.Equal(q.Checks, checks[q.ID]) {
			t.Errorf("%s: bindings.yaml has %v, and the scenarios %v: go test ./protocol/acp -run Bindings -update-bindings",
				q.ID, q.Checks, checks[q.ID])
		}
		delete(checks, q.ID)
	}
	if len(checks) > 0 {
		t.Errorf("no requirement is %v; kept.txt names those of version 1", checks)
	}
}

// Every requirement of level must or should is bound to a rule or a check, or it says why
// not; every fail rests on a must; every requirement that is kept has a check.
func TestRegistryOfVersion2(t *testing.T) {
	set := acp.V2().Rules
	for _, q := range set.Requirements() {
		bound := len(q.Rules)+len(q.Checks) > 0
		switch {
		case bound && q.Excluded != "":
			t.Errorf("%s is bound and excluded", q.ID)
		case !bound && q.Excluded == "" && (q.Level == "must" || q.Level == "should"):
			t.Errorf("%s is bound to nothing", q.ID)
		case !bound && slices.Contains(second.Kept(), q.ID):
			t.Errorf("%s is kept of version 1 and bound to nothing", q.ID)
		case q.Cite.Quote == "" || q.Statement == "" || q.HowToTest == "":
			t.Errorf("%s is not whole: %+v", q.ID, q)
		}
	}
	for _, r := range set.Rules() {
		for _, p := range r.Points {
			backed := slices.ContainsFunc(p.Requirements, func(id string) bool {
				q, ok := set.Requirement(id)
				return ok && q.Level == "must"
			})
			if p.Class == rules.Fail && !backed {
				t.Errorf("%s/%s is a fail, and none of %v is a must", r.ID, p.ID, p.Requirements)
			}
		}
	}
}
