package main

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
)

// notation explains the arrows and words in the examples of rules.
const notation = `
(-->: from the editor; <--: from the agent; start: initialize with all capabilities;
session: session/new; model: an event of the model server; also: further findings.)
`

// explainRequirement returns the page of a requirement: its text, how it is tested, and examples that pass and fail. If
// a rule judges it, the examples are transcripts. If only scenarios judge it, the page shows one scenario with the
// conversation of the reference agent.
func explainRequirement(q rules.Requirement) string {
	if shown := examplesAbout(invariants.V1(), q); shown != "" {
		return requirementText(q) + shown
	}
	switch {
	case len(q.Checks) == 0 && q.Excluded == "":
		return requirementText(q) + "\nNo rule and no scenario of acp-test judges this requirement.\n"
	case len(q.Checks) == 0:
		return requirementText(q)
	}
	check := q.Checks[0]
	if i := slices.IndexFunc(q.Checks, func(id string) bool { return faultOf(id) != nil }); i >= 0 {
		check = q.Checks[i]
	}
	return requirementText(q) + scenarioOf(check)
}

// examplesAbout returns the examples of the rules on which a requirement is based, or "" if there are none. It
// prefers examples that name the requirement.
func examplesAbout(set *rules.Set, q rules.Requirement) string {
	about := func(p rules.Point) bool { return slices.Contains(p.Requirements, q.ID) }
	for _, fits := range []func(rules.Point) bool{about, everyPoint} {
		for _, id := range q.Rules {
			if shown := examplesOf(set, id, fits); shown != "" {
				return shown
			}
		}
	}
	return ""
}

// faultOf returns the first fault of the reference agent that reliably fails the given check, or nil if there is
// none.
func faultOf(check string) *faults.Fault {
	f, ok := lists.Find(faults.All(faults.ACPv1), func(f faults.Fault) bool { return slices.Contains(f.Reddens, check) })
	if !ok {
		return nil
	}
	return &f
}

func everyPoint(rules.Point) bool { return true }

func examplesOf(set *rules.Set, rule string, about func(rules.Point) bool) string {
	r, ok := set.Rule(rule)
	if !ok {
		return ""
	}
	pass, fail := "", ""
	for _, x := range set.Examples(rule) {
		i := slices.IndexFunc(r.Points, func(p rules.Point) bool { return p.ID == x.Point && about(p) })
		switch {
		case x.Class == rules.Pass && pass == "":
			pass = fmt.Sprintf("\nAn example that keeps %s%s:\n\n%s", rule, remark(x.Remark), indented(x.Text))
		case i >= 0 && fail == "":
			fail = fmt.Sprintf("\nAn example that breaks it (%s)%s:\n\n%s", x.Class, remark(x.Remark), indented(x.Text))
		}
	}
	if fail == "" {
		return ""
	}
	return pass + fail + notation
}

func remark(s string) string {
	if s == "" {
		return ""
	}
	return ", " + strings.TrimPrefix(s, "- ")
}

// scenarioOf returns the text of the scenario that contains a check. It appends a passing conversation and a fault of
// the reference agent that fails the check, if they exist.
func scenarioOf(check string) string {
	id, _, _ := strings.Cut(check, "#")
	suite, _, _ := strings.Cut(id, "/")
	read := func() ([]*scenarios.Scenario, error) { return acp.V1().Shipped(suite) }
	if suite == "editors" {
		read = acp.V1().ForEditors
	}
	all, err := read()
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(all, func(s *scenarios.Scenario) bool { return s.ID == id })
	if i < 0 {
		return ""
	}
	source, err := all[i].Source()
	if err != nil {
		return ""
	}
	shown := fmt.Sprintf("\nThe scenario %s tests it:\n\n%s", id, indented(string(source)))
	if passes, err := fs.ReadFile(golden.Shipped(), "reference/"+id+".golden"); err == nil {
		shown += fmt.Sprintf("\nA conversation that passes it:\n\n%s", indented(clipLines(string(passes), 160)))
	}
	if f := faultOf(check); f != nil {
		shown += fmt.Sprintf("\nAn agent that %s fails it:\n\n  acp-test run --fault %s --run '^%s$'\n", f.Summary, f.Name,
			id)
	}
	return shown
}

func indented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(s, "\n") + "\n") {
		b.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
	}
	return b.String()
}

// clipLines cuts each line to n bytes and marks the cut with an ellipsis.
func clipLines(s string, n int) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > n {
			line = strings.ToValidUTF8(line[:n], "") + "…"
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
