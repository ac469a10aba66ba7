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

// Config chooses the rules of a Checker and their severity.
type Config struct {
	// Severity is the name of a set of severities. If it is "" or unknown, each
	// point keeps its own class.
	Severity string
	// Off maps the id or alias of a rule that is turned off to the reason.
	Off map[string]string
	// Busy is how the agent promises to treat a prompt in a busy session: reject,
	// queue or replace. "" means no promise.
	Busy string
	// Asks lists the neutral tools that the agent promises to use only with the
	// user's permission.
	Asks []string
	// Stops means that the agent promises to stop working on a request that the
	// editor cancels.
	Stops bool
	// Roots lists directories that may contain paths, in addition to each
	// session's own. Start is the agent's working directory. If Start is "", the
	// rules do not check where a path is.
	Roots []string
	Start string
	// Patience is how long a request may stay unanswered before the rules report
	// the side that must answer; 0 means 30 s.
	Patience time.Duration
}

// End describes how a run ended.
type End struct {
	// Clean is false if the run was interrupted, ran out of time, or was ended by
	// a failure of the harness. Missing messages are then no finding.
	Clean bool
	// Lacking means that the transcript lacks messages. A finding then counts only
	// if a single message proves it; all others are inconclusive.
	Lacking bool
	// Linger is how long the run kept listening after its last act. With 0, the
	// run proves nothing about late frames.
	Linger time.Duration
}

// Checker judges one transcript. Only one goroutine at a time may call Observe.
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

// distinctFindings is the maximum number of separate findings about one point.
// Further ones only increase a count.
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

// NewChecker returns a checker for a new transcript.
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

// Config returns the checker's configuration, including defaults.
func (c *Checker) Config() Config { return c.config }

// Last returns the entry before the current one, without its Raw bytes. During
// Finish it returns the last entry of the transcript.
func (c *Checker) Last() transcript.Entry { return c.last }

// Watch returns a new Watch for a rule, which counts its checks and reports its
// findings. It returns nil if the rule is off.
func (c *Checker) Watch(r Rule) *Watch {
	if _, off := c.config.Off[r.ID]; off {
		return nil
	}
	w := &Watch{checker: c, rule: r, evidence: make([]int, len(r.Points))}
	c.watches = append(c.watches, w)
	return w
}

// Observe judges one entry. The caller must pass all entries in the order of
// the transcript, usually with Transcript.Observe.
func (c *Checker) Observe(e transcript.Entry) {
	c.observer.Observe(e)
	c.last = e
	c.last.Raw = nil
}

// Finish runs the checks that need the end of the transcript and returns all
// findings. Findings of earlier checks come first, in the order of their
// discovery; those of the final checks are sorted by their entries. Call Finish
// once, after the last entry.
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

// doubt makes findings inconclusive if their rule needs more than one message.
func (c *Checker) doubt() {
	for _, f := range c.findings {
		if r, ok := c.set.Rule(f.Rule); f.Class != Info && !(ok && r.Alone) {
			f.Class = Inconclusive
			f.Message += " (Some messages of the log cannot be read, so this is not certain.)"
		}
	}
}

// Findings returns the findings so far, in the order of their discovery.
func (c *Checker) Findings() []Finding {
	all := make([]Finding, len(c.findings))
	for i, f := range c.findings {
		all[i] = *f
	}
	return all
}

// Evidence returns how many times each rule checked something. It omits rules
// that are off.
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

// Support returns how many times the rules checked each requirement. A
// requirement that is missing or 0 was not tested.
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

// Watch counts the checks of one rule and reports its findings to a checker. It
// ignores points that exist only in other versions of the protocol. It panics
// for a point that exists in no version.
type Watch struct {
	checker  *Checker
	rule     Rule
	evidence []int
}

// Has reports whether this version of the protocol has the point.
func (w *Watch) Has(point string) bool { return w.index(point) >= 0 }

// index returns the index of a point in the rule's Points, or -1 if only other
// versions of the protocol have it. It panics for an unknown point.
func (w *Watch) index(point string) int {
	for i := range w.rule.Points { // an index avoids copying each point
		if w.rule.Points[i].ID == point {
			return i
		}
	}
	if !slices.Contains(w.rule.Elsewhere, point) {
		panic("rule " + w.rule.ID + " has no point " + point)
	}
	return -1
}

// Saw counts one check of each point.
func (w *Watch) Saw(points ...string) {
	for _, p := range points {
		if i := w.index(p); i >= 0 {
			w.evidence[i]++
		}
	}
}

// Seeing returns a function that counts one check of each point, like Saw. It
// looks up the points only once, for use at nearly every entry.
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

// Narrow sets the requirements that a finding breaks, if these are fewer than
// its point's. f may be nil, which Report returns for a repeated finding;
// Narrow then does nothing.
func (w *Watch) Narrow(f *Finding, requirements ...string) {
	if f != nil {
		f.Requirements, f.Citation = requirements, w.checker.set.registry.citation(requirements)
	}
}

// Report adds a finding and returns it. If a finding about the same object
// exists, Report increases its count and returns nil. entries lists the Seqs
// that show the finding; 0 is ignored. %q shortens long texts.
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

// sentence is like fmt.Sprintf, but it shortens texts that are formatted with
// %q, because they come from an agent.
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
