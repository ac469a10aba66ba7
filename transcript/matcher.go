package transcript

import (
	"fmt"
	"math"
	"sync"

	"github.com/acp-test/acp-test/wire"
)

// progress is how far a matcher has looked at one transcript.
type progress struct {
	mu   sync.Mutex
	of   *Transcript
	seen int
	part *part
}

// Match makes an Expectation a gomega matcher. actual is a *Transcript or has
// a method Transcript() *Transcript.
func (x Expectation) Match(actual any) (bool, error) {
	v, _, err := x.look(actual)
	return v == Met, err
}

// MatchMayChangeInTheFuture makes gomega's Eventually stop when the verdict is
// final.
func (x Expectation) MatchMayChangeInTheFuture(actual any) bool {
	v, _, err := x.look(actual)
	return err == nil && (v == Unmet || v == Met && x.wavers())
}

// FailureMessage is gomega's text for an expectation that should be met.
func (x Expectation) FailureMessage(actual any) string {
	v, reason, _ := x.look(actual)
	return fmt.Sprintf("expected %s\nit is %s: %s\n%s", x.Description, v, reason, lastLines(actual))
}

// NegatedFailureMessage is gomega's text for an expectation that should not be
// met.
func (x Expectation) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("expected no %s\n%s", x.Description, lastLines(actual))
}

func (x Expectation) look(actual any) (Verdict, string, error) {
	t, err := transcriptOf(actual)
	if err != nil {
		return Unmet, "", err
	}
	p := x.progress
	if p == nil {
		p = &progress{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != t {
		p.of, p.part, p.seen = t, x.begin(), 0
	}
	if !p.part.final() {
		for e := range t.shown(p.seen+1, math.MaxInt) {
			p.part.see(e)
			p.seen = e.Seq
			if p.part.final() {
				break
			}
		}
	}
	if p.part.verdict == Unmet && !x.Outlives && t.gone() {
		return Unmeetable, "no agent runs any more; " + p.part.reason, nil
	}
	return p.part.verdict, p.part.reason, nil
}

func (t *Transcript) gone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agents.gone()
}

func transcriptOf(actual any) (*Transcript, error) {
	switch a := actual.(type) {
	case *Transcript:
		return a, nil
	case interface{ Transcript() *Transcript }:
		return a.Transcript(), nil
	}
	return nil, fmt.Errorf("an expectation is matched against a *transcript.Transcript or something that has one, "+
		"not a %T",
		actual)
}

func lastLines(actual any) string {
	t, err := transcriptOf(actual)
	if err != nil {
		return err.Error()
	}
	s := "the last entries are:"
	for e := range t.From(t.Len() - 7) {
		s += fmt.Sprintf("\n  #%d %s %s %s", e.Seq, e.Source, e.Kind, Clip(string(e.Raw), 160))
	}
	return s
}

// Clip shortens a text to n bytes for a message, and says how many there are.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s (%d bytes)", wire.Clip(s, n), len(s))
}
