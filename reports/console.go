package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

// ConsoleOptions configures a Console. The zero value writes plain lines.
type ConsoleOptions struct {
	// Total is the number of scenarios that will run; 0 if unknown.
	Total int
	// Terminal shows a live line at the bottom of the terminal, with the elapsed time, the counts and the running
	// scenarios. If false, a line is written for each finished scenario.
	Terminal bool
	// Color colors the output.
	Color bool
	// Width returns the terminal's columns. The Console calls it before writing; nil means 80.
	Width func() int
	// Quiet shows only failures and the summary. Verbose also shows passed scenarios, with checks and notes. If
	// Terminal is false, Verbose also shows each step.
	Quiet, Verbose bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Every is the interval at which the live line is updated. If Terminal is false, the progress is instead written
	// as a new line at this interval, unless Quiet is set. 0 means 100 ms on a terminal and 15 s otherwise.
	Every time.Duration
}

// Console shows a run in progress. The engine calls Started, Step and Finished, from any goroutine; Summary ends the
// Console. An error of the writer does not stop the run; Summary returns the first one.
type Console struct {
	o ConsoleOptions
	w io.Writer

	mu      sync.Mutex
	err     error
	start   time.Time
	phase   string            // other work than scenarios; "" means none
	running []running         // longest-running first
	shown   map[string]string // by a cause's key: the first scenario that showed the cause
	counts  results.Counts
	wraps   bool // wrap lines at the terminal's width
	live    bool // the cursor is in the live line
	untried bool // the note about untried scenarios was shown
	stop    chan struct{}
	ticking sync.WaitGroup
	ticks   bool // the goroutine of tick was started
}

// NewConsole returns a Console for a run that starts now.
func NewConsole(w io.Writer, o ConsoleOptions) *Console {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Width == nil {
		o.Width = func() int { return 80 }
	}
	usual := 15 * time.Second
	if o.Terminal {
		usual = 100 * time.Millisecond
	}
	o.Every = cmp.Or(o.Every, usual)
	c := &Console{o: o, w: w, wraps: o.Terminal, start: o.Now(), shown: map[string]string{},
		stop: make(chan struct{})}
	return c
}

// Finished shows the result of a scenario: one line, and its problems if there are any.
func (c *Console) Finished(r results.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.running, func(x running) bool { return x.id == r.ID }); i >= 0 {
		c.running = slices.Delete(c.running, i, i+1)
	}
	c.counts.Add(&r, 1)
	before := c.before(r)
	serious := r.Verdict == results.Error || r.Verdict == results.Fail && !r.Known ||
		r.Verdict == results.Inconclusive
	untried := r.Verdict == results.Skip && r.NotStarted && !c.o.Verbose
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

// Limits, so that a failure fits on one screen.
const (
	blocks     = 2  // number of problems shown in full
	blockLines = 40 // maximum number of lines of these problems, in total
)

// before checks whether all failures of a result were shown before. If so, it returns the id of an earlier scenario
// that showed one of them. If a failure is new, it returns "".
func (c *Console) before(r results.Result) (id string) {
	for _, s := range verdict.Sightings(&r) {
		if s.Known || s.Class != results.Fail && s.Class != results.Error && s.Class != results.Inconclusive {
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

func (c *Console) result(r results.Result, serious bool, before string) string {
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
		s := verdict.Sightings(&r)[0]
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

// failure returns the text for the problems of a result. The text fits on one screen.
func (c *Console) failure(r results.Result) string {
	const indent = "      "
	var b strings.Builder
	var more []string
	shown := 0
	for _, p := range problems(r) {
		if p.minor() {
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

// verdict returns the word at the start of a result's line. All words have the same width, except "known".
func (c *Console) verdict(r results.Result) string {
	word := map[results.Verdict]string{results.Pass: "ok   ", results.Fail: "FAIL ", results.Error: "ERROR",
		results.Skip: "skip ", results.Inconclusive: "?    "}[r.Verdict]
	if shown := shownVerdict(r); shown != r.Verdict.String() { // a known failure
		return c.paintVerdict(0, shown)
	}
	return c.paintVerdict(r.Verdict, word)
}

func (c *Console) paintVerdict(v results.Verdict, word string) string {
	if !c.o.Color {
		return word
	}
	color := map[results.Verdict]string{results.Pass: "32", results.Fail: "31", results.Error: "35",
		results.Inconclusive: "33"}[v]
	color = cmp.Or(color, "2")
	return "\x1b[" + color + "m" + word + "\x1b[0m"
}
