package reports

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/scenarios"
)

// ConsoleOptions of a Console. The zero value writes plain lines.
type ConsoleOptions struct {
	// Total is the number of scenarios that will run; 0 if unknown.
	Total int
	// Terminal keeps a live line at the bottom: elapsed time, counts, what
	// runs. Elsewhere each finished scenario is a line of its own.
	Terminal bool
	// Color uses colours.
	Color bool
	// Width is the number of columns, asked before each live line; nil means 80.
	Width func() int
	// Quiet shows failures and the summary only; Verbose also what passed, on
	// a terminal too, with its checks and notes, and each step elsewhere.
	Quiet, Verbose bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Every is how often the live line is renewed; 0 means 100 ms.
	Every time.Duration
}

// Console shows a run while it goes on. The engine calls Started, Step and
// Finished, from any goroutine; Summary ends it. Errors of the writer do not
// stop a run: Summary returns the first.
type Console struct {
	o ConsoleOptions
	w io.Writer

	mu      sync.Mutex
	err     error
	start   time.Time
	running []running         // longest first
	shown   map[string]string // the scenario that has shown a cause, by its key
	counts  scenarios.Counts
	live    bool // the cursor is on the live line
	untried bool // it was said that the rest is not tried
	stop    chan struct{}
	stopped chan struct{}
}

type running struct {
	id, step string
	since    time.Time
}

// NewConsole begins to show a run.
func NewConsole(w io.Writer, o ConsoleOptions) *Console {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Width == nil {
		o.Width = func() int { return 80 }
	}
	o.Every = cmp.Or(o.Every, 100*time.Millisecond)
	c := &Console{o: o, w: w, start: o.Now(), shown: map[string]string{},
		stop: make(chan struct{}), stopped: make(chan struct{})}
	if !o.Terminal {
		close(c.stopped)
		return c
	}
	go c.tick()
	return c
}

// tick renews the live line, so that elapsed time shows a hanging agent.
func (c *Console) tick() {
	defer close(c.stopped)
	t := time.NewTicker(c.o.Every)
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
			c.mu.Lock()
			c.paint()
			c.mu.Unlock()
		}
	}
}

// Started says that a scenario began.
func (c *Console) Started(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = append(c.running, running{id: id, since: c.o.Now()})
	c.paint()
}

// Step says what a running scenario does now.
func (c *Console) Step(id, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.running {
		if c.running[i].id == id {
			c.running[i].step = harmless(firstLine(text))
		}
	}
	if c.o.Verbose && !c.o.Terminal {
		c.print(fmt.Sprintf("      %s: %s\n", id, harmless(firstLine(text))))
	}
}

// Finished shows a result: a line, and what went wrong if something did.
func (c *Console) Finished(r scenarios.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.running {
		if c.running[i].id == r.ID {
			c.running = slices.Delete(c.running, i, i+1)
			break
		}
	}
	c.count(r)
	before := c.before(r)
	serious := r.Verdict == scenarios.Error || r.Verdict == scenarios.Fail && !r.Known ||
		r.Verdict == scenarios.Inconclusive
	untried := r.Verdict == scenarios.Skip && r.NotStarted && !c.o.Verbose
	switch {
	case untried && (c.untried || c.o.Quiet):
	case untried:
		c.untried = true
		c.print(c.verdict(r) + harmless(fmt.Sprintf(" %s and all that follows: %s", name(r), r.Reason)) + "\n")
	case serious, c.o.Verbose, !c.o.Terminal && !c.o.Quiet:
		c.print(c.result(r, serious, before))
	}
	c.paint()
}

func (c *Console) count(r scenarios.Result) {
	n := &c.counts
	n.Total++
	switch {
	case r.Verdict == scenarios.Error:
		n.Error++
	case r.Verdict == scenarios.Fail && r.Known:
		n.Known++
	case r.Verdict == scenarios.Fail:
		n.Fail++
	case r.Verdict == scenarios.Inconclusive:
		n.Inconclusive++
	case r.Verdict == scenarios.Skip:
		n.Skip++
	default:
		n.Pass++
	}
}

// A failure takes at most a screen.
const (
	blocks     = 2  // problems shown in full
	blockLines = 40 // of all of them together
)

// before is the scenario that has shown all that fails in a result; "" if there is
// something new.
func (c *Console) before(r scenarios.Result) (id string) {
	for _, s := range r.Sightings() {
		if s.Known || s.Class != scenarios.Fail && s.Class != scenarios.Error && s.Class != scenarios.Inconclusive {
			continue
		}
		if first, ok := c.shown[s.Key()]; !ok {
			c.shown[s.Key()] = r.ID
			id = r.ID
		} else if id == "" {
			id = first
		}
	}
	if id == r.ID {
		return ""
	}
	return id
}

func (c *Console) result(r scenarios.Result, serious bool, before string) string {
	var b strings.Builder
	line := fmt.Sprintf(" %s  %s", name(r), short(r.Duration))
	if r.Reason != "" && !serious {
		line += "  " + firstLine(r.Reason)
	}
	if r.Golden != nil && (slices.Contains([]string{"new", "updated", "removed"}, r.Golden.State)) {
		line += "  golden " + r.Golden.State
	}
	b.WriteString(c.verdict(r) + harmless(line) + "\n")
	switch {
	case serious && before != "" && !c.o.Verbose:
		s := r.Sightings()[0]
		b.WriteString(harmless("      as in " + before + ": " + strings.TrimSpace(s.ID+"  "+firstLine(s.Title)) + "\n"))
	case serious:
		b.WriteString(harmless(c.failure(r)))
	}
	if c.o.Verbose {
		for _, k := range r.Checks {
			fmt.Fprintf(&b, "       %-12s %s  %s\n", k.Verdict, k.Slug, harmless(k.Title))
		}
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "       note         %s\n", harmless(n))
		}
	}
	return b.String()
}

// failure is what went wrong, at most a screen of it.
func (c *Console) failure(r scenarios.Result) string {
	const indent = "      "
	var b strings.Builder
	var more []string
	shown := 0
	for _, p := range problems(r) {
		if p.known || severity(p) < 3 {
			continue
		}
		if shown == blocks {
			more = append(more, label(p))
			continue
		}
		shown++
		b.WriteString(p.head(r, indent) + p.body(indent))
	}
	text := cut(b.String(), blockLines-2-min(1, len(more)))
	if !strings.HasSuffix(text, "\n") {
		text = strings.Replace(text, "\n… ", "\n"+indent+"… ", 1) + "\n"
	}
	if len(more) > 0 {
		text += block(indent, "also", strings.Join(more[:min(4, len(more))], ", ")+andMore(len(more)-4))
	}
	return text + block(indent, "run again", r.Rerun, "evidence", r.Artifacts["transcript"])
}

func label(p problem) string {
	if p.id == "" {
		return firstLine(p.title)
	}
	return p.id
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// causes are what is wrong, each once; what was known is left out.
func (c *Console) causes(run scenarios.Run) string {
	var b strings.Builder
	const most = 12 // of a class
	left, again := map[scenarios.Verdict]int{}, map[string]string{}
	for _, r := range run.Results {
		again[r.ID] = r.Rerun
	}
	for _, cause := range run.Causes {
		if cause.Known {
			continue
		}
		if left[cause.Class]++; left[cause.Class] > most {
			continue
		}
		head := strings.TrimSpace(cause.ID + "  " + firstLine(cause.Title))
		fmt.Fprintf(&b, "%s %s\n", c.paintVerdict(cause.Class, fmt.Sprintf("%-5s", headline(cause.Class))), harmless(head))
		where := in(cause.Scenarios, 3)
		switch {
		case cause.Class == scenarios.Warn || cause.Class == scenarios.Lint:
			if !c.o.Quiet {
				b.WriteString(block("      ", "seen", where))
			}
		default:
			b.WriteString(harmless(block("      ", "seen", where, "citation", cause.Citation,
				"run again", again[cause.Scenarios[0]])))
		}
	}
	for _, v := range []scenarios.Verdict{
		scenarios.Error, scenarios.Fail, scenarios.Inconclusive, scenarios.Warn, scenarios.Lint,
	} {
		if n := left[v] - most; n > 0 {
			fmt.Fprintf(&b, "%-5s and %d more\n", headline(v), n)
		}
	}
	return b.String()
}

// headline is a class as a line begins with it.
func headline(v scenarios.Verdict) string {
	switch v {
	case scenarios.Fail, scenarios.Error:
		return strings.ToUpper(string(v))
	case scenarios.Inconclusive:
		return "?"
	}
	return string(v)
}

// in is "in 5 scenarios: a, b, c and 2 more".
func in(ids []string, most int) string {
	if len(ids) == 1 {
		return "in " + ids[0]
	}
	first := strings.Join(ids[:min(most, len(ids))], ", ")
	return fmt.Sprintf("in %d scenarios: %s%s", len(ids), first, andMore(len(ids)-most))
}

// Summary ends the live line and shows the counts, what failed and the slowest.
// It returns the first error of the writer.
func (c *Console) Summary(run scenarios.Run) error {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "\n")
	b.WriteString(c.causes(run))
	for _, t := range run.Flaky {
		fmt.Fprintf(&b, "flaky: %s passed %d of %d times\n", t.ID, t.Passed, t.Of)
	}
	b.WriteString(harmless(differences(run, c.o.Width())))
	b.WriteString(harmless(changes(run.Against, 40)))
	for _, s := range run.Stale {
		fmt.Fprintf(&b, "stale: %s\n", harmless(s))
	}
	if slow := slowest(run.Results, 3); len(run.Results) > 3 && !c.o.Quiet {
		var parts []string
		for _, r := range slow {
			parts = append(parts, name(r)+" "+short(r.Duration))
		}
		fmt.Fprintf(&b, "slowest: %s\n", strings.Join(parts, ", "))
	}
	for _, n := range run.Notes {
		fmt.Fprintf(&b, "%s\n", harmless(n))
	}
	if run.Conformance != nil {
		b.WriteString("\n" + requirementTable(run.Conformance, c.o.Verbose))
		fmt.Fprintf(&b, "%s\n", run.Conformance.Verdict)
	}
	if s := run.Sweep; s != nil {
		fmt.Fprintf(&b, "sweep: %d schedules explored, %d pruned, %d inconclusive; "+
			"%d of %d pairs of situation and action; %s\n",
			s.Explored, s.Pruned, s.Inconclusive, s.PairsTried, s.Pairs, plural(len(s.Repros), "repro", "repros"))
		if s.Drawn != nil {
			fmt.Fprintln(&b, s.Drawn)
		}
	}
	if run.Interrupted {
		b.WriteString("interrupted: not all scenarios ran\n")
	}
	who := run.Agent.Profile
	if run.Agent.Version != "" {
		who += " " + run.Agent.Version
	}
	verdict := run.Verdict
	if verdict == scenarios.Skip && run.Counts.Pass > 0 {
		verdict = scenarios.Pass // SKIP is a run in which nothing applied
	}
	fmt.Fprintf(&b, "%s  %s\n      %s, %s\n", c.paintVerdict(verdict, strings.ToUpper(string(verdict))),
		harmless(who), counts(run), short(run.Duration))
	if line := next(run); line != "" {
		fmt.Fprintf(&b, "      %s\n", line)
	}
	c.print(b.String())
	return c.err
}

// explained are the ids of rules and requirements.
var explained = regexp.MustCompile(`^[A-Z][A-Z0-9]*(-[A-Z0-9]+)*$`)

// next is what to do with a result, in a line; "" if there is nothing.
func next(run scenarios.Run) string {
	var steps []string
	differ := slices.ContainsFunc(run.Causes, func(c scenarios.Cause) bool { return c.ID == "golden" && !c.Known })
	for _, cause := range run.Causes {
		id, _, _ := strings.Cut(cause.ID, " ")
		if !cause.Known && cause.Class == scenarios.Fail && explained.MatchString(id) {
			steps = append(steps, "acp-test help "+id+" explains the first cause")
			break
		}
	}
	if slices.ContainsFunc(run.Results, func(r scenarios.Result) bool {
		return r.Golden != nil && !r.Golden.Recording && (r.Golden.State == "new" || r.Golden.State == "differs" && differ)
	}) {
		steps = append(steps, "acp-test review goes through the goldens")
	}
	if len(steps) == 0 && (run.Counts.Error > 0 || run.Counts.Inconclusive > 0) {
		steps = append(steps, "acp-test help verdicts")
	}
	if run.Out != "" {
		name, _ := File("html")
		steps = append(steps, filepath.Join(run.Out, name))
	}
	return strings.Join(steps, "; ")
}

// Close ends the live line, for a run that has no summary.
func (c *Console) Close() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	<-c.stopped
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	c.running, c.o.Terminal = nil, false
}

// print writes lines above the live line.
func (c *Console) print(s string) {
	c.clear()
	c.write(s)
}

func (c *Console) write(s string) {
	if _, err := io.WriteString(c.w, s); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *Console) clear() {
	if c.live {
		c.write("\r\x1b[K")
		c.live = false
	}
}

// paint renews the live line. It is never wider than the terminal, or it would
// leave lines behind.
func (c *Console) paint() {
	if !c.o.Terminal {
		return
	}
	n := c.counts
	done := fmt.Sprint(n.Total)
	if c.o.Total > 0 {
		done = fmt.Sprintf("%d/%d", n.Total, c.o.Total)
	}
	line := fmt.Sprintf("%s  %s", short(c.o.Now().Sub(c.start)), done)
	for _, p := range []struct {
		n    int
		what string
	}{{n.Fail, "fail"}, {n.Error, "error"}, {n.Inconclusive, "inconclusive"}, {n.Skip, "skip"}} {
		if p.n > 0 {
			line += fmt.Sprintf("  %d %s", p.n, p.what)
		}
	}
	for _, r := range c.running {
		part := "  " + r.id
		if r.step != "" {
			part += ": " + r.step
		}
		if d := c.o.Now().Sub(r.since); d >= time.Second {
			part += " " + short(d)
		}
		line += part
	}
	c.write("\r" + fit(line, c.o.Width()-1) + "\x1b[K")
	c.live = true
}

// fit cuts a line to a number of columns, counting wide characters as two.
func fit(line string, columns int) string {
	used := 0
	for i, r := range line {
		w := 1
		if r >= 0x1100 {
			w = 2
		}
		if used+w > max(columns, 1) {
			return line[:i]
		}
		used += w
	}
	return line
}

// verdict is the word a line begins with, of one width.
func (c *Console) verdict(r scenarios.Result) string {
	v := shownVerdict(r)
	word := map[string]string{"pass": "ok   ", "fail": "FAIL ", "error": "ERROR", "skip": "skip ", "inconclusive": "?    ",
		"known": "known"}[v]
	word = cmp.Or(word, v)
	return c.paintVerdict(scenarios.Verdict(v), word)
}

func (c *Console) paintVerdict(v scenarios.Verdict, word string) string {
	if !c.o.Color {
		return word
	}
	color := map[scenarios.Verdict]string{scenarios.Pass: "32", scenarios.Fail: "31", scenarios.Error: "35",
		scenarios.Inconclusive: "33"}[v]
	color = cmp.Or(color, "2")
	return "\x1b[" + color + "m" + word + "\x1b[0m"
}
