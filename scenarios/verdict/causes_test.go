package verdict_test

import (
	"testing"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

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
