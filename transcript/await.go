package transcript

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// Outcome is the result of Await or Judge.
type Outcome struct {
	Verdict Verdict
	// Reason explains the verdict in a phrase: the last reason of the expectation,
	// or that the agent has exited.
	Reason string
	// Entry is the entry that decided the expectation; the zero Entry if none did.
	Entry Entry
	// Cause is the cause of the context that ended the wait. It is nil if the
	// expectation was decided.
	Cause error
	// Waited is how long Await took.
	Waited time.Duration
}

// Met reports whether the expectation was met.
func (o Outcome) Met() bool { return o.Verdict == Met }

type waiter struct {
	part    *part
	decided chan Outcome // buffered, so that nobody blocks if the waiter has left
}

// see passes an entry to the expectation and reports whether that decided it.
// gone means that no agent is running after this entry.
func (w *waiter) see(e Entry, gone bool) bool {
	w.part.see(e)
	if w.part.verdict == Unmet && gone && e.Source == Process && e.Kind == Exited && !w.part.x.Outlives {
		w.part.verdict = Unmeetable
		w.part.reason = exitReason(e, w.part.reason)
	}
	if w.part.verdict == Unmet {
		return false
	}
	w.decided <- Outcome{Verdict: w.part.verdict, Reason: w.part.reason, Entry: e.Detached()}
	return true
}

func exitReason(e Entry, before string) string {
	v := e.JSON()
	how := "the agent exited"
	if closed, _ := v.Get("closed").Bool(); closed {
		how = "the connection to the agent ended"
	} else if sig := v.Get("signal").Str(); sig != "" {
		how = "the agent was ended by " + sig
	} else if code, ok := v.Get("code").Int(); ok {
		how = fmt.Sprintf("the agent exited with status %d", code)
	}
	if before != "" {
		return how + "; " + before
	}
	return how
}

// Await waits until the entries with Seq > after decide x, or until ctx ends.
// Entries that are already in the transcript count. Once the last agent has
// exited, an undecided x becomes unmeetable, unless x.Outlives is set. The
// cause of ctx should name the timer; Await returns it as Outcome.Cause.
func (t *Transcript) Await(ctx context.Context, after int, x Expectation) Outcome {
	began := t.now()
	w := &waiter{part: x.begin(), decided: make(chan Outcome, 1)}
	finish := func(o Outcome) Outcome {
		o.Waited = t.now().Sub(began)
		return o
	}
	t.mu.Lock()
	if w.part.verdict != Unmet {
		t.mu.Unlock()
		return finish(Outcome{Verdict: w.part.verdict, Reason: w.part.reason})
	}
	decided := false
	t.past(max(after, 0)+1, func(e Entry) bool {
		decided = w.see(e, false) // whether an exit was the last is known only at the end
		return !decided
	})
	if decided {
		t.mu.Unlock()
		return finish(<-w.decided)
	}
	if t.agents.gone() && !x.Outlives {
		exit := t.store.lastExit()
		t.mu.Unlock()
		return finish(Outcome{Verdict: Unmeetable, Reason: exitReason(exit, w.part.reason), Entry: exit})
	}
	t.waiters[w] = struct{}{}
	t.mu.Unlock()
	select {
	case o := <-w.decided:
		return finish(o)
	case <-ctx.Done():
	}
	t.mu.Lock()
	delete(t.waiters, w)
	reason := w.part.reason
	t.mu.Unlock()
	select {
	case o := <-w.decided: // it was decided at the same time as ctx ended
		return finish(o)
	default:
	}
	return finish(Outcome{Verdict: Unmet, Reason: reason, Cause: context.Cause(ctx)})
}

// Judge evaluates x over the entries with after < Seq <= to, without waiting. A
// negative to means the last entry. It returns the verdict over the whole
// range, or Unmet if the range does not decide x. Outcome.Entry is the entry at
// which the verdict got this value.
func (t *Transcript) Judge(after, to int, x Expectation) Outcome {
	if to < 0 {
		to = t.Len()
	}
	p := x.begin()
	var at Entry
	for e := range t.shown(max(after, 0)+1, to) {
		before := p.verdict
		if p.see(e); p.verdict != before {
			at = e.Detached()
		}
		if p.final() {
			break
		}
	}
	if p.verdict == Unmet {
		at = Entry{}
	}
	return Outcome{Verdict: p.verdict, Reason: p.reason, Entry: at}
}

// progress is how far a gomega matcher has read one transcript.
type progress struct {
	mu   sync.Mutex
	of   *Transcript
	seen int
	part *part
}

// Match implements gomega's matcher interface. actual is a *Transcript, or has
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

// FailureMessage returns gomega's message for an expectation that should have
// been met.
func (x Expectation) FailureMessage(actual any) string {
	v, reason, _ := x.look(actual)
	return fmt.Sprintf("expected %s\nit is %s: %s\n%s", x.Description, v, reason, lastLines(actual))
}

// NegatedFailureMessage returns gomega's message for an expectation that should
// not have been met.
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
	return nil, fmt.Errorf("an expectation needs a *transcript.Transcript or a value with a Transcript method, "+
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

// Clip shortens a text of more than n bytes to its first n bytes and appends
// its full length. It is for messages.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s (%d bytes)", wire.Clip(s, n), len(s))
}
