package verdict_test

import (
	"fmt"
	"testing"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

// A turn that ended without its end is one cause, whichever check waited for that.
func TestTurnWithoutEndIsOneCause(t *testing.T) {
	for reason, want := range map[string]int{"the turn ended first, at #9, with truncated": 1,
		"the turn ended first, at #9, with finished": 2, "the turn ended first, at #8, with truncated": 2} {
		got := verdict.Causes([]results.Result{{ID: "a", Verdict: results.Fail,
			Findings: []results.Finding{{Rule: "R", Class: rules.Fail, Message: "It is cut.", Entries: []int{3, 9}}},
			Checks: []results.Check{{ID: "a#told", Verdict: results.Fail,
				Failure: &transcript.Failure{Reason: reason}}}}})
		if len(got) != want {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

// The further turn of many scenarios is one cause, and none where a rule has judged it.
func TestFurtherTurnIsOneCause(t *testing.T) {
	missed := func(id string, findings ...results.Finding) results.Result {
		return results.Result{ID: id, Verdict: results.Warn, Findings: findings, Checks: []results.Check{{
			ID: id + "#further", Slug: results.FurtherCheck, Verdict: results.Warn, Title: "One more turn.",
			Failure: &transcript.Failure{Entries: []int{20, 30}}}}}
	}
	finding := func(class rules.Class, last int) results.Finding {
		return results.Finding{Rule: "WORKS-AGAIN", Point: "after-cancel", Class: class, Entries: []int{5, last}}
	}
	for name, c := range map[string]struct {
		list []results.Result
		want []string
	}{
		"two scenarios": {[]results.Result{missed("a"), missed("b")}, []string{"further"}},
		"a rule judged it": {[]results.Result{missed("a", finding(rules.Warn, 30)), missed("b")},
			[]string{"WORKS-AGAIN after-cancel", "further"}},
		"in one, a rule judged it": {[]results.Result{missed("a", finding(rules.Warn, 30))},
			[]string{"WORKS-AGAIN after-cancel"}},
		"a rule judged another turn": {[]results.Result{missed("a", finding(rules.Warn, 9))},
			[]string{"WORKS-AGAIN after-cancel", "further"}},
	} {
		var got []string
		for _, cause := range verdict.Causes(c.list) {
			got = append(got, cause.ID)
		}
		if len(got) != len(c.want) || got[0] != c.want[0] || got[len(got)-1] != c.want[len(got)-1] {
			t.Errorf("%s: causes %q, want %q", name, got, c.want)
		}
	}
}

// What half of the scenarios show stands for itself, and those that show nothing else pass apart
// from it; the run still fails.
func TestWrongEverywhere(t *testing.T) {
	login := results.Finding{Rule: "CAP-GATE", Point: "login", Class: rules.Fail,
		Message: "It offers a terminal login."}
	run := func(spread, clean int, known bool) results.Run {
		var run results.Run
		for i := range spread {
			f := login
			f.Known = known
			run.Results = append(run.Results,
				results.Result{ID: fmt.Sprint("all/", i), Verdict: results.Fail, Known: known,
					Findings: []results.Finding{f}})
		}
		for i := range clean {
			run.Results = append(run.Results, results.Result{ID: fmt.Sprint("clean/", i), Verdict: results.Pass})
		}
		run.Results[0].Checks = []results.Check{{ID: "all/0#a", Verdict: results.Fail, Known: known}}
		verdict.Conclude(&run)
		return run
	}
	var checks results.Run
	for i := range 6 {
		checks.Results = append(checks.Results, results.Result{ID: fmt.Sprint("check/", i), Verdict: results.Fail,
			Checks: []results.Check{{ID: fmt.Sprint("check/", i, "#a"), Verdict: results.Fail,
				Requirements: []string{"X-1"}}}})
	}
	verdict.Conclude(&checks)
	if c := checks.Causes; len(c) != 1 || c[0].Everywhere {
		t.Errorf("what a check misses in each scenario stands with each: %+v", c)
	}
	var goldens results.Run
	for i := range 6 {
		goldens.Results = append(goldens.Results, results.Result{ID: fmt.Sprint("golden/", i), Verdict: results.Fail,
			Golden: &results.Golden{State: "differs", Diff: "-a\n+b\n"}})
	}
	verdict.Conclude(&goldens)
	for name, c := range map[string]struct {
		run         results.Run
		apart, exit int
	}{
		"goldens alone":         {goldens, 0, 1},
		"all, one with a check": {run(5, 0, false), 4, 1},
		"half":                  {run(6, 6, false), 5, 1},
		"too few":               {run(4, 0, false), 0, 1},
		"less than half":        {run(6, 7, false), 0, 1},
		"known":                 {run(5, 0, true), 4, 0},
	} {
		if got := c.run.Counts.Apart; got != c.apart || c.run.Exit != c.exit {
			t.Errorf("%s: %d apart, exit status %d, want %d and %d", name, got, c.run.Exit, c.apart, c.exit)
		}
		if c.exit == 1 && c.run.Verdict != results.Fail {
			t.Errorf("%s: verdict %s", name, c.run.Verdict)
		}
	}
}
