package verdict_test

import (
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
			Checks:   []results.Check{{ID: "a#told", Verdict: results.Fail, Failure: &transcript.Failure{Reason: reason}}}}})
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
		"two scenarios":            {[]results.Result{missed("a"), missed("b")}, []string{"further"}},
		"a rule judged it":         {[]results.Result{missed("a", finding(rules.Warn, 30)), missed("b")}, []string{"WORKS-AGAIN after-cancel", "further"}},
		"in one, a rule judged it": {[]results.Result{missed("a", finding(rules.Warn, 30))}, []string{"WORKS-AGAIN after-cancel"}},
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
