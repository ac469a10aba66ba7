package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/acp-test/acp-test/internal/bugs"
	"github.com/acp-test/acp-test/refagent/faults"
)

// TestBugs holds the record of public bugs against what the proofs have measured of
// the faults: each exists, and its finders find it.
func TestBugs(t *testing.T) {
	report := regexp.MustCompile(`^[\w.-]+/[\w.-]+#\d+$`)
	for i, b := range bugs.All() {
		if b.Number != i+1 || b.Side != "agent" && b.Side != "editor" ||
			(b.Number <= lastOfAgents) != (b.Side == "agent") {
			t.Errorf("row %d is number %d of side %q", i+1, b.Number, b.Side)
		}
		if len(b.Reports) == 0 || slices.ContainsFunc(b.Reports,
			func(r string) bool { return !report.MatchString(r) }) {
			t.Errorf("bug %d: reports %q", b.Number, b.Reports)
		}
		if b.NotJudged == "" && (len(b.Faults) == 0 || len(b.Found) == 0) {
			t.Errorf("bug %d has no fault or no finder", b.Number)
		}
		if b.By == bugs.Editor {
			continue // the careless editors of package replay hold them
		}
		finds := map[string]bool{}
		for _, name := range b.Faults {
			reddens := reddensOf(b.By, name)
			if reddens == nil {
				t.Errorf("bug %d: no fault of the %s is called %s", b.Number, b.By, name)
			}
			found := false
			for _, f := range b.Found {
				if slices.Contains(reddens, f.Name) {
					found, finds[f.Name] = true, true
				}
			}
			if !found {
				t.Errorf("bug %d: nothing of %v surely finds %s, but %v", b.Number, b.Found, name, reddens)
			}
		}
		for _, f := range b.Found {
			if !finds[f.Name] {
				t.Errorf("bug %d: %s finds none of %v", b.Number, f.Name, b.Faults)
			}
			if !slices.Contains([]string{"lint", "warn", "fail"}, f.Class) {
				t.Errorf("bug %d: %s has the class %q", b.Number, f.Name, f.Class)
			}
		}
	}
}

// reddensOf is what surely finds a fault of an agent, nil if there is no such fault.
func reddensOf(by, name string) []string {
	protocol := faults.ACPv1
	if by == bugs.AgentOfV2 {
		protocol = faults.ACPv2
	}
	f, _ := faults.Find(protocol, name)
	return f.Reddens
}
