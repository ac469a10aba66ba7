package scenarios

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/transcript"
)

// Cause is one thing that is wrong, wherever it was seen: what breaks one point of a
// rule, and the checks of the same requirement that miss beside it, are one cause.
type Cause struct {
	// ID is the rule with its point, else the requirement, else the check, else "golden"
	// or nothing.
	ID string `json:"id,omitempty"`
	// Class is the worst with which it was seen.
	Class        Verdict  `json:"class"`
	Title        string   `json:"title"` // one sentence
	Requirements []string `json:"requirements,omitempty"`
	Citation     string   `json:"citation,omitempty"`
	// Known: it is a known failure in each of the Scenarios.
	Known bool `json:"known,omitempty"`
	// Scenarios are those that show it, the one with the fewest frames first.
	Scenarios []string `json:"scenarios"`
}

// Sighting is a cause as one result shows it.
type Sighting struct {
	Cause
	key  string
	rule bool // a rule saw it, no check
}

// Key tells causes apart.
func (s Sighting) Key() string { return s.key }

// Sightings lists what is wrong in a result, the worst first, without what only follows
// from it: what was not reached, a line that failed for what a rule has found, a finding that
// a check has found to be worse, a golden that differs beside another failure.
func (r *Result) Sightings() []Sighting {
	var all []Sighting
	see := func(key string, c Cause) {
		c.Scenarios = []string{r.ID}
		all = append(all, Sighting{Cause: c, key: string(c.Class) + " " + key})
	}
	for _, f := range r.Findings {
		if r.checked(&f) {
			continue
		}
		see(f.Rule+" "+f.Point, Cause{ID: f.cause(), Class: f.Class, Title: f.Message,
			Requirements: f.Requirements, Citation: f.Citation, Known: f.Known})
		all[len(all)-1].rule = true
	}
	for _, k := range r.Checks {
		switch {
		case k.NotReached, k.Verdict == Pass, k.Verdict == Skip, k.Verdict == "", r.told(k.Failure, k.Verdict, k.Known):
			continue
		case k.Verdict == Inconclusive:
			see(masked(k.Reason), Cause{Class: k.Verdict, Title: k.Reason, Requirements: k.Requirements, Known: k.Known})
			continue
		}
		c := Cause{ID: k.ID, Class: k.Verdict, Title: k.Title, Requirements: k.Requirements, Known: k.Known}
		if len(k.Requirements) > 0 {
			c.ID = k.Requirements[0]
		}
		if k.Failure != nil {
			c.Title = cmp.Or(c.Title, k.Failure.Error())
		}
		see(c.ID, c)
	}
	if f := r.Failure; f != nil && !r.told(f, r.FailureClass, r.Known) {
		see(masked(f.Error()), Cause{Class: r.FailureClass, Title: f.Error(), Known: r.Known})
	}
	failed := slices.ContainsFunc(all, func(s Sighting) bool { return s.Class == Fail })
	if g := r.Golden; g != nil && g.State == "differs" && !failed {
		c := Cause{ID: "golden", Class: Fail, Title: "the messages differ from the golden", Known: g.Known}
		if g.Skipped != "" {
			c.Title += ": " + g.Skipped
		}
		see("golden "+differing(g.Diff), c)
	}
	if len(all) == 0 && r.Reason != "" && (r.Verdict == Error || r.Verdict == Inconclusive || r.Verdict == Fail) {
		see(masked(r.Reason), Cause{Class: r.Verdict, Title: r.Reason, Known: r.Known})
	}
	slices.SortStableFunc(all, func(a, b Sighting) int { return order(&a.Cause) - order(&b.Cause) })
	return all
}

// told reports whether a finding says what is wrong where a line failed, at least as severely:
// the line's failure has its words for a reason.
func (r *Result) told(f *transcript.Failure, class Verdict, known bool) bool {
	return f != nil && f.Reason != "" && slices.ContainsFunc(r.Findings, func(x Finding) bool {
		return x.Message == f.Reason && !severer(class, x.Class) && (known || !x.Known)
	})
}

// checked reports whether a check says what a finding does, and more severely: it misses at the
// same entry, for one of the same requirements.
func (r *Result) checked(f *Finding) bool {
	return len(f.Entries) > 0 && slices.ContainsFunc(r.Checks, func(k Check) bool {
		if k.Failure == nil || k.Verdict != Fail && k.Verdict != Warn || len(k.Failure.Entries) == 0 {
			return false
		}
		last := k.Failure.Entries[len(k.Failure.Entries)-1]
		return last == f.Entries[len(f.Entries)-1] && severer(k.Verdict, f.Class) && overlap(k.Requirements, f.Requirements)
	})
}

// order of causes: what nobody knew first, the worst first.
func order(c *Cause) int {
	n := slices.Index([]Verdict{Error, Fail, Inconclusive, Warn, Lint}, c.Class)
	if c.Known {
		n += 10
	}
	return n
}

// masked is a sentence without what differs from one time to the next.
func masked(s string) string { return numbersAndNames().ReplaceAllString(s, "…") }

var numbersAndNames = lazy.Regexp(`[0-9]+|"[^"]*"|'[^']*'|(?:/[^\s/:]+)+`)

// differing are the first lines of a difference that tell goldens apart.
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

// Causes groups what is wrong in all results. A check that misses beside a finding for
// the same requirement has the same cause.
func Causes(results []Result) []Cause {
	into := map[string]string{} // of a key, the key of the cause that it belongs to
	var root func(string) string
	root = func(key string) string {
		if to, ok := into[key]; ok {
			return root(to)
		}
		return key
	}
	frames := map[string]int{}
	var seen []Sighting
	for i := range results {
		here := results[i].Sightings()
		for a := range here {
			for b := range here[a+1:] {
				rule, check := &here[a], &here[a+1+b]
				if !rule.rule || rule.Class != check.Class || rule.Class == Inconclusive ||
					!overlap(rule.Requirements, check.Requirements) {
					continue
				}
				if from, to := root(check.key), root(rule.key); from != to {
					into[from] = to
				}
			}
		}
		frames[results[i].ID] = results[i].Frames
		seen = append(seen, here...)
	}
	slices.SortStableFunc(seen, func(a, b Sighting) int {
		return cmp.Or(frames[a.Scenarios[0]]-frames[b.Scenarios[0]], cmp.Compare(a.Scenarios[0], b.Scenarios[0]))
	})
	at := map[string]int{}
	var all []Cause
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
		if id := s.Scenarios[0]; !slices.Contains(c.Scenarios, id) {
			c.Scenarios = append(c.Scenarios, id)
		}
	}
	slices.SortStableFunc(all, func(a, b Cause) int {
		return cmp.Or(order(&a)-order(&b), len(b.Scenarios)-len(a.Scenarios), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
