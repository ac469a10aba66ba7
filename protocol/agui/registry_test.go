package agui_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/refagent/webagent"
	"github.com/acp-test/acp-test/rules"
)

var updateBindings = flag.Bool("update-bindings", false, "write the checks of the scenarios to bindings.yaml")

const bindingsFile = "invariants/bindings.yaml"

// The scenarios say which requirements their checks are about; bindings.yaml repeats it.
func TestBindings(t *testing.T) {
	checks := map[string][]string{}
	for _, s := range shipped(t) {
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
				if strings.HasPrefix(w, "AGUI-") {
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
	set := agui.V1().Rules
	if *updateBindings {
		writeBindings(t, set, checks)
		return
	}
	for _, q := range set.Requirements() {
		if !slices.Equal(q.Checks, checks[q.ID]) {
			t.Errorf("%s: bindings.yaml has %v, and the scenarios %v: go test ./protocol/agui -run Bindings -update-bindings",
				q.ID, q.Checks, checks[q.ID])
		}
		delete(checks, q.ID)
	}
	if len(checks) > 0 {
		t.Errorf("no requirement is %v", checks)
	}
}

func writeBindings(t *testing.T, set *rules.Set, checks map[string][]string) {
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
}

// Every requirement of level must or should is bound to a rule or a check, or it says why
// not; every fail rests on a must.
func TestRegistry(t *testing.T) {
	set := agui.V1().Rules
	for _, q := range set.Requirements() {
		bound := len(q.Rules)+len(q.Checks) > 0
		switch {
		case bound && q.Excluded != "":
			t.Errorf("%s is bound and excluded", q.ID)
		case !bound && q.Excluded == "" && (q.Level == "must" || q.Level == "should"):
			t.Errorf("%s is bound to nothing", q.ID)
		case len(strings.Fields(q.Cite.Quote)) > 6 || q.Cite.Quote == "" || q.Statement == "" || q.HowToTest == "":
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
	for _, l := range webagent.Liberties() {
		if _, ok := set.Requirement(l.Allows); !ok {
			t.Errorf("the liberty %s rests on %s, which does not exist", l.Name, l.Allows)
		}
	}
}
