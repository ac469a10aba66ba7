package main

import (
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
)

const root = "../.."

func TestPage(t *testing.T) {
	batches, faults := load(root)
	for _, b := range batches {
		list := b.of(faults)
		if len(list) < 20 || len(list) != len(b.First) {
			t.Errorf("batch %d has %d faults and %d rows, want 20 or more of both", b.Batch, len(list), len(b.First))
		}
		for _, f := range list {
			if row := b.First[f.Name]; row == nil || !slices.Contains([]string{"named", "seen", "missed"}, row.How) {
				t.Errorf("batch %d: %s has no row that says named, seen or missed", b.Batch, f.Name)
			}
		}
	}
	if t.Failed() {
		return
	}
	is, err := os.ReadFile(root + "/docs/transfer.md")
	if err != nil || string(is) != page(batches, faults)+accusedPage(accused(root)) {
		t.Errorf("docs/transfer.md differs from its data (%v); run: go run ./ci/transfer", err)
	}
}

func TestSabotagePage(t *testing.T) {
	is, err := os.ReadFile(root + "/docs/sabotage.md")
	if err != nil || string(is) != sabotagePage(sabotaged(root)) {
		t.Errorf("docs/sabotage.md differs from its data (%v); run: go run ./ci/transfer", err)
	}
}

// A batch is older than the program that ran on it first, or as old, and no row of a commit
// differs in a later one.
func TestFirstFiguresStay(t *testing.T) {
	git := func(args ...string) (string, error) {
		c := exec.Command("git", args...)
		c.Dir = root
		out, err := c.Output()
		return strings.TrimSpace(string(out)), err
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		t.Skip("the history is not here")
	}
	batches, _ := load(root)
	now := map[int]Batch{}
	for _, b := range batches {
		now[b.Batch] = b
		if _, err := git("merge-base", "--is-ancestor", b.Faults, b.Tool); err != nil {
			t.Errorf("batch %d: the faults of %s are not in the history of the program %s", b.Batch, b.Faults, b.Tool)
		}
		file, err := git("show", "--name-only", "--format=", b.Faults)
		if want := "ci/agents/" + b.Agent + "/faults.yaml"; err != nil || !strings.Contains(file, want) {
			t.Errorf("batch %d: %s does not write %s", b.Batch, b.Faults, want)
		}
	}
	for i, a := range accused(root) {
		if _, err := git("merge-base", "--is-ancestor", a.Change, "HEAD"); err != nil || i > 0 &&
			a.Date > accused(root)[i-1].Date {
			t.Errorf("the accusation of %s on %s: %s is no commit, or the days are in another order", a.Agent, a.Date,
				a.Change)
		}
	}
	commits, err := git("log", "--format=%H", "--", folder+"/batches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, commit := range strings.Fields(commits) {
		text, err := git("show", commit+":"+folder+"/batches.yaml")
		if err != nil {
			continue // it was removed there
		}
		var then []Batch
		if err := yaml.Unmarshal([]byte(text), &then); err != nil {
			t.Fatalf("%s: %v", commit, err)
		}
		for _, b := range then {
			if !reflect.DeepEqual(b, now[b.Batch]) {
				t.Errorf("batch %d says something else than in %s: first figures stay", b.Batch, commit)
			}
		}
	}
}

func TestRowSaysWhatIsMore(t *testing.T) {
	run := func(causes ...results.Cause) results.Run { return results.Run{Causes: causes} }
	usual := causes{}
	usual.add(run(results.Cause{ID: "a", Class: rules.Lint, Scenarios: []string{"load/one"}},
		results.Cause{ID: "b", Class: rules.Warn}))
	row := rowOf(run(results.Cause{ID: "a", Class: rules.Lint}, results.Cause{ID: "b", Class: rules.Fail},
		results.Cause{ID: "c", Class: rules.Fail}, results.Cause{ID: "d", Class: rules.Warn}), usual)
	want := &Row{How: "seen", Class: "fail", By: []string{"b", "c"}, Causes: 3}
	if !reflect.DeepEqual(row, want) {
		t.Errorf("got %+v, want %+v", row, want)
	}
	for scenario, how := range map[string]string{"load/one": "missed", "load/other": "seen",
		"explore/1.2.3": "missed"} {
		row := rowOf(run(results.Cause{ID: "a", Class: rules.Lint, Scenarios: []string{scenario}}), usual)
		if row.How != how {
			t.Errorf("in %s: got %+v, want %s", scenario, row, how)
		}
	}
}
