package proof

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
)

// ChecksOf returns the ids of the scenarios' checks, by the requirement that a check names.
func ChecksOf(list []*scenarios.Scenario) (map[string][]string, error) {
	checks := map[string][]string{}
	for _, s := range list {
		src, err := s.Source()
		if err != nil {
			return nil, err
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
	return checks, nil
}

// Bind rewrites the checks section of a protocol's bindings file.
func Bind(set *rules.Set, checks map[string][]string, file string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, _ := strings.Cut(string(old), "\nchecks:\n")
	_, tail, _ := strings.Cut(rest, "\n\n")
	out := head + "\nchecks:\n"
	for _, q := range set.Requirements() {
		if ids := checks[q.ID]; ids != nil {
			out += fmt.Sprintf("  %s: [%s]\n", q.ID, strings.Join(ids, ", "))
		}
	}
	return os.WriteFile(file, []byte(out+"\n"+tail), 0o644)
}

// Unlike returns the differences between the checks in a protocol's bindings and the checks in its scenarios.
func Unlike(set *rules.Set, checks map[string][]string) (list []string) {
	for _, q := range set.Requirements() {
		if !slices.Equal(q.Checks, checks[q.ID]) {
			list = append(list, fmt.Sprintf("%s: bindings.yaml lists the checks %v, the scenarios have %v: "+
				"run ci/pages, which writes bindings.yaml", q.ID, q.Checks, checks[q.ID]))
		}
	}
	for id, of := range checks {
		if _, ok := set.Requirement(id); !ok {
			list = append(list, fmt.Sprintf("the checks %v name %s, which does not exist: "+
				"correct the scenarios, or add it to the requirements of the protocol", of, id))
		}
	}
	return list
}

// Gaps returns the defects of a registry. Every requirement of level must or should, and every requirement in more,
// needs a rule, a check or a reason for having none. Every requirement needs a quote, a statement and a way to test
// it. Every rule point of class fail needs a requirement of level must.
func Gaps(set *rules.Set, more ...string) (list []string) {
	for _, q := range set.Requirements() {
		bound := len(q.Rules)+len(q.Checks) > 0
		asked := q.Excluded == "" && (q.Level == "must" || q.Level == "should") || slices.Contains(more, q.ID)
		switch {
		case bound && q.Excluded != "":
			list = append(list, q.ID+" has rules or checks but is excluded: "+
				"delete it from excluded in bindings.yaml")
		case !bound && asked:
			list = append(list, q.ID+" has no rule and no check: name it in a check of a scenario or in "+
				"a point of a rule, or exclude it with a reason in bindings.yaml")
		case q.Cite.Quote == "" || q.Statement == "" || q.HowToTest == "":
			list = append(list, fmt.Sprintf("%s has no quote, statement or test: complete it in the "+
				"file of requirements: %+v", q.ID, q))
		}
	}
	for _, r := range set.Rules() {
		for _, p := range r.Points {
			backed := slices.ContainsFunc(p.Requirements, func(id string) bool {
				q, ok := set.Requirement(id)
				return ok && q.Level == "must"
			})
			if p.Class == rules.Fail && !backed {
				list = append(list, fmt.Sprintf("%s/%s is of class fail, but none of its requirements %v "+
					"is a must: lower the class in the rule, or name a must", r.ID, p.ID, p.Requirements))
			}
		}
	}
	return list
}
