package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Sighting is one occurrence of a cause in one result.
type Sighting struct {
	results.Cause
	key  string
	rule bool // found by a rule, not by a check
}

// Key returns a string that identifies the cause.
func (s Sighting) Key() string { return s.key }

// Sightings returns the causes of a result's failures, the most severe first. It omits consequences of other
// failures: a check that was not reached; a line whose failure a rule explains; a finding that a check judges more
// severely; and a golden that differs because of another failure.
func Sightings(r *results.Result) []Sighting {
	var all []Sighting
	see := func(key string, c results.Cause) {
		c.Scenarios = []string{r.ID}
		all = append(all, Sighting{Cause: c, key: c.Class.String() + " " + key})
	}
	for _, f := range r.Findings {
		if checked(r, &f) {
			continue
		}
		see(f.Rule+" "+f.Point, results.Cause{ID: f.Cause(), Class: f.Class, Title: f.Message,
			Requirements: f.Requirements, Citation: f.Citation, Known: f.Known})
		all[len(all)-1].rule = true
	}
	for _, k := range r.Checks {
		switch {
		case k.NotReached, k.Verdict == results.Pass, k.Verdict == results.Skip, k.Verdict == 0,
			told(r, k.Failure, k.Verdict, k.Known):
			continue
		case k.Verdict == results.Inconclusive:
			see(masked(k.Reason), results.Cause{Class: k.Verdict, Title: k.Reason, Requirements: k.Requirements, Known: k.Known})
			continue
		}
		c := results.Cause{ID: k.ID, Class: k.Verdict, Title: k.Title, Requirements: k.Requirements, Known: k.Known}
		if k.Slug == results.FurtherCheck {
			if aboutFurther(r, k.Failure) {
				continue
			}
			c.ID = results.FurtherCheck // all scenarios share this cause
		}
		if len(k.Requirements) > 0 {
			c.ID = k.Requirements[0]
		}
		if k.Failure != nil {
			c.Title = cmp.Or(c.Title, k.Failure.Error())
		}
		see(c.ID, c)
	}
	if f := r.Failure; f != nil && !told(r, f, r.FailureClass, r.Known) {
		see(masked(f.Error()), results.Cause{Class: r.FailureClass, Title: f.Error(), Known: r.Known})
	}
	failed := slices.ContainsFunc(all, func(s Sighting) bool { return s.Class == results.Fail })
	if g := r.Golden; g != nil && g.State == "differs" && !failed {
		c := results.Cause{ID: "golden", Class: results.Fail, Title: "the messages differ from the golden", Known: g.Known}
		if g.Skipped != "" {
			c.Title += ": " + g.Skipped
		}
		see("golden "+differing(g.Diff), c)
	}
	if len(all) == 0 && r.Reason != "" && r.Verdict > results.Skip {
		see(masked(r.Reason), results.Cause{Class: r.Verdict, Title: r.Reason, Known: r.Known})
	}
	slices.SortStableFunc(all, func(a, b Sighting) int { return byWeight(&a.Cause, &b.Cause) })
	return all
}

// told reports whether a finding of at least the same class explains the failure of a line. That is so in two cases:
// the failure's reason is the finding's message, or the line failed because a truncated turn ended, which the finding
// reports.
func told(r *results.Result, f *transcript.Failure, class results.Verdict, known bool) bool {
	return f != nil && f.Reason != "" && slices.ContainsFunc(r.Findings, func(x results.Finding) bool {
		same := x.Message == f.Reason
		if n := len(x.Entries); n > 0 && !same {
			same = f.Reason == fmt.Sprintf("the turn ended first, at #%d, with truncated", x.Entries[n-1])
		}
		return same && class <= x.Class && (known || !x.Known)
	})
}

// checked reports whether a failed check shows the same fact as a finding, but is more severe. The check must have
// failed at the same entry and must have a requirement in common with the finding.
func checked(r *results.Result, f *results.Finding) bool {
	return len(f.Entries) > 0 && slices.ContainsFunc(r.Checks, func(k results.Check) bool {
		if k.Failure == nil || k.Verdict != results.Fail && k.Verdict != results.Warn || len(k.Failure.Entries) == 0 {
			return false
		}
		last := k.Failure.Entries[len(k.Failure.Entries)-1]
		return last == f.Entries[len(f.Entries)-1] && k.Verdict > f.Class &&
			results.Overlap(k.Requirements, f.Requirements)
	})
}

// aboutFurther reports whether a finding is about the further turn. The check of that turn is then redundant.
func aboutFurther(r *results.Result, further *transcript.Failure) bool {
	return further != nil && len(further.Entries) > 0 && slices.ContainsFunc(r.Findings, func(f results.Finding) bool {
		return f.Class >= results.Warn && len(f.Entries) > 0 && f.Entries[len(f.Entries)-1] >= further.Entries[0]
	})
}

// byWeight orders causes: causes that are not known failures come first, and within each group the more severe ones.
func byWeight(a, b *results.Cause) int {
	if a.Known != b.Known {
		if a.Known {
			return 1
		}
		return -1
	}
	return cmp.Compare(b.Class, a.Class)
}

// masked replaces numbers, quoted names and paths in a sentence by "…", because they differ from run to run.
func masked(s string) string { return numbersAndNames().ReplaceAllString(s, "…") }

var numbersAndNames = lazy.Regexp(`[0-9]+|"[^"]*"|'[^']*'|(?:/[^\s/:]+)+`)

// differing returns the first removed and the first added line of a diff, masked. Goldens that differ in the same way
// have the same result.
func differing(diff string) string {
	var minus, plus string
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "-want"):
		case line[0] == '-':
			minus = cmp.Or(minus, line)
		case line[0] == '+':
			plus = cmp.Or(plus, line)
		}
	}
	return masked(minus + plus)
}

// Causes returns the causes of the failures in all results. A check that fails in the same result as a finding of the
// same requirement has the same cause as the finding.
func Causes(list []results.Result) []results.Cause {
	into := map[string]string{} // key -> key of the cause with which it was merged
	var root func(string) string
	root = func(key string) string {
		if to, ok := into[key]; ok {
			return root(to)
		}
		return key
	}
	frames := map[string]int{}
	var seen []Sighting
	for i := range list {
		here := Sightings(&list[i])
		for a := range here {
			for b := range here[a+1:] {
				rule, check := &here[a], &here[a+1+b]
				if !rule.rule || rule.Class != check.Class || rule.Class == results.Inconclusive ||
					!results.Overlap(rule.Requirements, check.Requirements) {
					continue
				}
				if from, to := root(check.key), root(rule.key); from != to {
					into[from] = to
				}
			}
		}
		frames[list[i].ID] = list[i].Frames
		seen = append(seen, here...)
	}
	slices.SortStableFunc(seen, func(a, b Sighting) int {
		return cmp.Or(frames[a.Scenarios[0]]-frames[b.Scenarios[0]], cmp.Compare(a.Scenarios[0], b.Scenarios[0]))
	})
	at := map[string]int{}
	var all []results.Cause
	for _, s := range seen {
		key := root(s.key)
		n, ok := at[key]
		if !ok {
			at[key] = len(all)
			all = append(all, s.Cause)
			continue
		}
		c := &all[n]
		c.Known = c.Known && s.Known
		if s.key == key && c.ID != s.ID {
			c.ID, c.Title, c.Requirements, c.Citation = s.ID, s.Title, s.Requirements, s.Citation
		}
		c.Scenarios = lists.With(c.Scenarios, s.Scenarios[0])
	}
	slices.SortStableFunc(all, func(a, b results.Cause) int {
		return cmp.Or(byWeight(&a, &b), len(b.Scenarios)-len(a.Scenarios), cmp.Compare(a.Scenarios[0], b.Scenarios[0]))
	})
	return all
}

// setApart sets Everywhere of the causes that are found everywhere. A rule must have found them with class fail, in
// at least five scenarios and in at least half of the judged ones. setApart also sets Apart of the results that fail
// only by such causes. Their goldens may differ, if five results differ in the same way.
func setApart(run *results.Run) {
	judged, differ, found := map[string]bool{}, map[string]int{}, map[string]bool{}
	for _, r := range run.Results {
		for _, f := range r.Findings {
			found[f.Cause()] = true
		}
		if r.Golden.Failed() {
			differ[differing(r.Golden.Diff)]++
		}
		if r.Verdict != results.Skip && r.Verdict != results.Error {
			judged[r.ID] = true
		}
	}
	everywhere := map[string]bool{}
	for i := range run.Causes {
		c := &run.Causes[i]
		c.Everywhere = found[c.ID] && c.Class == results.Fail && len(c.Scenarios) >= max(5, (len(judged)+1)/2)
		everywhere[c.ID] = everywhere[c.ID] || c.Everywhere
	}
	for i := range run.Results {
		r := &run.Results[i]
		same := !r.Golden.Failed() || differ[differing(r.Golden.Diff)] >= 5
		r.Apart = r.Verdict == results.Fail && r.Failure == nil && same && !slices.ContainsFunc(r.Checks, missed) &&
			slices.ContainsFunc(r.Findings, func(f results.Finding) bool { return everywhere[f.Cause()] }) &&
			!slices.ContainsFunc(r.Findings, func(f results.Finding) bool {
				return f.Class == results.Fail && !everywhere[f.Cause()]
			})
	}
}

// missed reports whether a check failed, is inconclusive, or was not reached.
func missed(k results.Check) bool { return k.NotReached || k.Verdict >= results.Inconclusive }
