package replay

import (
	"slices"
	"time"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Judged is the side under test. Findings about the other side are dropped.
type Judged uint8

// The sides.
const (
	Both Judged = iota
	TheAgent
	TheEditor
)

// Judge judges recordings. It holds the rules of their protocol, the name of a set of severities, and the renderer of
// transcripts.
type Judge struct {
	Protocol Protocol
	Rules    *rules.Set
	Severity string
	Text     golden.Renderer
}

// Check judges a complete transcript by the rules only, without a script or golden.
func (j Judge) Check(id string, t *transcript.Transcript) results.Result {
	c := j.Checking()
	c.told = j.telling(t, c.checker.Observe)
	return c.Result(id, t)
}

// Checking judges a transcript by the rules while the transcript is still being read.
type Checking struct {
	judge   Judge
	checker *rules.Checker
	told    account
}

// Checking starts the judgment of a transcript that is still being read. The caller must pass each entry to See and
// then call Result.
func (j Judge) Checking() *Checking {
	return &Checking{judge: j, checker: j.Rules.NewChecker(rules.Config{Severity: j.Severity})}
}

// See judges the next entry. Entries must come in the order of transcript.Shown.
func (c *Checking) See(e transcript.Entry) {
	c.checker.Observe(e)
	c.told.see(e, c.judge.Protocol)
}

// Result returns the result for t. The caller must have passed all entries of t to See.
func (c *Checking) Result(id string, t *transcript.Transcript) results.Result {
	res := results.Result{ID: id, File: id, Verdict: results.Pass, Started: t.Header().Started}
	// A recording may end before its session. Therefore only a recorded exit of the agent counts as a clean end.
	c.judge.conclude(&res, t, c.checker, rules.End{Clean: c.told.exited, Lacking: len(t.Skipped()) > 0}, c.told, Both)
	return res
}

// account collects facts about a run from its transcript.
type account struct {
	frames, said   int // number of frames in all, and of the editor
	last           time.Duration
	agent, version string
	client, of     string // the editor's name and version
	exited         bool
}

// telling reads a transcript once. It calls each with every entry, and returns the facts about the run.
func (j Judge) telling(t *transcript.Transcript, each func(transcript.Entry)) (a account) {
	for e := range t.Shown() {
		each(e)
		a.see(e, j.Protocol)
	}
	return a
}

// see adds the facts of the next entry.
func (a *account) see(e transcript.Entry, p Protocol) {
	a.last = e.At
	switch {
	case e.Source == transcript.Process && e.Kind == transcript.Exited:
		a.exited = true
	case e.Frame():
		a.frames++
		if e.Source == transcript.Editor {
			a.said++
		}
		f := p.Facts(e)
		if f.Agent != "" && a.agent == "" {
			a.agent, a.version = f.Agent, f.Version
		}
		if f.Client != "" && a.client == "" {
			a.client, a.of = f.Client, f.Version
		}
	}
}

// conclude fills a result with the findings of the rules and the facts about the run.
func (j Judge) conclude(res *results.Result, t *transcript.Transcript, c *rules.Checker, end rules.End,
	told account, side Judged) {
	for _, f := range c.Finish(end) {
		if side == TheAgent && f.Side == rules.OfClient || side == TheEditor && f.Side == rules.OfAgent {
			continue
		}
		found := j.finding(f, t)
		if side == Both && f.Side == rules.OfClient {
			found.Message = "The editor: " + found.Message
		}
		res.Findings = append(res.Findings, found)
		res.Verdict = results.Worst(res.Verdict, found.Class)
		if found.Class == results.Inconclusive && res.Reason == "" {
			res.Reason = found.Message
		}
	}
	res.Evidence, res.Linger = c.Evidence(), end.Linger
	res.Frames, res.Duration = told.frames, told.last
	res.AgentName, res.AgentVersion = told.agent, told.version
	if side == TheEditor {
		res.AgentName, res.AgentVersion = told.client, told.of
	}
}

func (j Judge) finding(f rules.Finding, t *transcript.Transcript) results.Finding {
	out := results.FindingOf(f)
	out.Class, out.Tail = max(f.Class, rules.Lint), around(j.Text, t, f.Entries)
	return out
}

// around returns the context of a finding, one entry per line: the entries in seqs, and the frames right before the
// last of them.
func around(text golden.Renderer, t *transcript.Transcript, seqs []int) []string {
	if len(seqs) == 0 {
		return nil
	}
	var lines []string
	last := slices.Max(seqs)
	for e := range t.Between(slices.Min(seqs), last+1) {
		named := slices.Contains(seqs, e.Seq)
		if !named && (!e.Frame() || e.Seq < last-2) {
			continue
		}
		mark := "  "
		if named {
			mark = "> "
		}
		lines = append(lines, shorten(mark+numbers([]int{e.Seq})+" "+text.Line(e)))
	}
	if len(lines) > 8 {
		lines = append(lines[:2:2], append([]string{"  …"}, lines[len(lines)-5:]...)...)
	}
	return lines
}

// shorten cuts a line to 200 bytes, for use in a failure.
func shorten(s string) string { return wire.Clip(s, 200) }

// Canonical returns the text of a recording for comparison. It contains only frames, and its directories are masked.
func (j Judge) Canonical(t *transcript.Transcript) string {
	return j.Text.Render(Frames(t), Masked(j.Protocol, t, golden.Options{}))
}

// Frames yields the frames of a transcript.
func Frames(t *transcript.Transcript) func(yield func(transcript.Entry) bool) {
	return func(yield func(transcript.Entry) bool) {
		for e := range t.All() {
			if e.Frame() && !yield(e) {
				return
			}
		}
	}
}
