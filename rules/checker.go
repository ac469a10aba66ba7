package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/transcript"
)

// Config chooses what a Checker judges, and how severely.
type Config struct {
	// Version of the protocol that was agreed on; 0 means 1.
	Version int
	// Severity names a set of Severities; "" means "v1".
	Severity string
	// Off maps the ids of rules that do not apply here to the reason.
	Off map[string]string
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
	// Linger is how long the run listened on after the last act. 0 gives no
	// evidence about late frames.
	Linger time.Duration
}

// Checker judges one transcript. Observe it from one goroutine at a time.
type Checker struct {
	config   Config
	world    *world
	shape    *schema.Version
	severity severity
	hear     [topics][]func(*event)
	atEnd    []func(End)
	watches  []*watch
	findings []*Finding
	index    map[findingKey]*Finding
	distinct map[pointKey]int
	event    event
	// Whether some rule wants to know what is wrong with shapes.
	shapes, clientShapes bool
	problems             []schema.Problem
	complain             func(schema.Problem)
	foreign              map[int]bool                       // connections on which the agent chose another version
	cite                 func(requirements []string) string // a field, so that rules do not depend on the registry that lists them
	lastEntry            transcript.Entry
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

// NewChecker makes a checker with a fresh state. An unknown name in
// Config.Severity counts as "v1".
func NewChecker(c Config) *Checker {
	if c.Version == 0 {
		c.Version = 1
	}
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
	}
	checker := &Checker{
		config:   c,
		world:    newWorld(),
		shape:    schema.V1(),
		severity: severityNamed(c.Severity),
		cite:     citation,
		index:    map[findingKey]*Finding{},
		distinct: map[pointKey]int{},
		foreign:  map[int]bool{},
	}
	checker.complain = func(p schema.Problem) { checker.problems = append(checker.problems, p) }
	for _, rule := range Rules() {
		if _, off := c.Off[rule.ID]; off || rule.versions != nil && !slices.Contains(rule.versions, c.Version) {
			continue
		}
		w := &watch{Checker: checker, rule: rule, evidence: make([]int, len(rule.Points))}
		checker.watches = append(checker.watches, w)
		rule.start(w)
	}
	return checker
}

// Observe judges one entry. Entries must come in the order of the transcript;
// it is made to be given to Transcript.Observe.
func (c *Checker) Observe(e transcript.Entry) {
	ev := &c.event
	c.world.read(e, ev)
	if e.Frame() && e.Kind != transcript.Malformed {
		c.checkShape(e, ev)
	}
	for _, hear := range c.hear[ev.topic] {
		hear(ev)
	}
	c.world.fold(ev)
	c.lastEntry = e
	c.lastEntry.Raw = nil
	*ev = event{}
}

// checkShape finds what is wrong with the shape of a frame, once for all rules.
// An agent that answers initialize with another version answers in the form of
// that one, and it is the editor's to leave.
func (c *Checker) checkShape(e transcript.Entry, ev *event) {
	if e.Source == transcript.Agent && e.Kind == transcript.Response && e.Method == "initialize" {
		chosen, whole := ev.result.Get("protocolVersion").Int()
		c.foreign[e.Conn] = whole && chosen > 0 && chosen != int64(c.config.Version)
	}
	if c.foreign[e.Conn] && e.Source == transcript.Agent {
		return
	}
	towards, wanted := schema.ToEditor, c.shapes
	if e.Source == transcript.Editor {
		towards, wanted = schema.ToAgent, c.clientShapes
	}
	if wanted {
		c.problems = c.problems[:0]
		c.shape.Check(towards, ev.frame, e.Method, c.complain)
		ev.problems = c.problems
	}
}

// Finish judges what only the end can show and returns all findings, in the
// order in which they were first seen. Call it once, after the last entry.
func (c *Checker) Finish(end End) []Finding {
	for _, judge := range c.atEnd {
		judge(end)
	}
	return c.Findings()
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
		total := 0
		for _, n := range w.evidence {
			total += n
		}
		counts[w.rule.ID] = total
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

// watch is what a rule's state machine holds: how to hear, and how to report.
type watch struct {
	*Checker
	rule     Rule
	evidence []int
}

// on calls hear for each entry about one of the topics. It sees the world as
// it was before that entry.
func (w *watch) on(hear func(*event), about ...topic) {
	for _, t := range about {
		w.hear[t] = append(w.hear[t], hear)
	}
}

// finish calls judge at the end of the transcript.
func (w *watch) finish(judge func(End)) { w.atEnd = append(w.atEnd, judge) }

// saw counts that a point had something to judge.
func (w *watch) saw(point int) { w.evidence[point]++ }

// find reports that the entry breaks a point. object is what it is about; the
// same object is reported once. because are earlier entries that matter.
func (w *watch) find(point int, ev *event, object string, because []int, format string, args ...any) *Finding {
	return w.report(point, ev.Conn, ev.Session, object, append(because, ev.Seq), format, args...)
}

// only narrows what a finding breaks. It does nothing to a finding that was
// only counted.
func (w *watch) only(f *Finding, requirements ...string) {
	if f != nil {
		f.Requirements, f.Citation = requirements, w.cite(requirements)
	}
}

// report makes a finding, or counts it if there is one like it. It returns nil
// for the latter.
func (w *watch) report(point, conn int, session, object string, entries []int, format string, args ...any) *Finding {
	p := w.rule.Points[point]
	key := findingKey{pointKey{w.rule.ID, point}, conn, session, object}
	f, known := w.index[key]
	if !known && w.distinct[key.pointKey] >= distinctFindings {
		key.session, key.object = "", "…"
		f, known = w.index[key]
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
	w.distinct[key.pointKey]++
	entries = slices.DeleteFunc(entries, func(seq int) bool { return seq == 0 })
	if len(entries) == 0 {
		entries = []int{max(w.lastEntry.Seq, 1)}
	}
	f = &Finding{
		Rule: w.rule.ID, Point: p.ID, Side: w.rule.Side,
		Class:        w.severity.of(w.rule.ID, p),
		Requirements: p.Requirements,
		Citation:     w.cite(p.Requirements),
		Conn:         conn, Session: session,
		Entries: entries, Count: 1,
		Message: fmt.Sprintf(format, args...),
	}
	w.index[key] = f
	w.findings = append(w.findings, f)
	return f
}
