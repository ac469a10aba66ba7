package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Config chooses what a Checker judges, and how severely.
type Config struct {
	// Severity names a set of severities; "" and an unknown name mean that each
	// point has its own class.
	Severity string
	// Off maps the ids of rules that do not apply here, or their aliases, to the reason.
	Off map[string]string
	// Busy is what the agent promises of a prompt in a session that is busy: reject, queue or
	// replace; "" promises nothing.
	Busy string
	// Asks are the neutral tools before whose use the agent promises to ask the user.
	Asks []string
	// Stops: the agent promises that what it does for a request stops when that is taken back.
	Stops bool
	// Roots are directories, beside each session's own, in which paths are
	// expected; Start is the directory the agent was started in. Without Start
	// no path is judged by where it points.
	Roots []string
	Start string
	// Patience is how long a request may stay unanswered before that is held
	// against the side that owes the answer; 0 means 30 s.
	Patience time.Duration
}

// End says how a run ended.
type End struct {
	// Clean is false if the run was cut off: interrupted, out of time, or the
	// harness failed. Nothing that is missing is then held against anybody.
	Clean bool
	// Lacking says that messages of the transcript are missing: a finding counts only if one
	// message alone shows it, and is else inconclusive.
	Lacking bool
	// Linger is how long the run listened on after the last act. 0 gives no
	// evidence about late frames.
	Linger time.Duration
}

// Checker judges one transcript. Observe it from one goroutine at a time.
type Checker struct {
	config   Config
	set      *Set
	severity Severity
	observer Observer
	watches  []*Watch
	findings []*Finding
	index    map[findingKey]*Finding
	distinct map[pointKey]int
	last     transcript.Entry
}

// distinctFindings bounds how many findings of one point are kept apart.
const distinctFindings = 200

type pointKey struct {
	rule  string
	point int
}

type findingKey struct {
	pointKey
	conn    int
	session string
	object  string
}

// NewChecker makes a checker with a fresh state.
func (s *Set) NewChecker(c Config) *Checker {
	c.Patience = cmp.Or(c.Patience, 30*time.Second)
	off := map[string]string{}
	for id, reason := range c.Off {
		off[s.Current(id)] = reason
	}
	c.Off = off
	checker := &Checker{
		config:   c,
		set:      s,
		severity: s.definition.Severities[c.Severity],
		index:    map[findingKey]*Finding{},
		distinct: map[pointKey]int{},
	}
	checker.observer = s.definition.Watch(checker)
	return checker
}

// Config returns what the checker was made with, its defaults filled in.
func (c *Checker) Config() Config { return c.config }

// Last returns the entry observed before the one that is being judged, without
// its bytes; at the end, the last one of all.
func (c *Checker) Last() transcript.Entry { return c.last }

// Watch turns a rule on: what it returns counts and reports for it. It returns
// nil if the rule is off.
func (c *Checker) Watch(r Rule) *Watch {
	if _, off := c.config.Off[r.ID]; off {
		return nil
	}
	w := &Watch{checker: c, rule: r, evidence: make([]int, len(r.Points))}
	c.watches = append(c.watches, w)
	return w
}

// Observe judges one entry. Entries must come in the order of the transcript;
// it is made to be given to Transcript.Observe.
func (c *Checker) Observe(e transcript.Entry) {
	c.observer.Observe(e)
	c.last = e
	c.last.Raw = nil
}

// Finish judges what only the end can show and returns all findings, in the
// order in which they were first seen, those of the end by the entries that show
// them. Call it once, after the last entry.
func (c *Checker) Finish(end End) []Finding {
	before := len(c.findings)
	c.observer.Finish(end)
	if end.Lacking {
		c.doubt()
	}
	slices.SortStableFunc(c.findings[before:], func(a, b *Finding) int {
		return cmp.Or(slices.Compare(a.Entries, b.Entries), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return c.Findings()
}

// doubt makes the findings inconclusive that rest on messages before and after.
func (c *Checker) doubt() {
	for _, f := range c.findings {
		if r, ok := c.set.Rule(f.Rule); f.Class != Info && !(ok && r.Alone) {
			f.Class = Inconclusive
			f.Message += " (Some messages of the log cannot be read, so this is not certain.)"
		}
	}
}

// Findings returns what was found so far, in the order in which it was found.
func (c *Checker) Findings() []Finding {
	all := make([]Finding, len(c.findings))
	for i, f := range c.findings {
		all[i] = *f
	}
	return all
}

// Evidence says for each rule that was on how often it had something to judge.
func (c *Checker) Evidence() map[string]int {
	counts := map[string]int{}
	for _, w := range c.watches {
		counts[w.rule.ID] = 0
		for _, n := range w.evidence {
			counts[w.rule.ID] += n
		}
	}
	return counts
}

// Support says for each requirement how often a rule had something to judge
// by it. A requirement that is missing or 0 has not been tested by any rule.
func (c *Checker) Support() map[string]int {
	counts := map[string]int{}
	for _, w := range c.watches {
		for i, p := range w.rule.Points {
			for _, id := range p.Requirements {
				counts[id] += w.evidence[i]
			}
		}
	}
	return counts
}

// Watch counts and reports for one rule of one checker. It panics for a point that the rule has in
// no version of its protocol; one that only other versions have is neither counted nor reported.
type Watch struct {
	checker  *Checker
	rule     Rule
	evidence []int
}

// Has reports whether the rule has a point in this version of the protocol.
func (w *Watch) Has(point string) bool { return w.index(point) >= 0 }

// index is the place of a point among those of the rule, -1 if only other versions of the protocol
// have it.
func (w *Watch) index(point string) int {
	for i := range w.rule.Points { // without a copy of each
		if w.rule.Points[i].ID == point {
			return i
		}
	}
	if !slices.Contains(w.rule.Elsewhere, point) {
		panic("rule " + w.rule.ID + " has no point " + point)
	}
	return -1
}

// Saw counts that points had something to judge.
func (w *Watch) Saw(points ...string) {
	for _, p := range points {
		if i := w.index(p); i >= 0 {
			w.evidence[i]++
		}
	}
}

// Seeing returns a Saw of points that nearly every entry has something to judge for: it looks them
// up once.
func (w *Watch) Seeing(points ...string) (saw func()) {
	var counts []*int
	for _, p := range points {
		if i := w.index(p); i >= 0 {
			counts = append(counts, &w.evidence[i])
		}
	}
	return func() {
		for _, n := range counts {
			*n++
		}
	}
}

// Narrow says which requirements a finding breaks, if not all of its point. It
// does nothing to nil, a finding that was only counted.
func (w *Watch) Narrow(f *Finding, requirements ...string) {
	if f != nil {
		f.Requirements, f.Citation = requirements, w.checker.set.registry.citation(requirements)
	}
}

// Report makes a finding, or counts it if there is one like it about the same
// object; it returns nil for the latter. The entries are Seqs of what shows it,
// 0 for none. A text that
// the format shows with %q is cut if it is long.
func (w *Watch) Report(point string, conn int, session, object string, entries []int, format string,
	args ...any) *Finding {
	at := w.index(point)
	if at < 0 {
		return nil
	}
	c, p := w.checker, w.rule.Points[at]
	key := findingKey{pointKey{w.rule.ID, at}, conn, session, object}
	f, known := c.index[key]
	if !known && c.distinct[key.pointKey] >= distinctFindings {
		key.session, key.object = "", "…"
		f, known = c.index[key]
		format, args = "more of the kind: %s", []any{p.Says}
	}
	if known {
		f.Count++
		if first := f.Entries[0]; len(entries) > 0 && first != entries[len(entries)-1] {
			keep := f.Entries
			if f.Count > 2 {
				keep = keep[:len(keep)-1]
			}
			f.Entries = append(keep, entries[len(entries)-1])
		}
		return nil
	}
	c.distinct[key.pointKey]++
	entries = slices.DeleteFunc(entries, func(seq int) bool { return seq == 0 })
	if len(entries) == 0 {
		entries = []int{max(c.last.Seq, 1)}
	}
	f = &Finding{
		Rule: w.rule.ID, Point: p.ID, Side: w.rule.Side,
		Class:        c.severity.of(w.rule.ID, p),
		Requirements: p.Requirements,
		Citation:     c.set.registry.citation(p.Requirements),
		Conn:         conn, Session: session,
		Entries: entries, Count: 1,
		Message: sentence(format, args),
	}
	c.index[key] = f
	c.findings = append(c.findings, f)
	return f
}

// sentence is fmt.Sprintf with the texts that stand in quotes cut: they come from
// an agent.
func sentence(format string, args []any) string {
	verbs := strings.ReplaceAll(format, "%%", "")
	for i := range args {
		_, verbs, _ = strings.Cut(verbs, "%")
		if text, ok := args[i].(string); ok && strings.HasPrefix(verbs, "q") {
			args[i] = wire.Clip(text, 120)
		}
	}
	return fmt.Sprintf(format, args...)
}
