package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Patience returns a context for the wait for the answer to a request. Requests that start the agent get the longer of
// the start timeout and the step timeout.
func (r *run) Patience(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	d := r.engine.Profile.Timeouts.Start
	if !r.protocol().Start(method) || d <= r.engine.StepTimeout {
		return r.waitFor(ctx, "the answer to "+method, "step timeout", r.engine.StepTimeout)
	}
	return r.waitFor(ctx, "the answer to "+method, "start timeout", d)
}

// StepLimit returns the step timeout, which limits one line.
func (r *run) StepLimit() time.Duration { return r.engine.StepTimeout }

// StepTimeout returns a context that bounds one line: by within, or by the step timeout if within is 0.
func (r *run) StepTimeout(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	d, name := within, "within"
	if d == 0 {
		d, name = r.engine.StepTimeout, "step timeout"
	}
	if r.engine.Debug {
		return context.WithCancel(ctx)
	}
	return patient(ctx, d, &timerError{name: name, d: d}, process.Starved, r.still)
}

// resting is how long the engine waits, while the agent is idle, for something that only the agent can cause.
var resting = 10 * time.Second

// UntilRest returns a context for a line that waits for something that the agent does by itself; kind names it. The
// context ends after the step timeout, or once the agent's processes have been idle for ten seconds. The idle time is
// shorter if a wait of this kind timed out before.
func (b *Branch) UntilRest(ctx context.Context, kind string) (context.Context, context.CancelFunc) {
	r := b.run
	wait, cancel := r.StepTimeout(ctx, 0)
	if r.engine.Debug {
		return wait, cancel
	}
	rest, began, again := r.engine.doubts.limit(kind, resting), time.Now(), false
	r.change(func(s *state) {
		again = slices.ContainsFunc(s.vain, func(v results.Vain) bool { return v.For == kind && !v.Cut })
	})
	if again { // the first such wait of the run was long enough for both
		rest = shortestDoubt
	}
	go func() {
		const pause = 100 * time.Millisecond
		last, rested := r.t.Len(), time.Duration(0)
		for rested < rest {
			select {
			case <-wait.Done():
				return
			case <-time.After(pause):
			}
			if rested += pause; r.t.Len() != last || !r.still() {
				last, rested = r.t.Len(), 0
			}
		}
		cancel()
	}()
	return wait, func() {
		took, vain := time.Since(began), wait.Err() != nil && ctx.Err() == nil
		if vain {
			r.change(func(s *state) {
				s.vain = append(s.vain, results.Vain{For: kind, Cut: rest < resting && !again})
				s.waits.Deadline += took
			})
		}
		if ctx.Err() == nil {
			r.engine.doubts.ended(kind, took, vain)
		}
		cancel()
	}
}

// timerError names the timer that ended a wait.
type timerError struct {
	name    string
	d       time.Duration
	instead string // the normal length and why it was shortened; "" if it was not
}

func (e *timerError) Error() string {
	if e.instead != "" {
		return fmt.Sprintf("%s %v instead of %s", e.name, e.d, e.instead)
	}
	return fmt.Sprintf("%s %v", e.name, e.d)
}

// most is the longest that a timeout can become on a busy machine, as a multiple of its normal length.
const most = 4

// patient returns a context with a timeout of d that is longer on a busy machine: starved returns the total time that
// processes of this machine have waited for a processor, and the timeout is extended by what was added to it. The limit
// is four times d. still reports that the agent uses no processor time, so more time would not help: the extension is
// then half of d, once. A nil still means no such test. The context ends before ctx unless d is longer.
func patient(
	ctx context.Context, d time.Duration, cause error, starved func() time.Duration, still func() bool,
) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	began, before := time.Now(), starved()
	longest := most * d
	if end, ok := ctx.Deadline(); ok {
		longest = max(d, min(longest, end.Sub(began)-time.Second))
	}
	var mu sync.Mutex
	var timer *time.Timer
	rested := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		left := min(d+starved()-before, longest) - time.Since(began)
		rests := left >= time.Millisecond && still != nil && still()
		if left < time.Millisecond || rests && rested || ctx.Err() != nil {
			cancel(cause)
			return
		}
		if rested = rests; rests {
			left = min(left, d/2)
		}
		timer.Reset(left)
	})
	return ctx, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// still reports whether no thread of the agent's processes runs or is ready to run.
func (r *run) still() bool {
	agent := r.Agent()
	return agent != nil && agent.PID() > 0 && !agent.Busy()
}

// since starts to measure a wait. The returned function adds the elapsed time to *wait, a field of the state.
func (r *run) since(wait *time.Duration) func() {
	began := time.Now()
	return func() { r.change(func(*state) { *wait += time.Since(began) }) }
}

// ranOut adds the time that a timed out line waited to Waits.Deadline.
func (r *run) ranOut(o transcript.Outcome) {
	if _, ok := errors.AsType[*timerError](o.Cause); ok {
		r.change(func(s *state) { s.waits.Deadline += o.Waited })
	}
}

// lingering is how long the agent must be silent at the end of scenarios whose findings may come late.
const lingering = 250 * time.Millisecond

// linger keeps the transcript open until the agent has been silent for the engine's Linger. It returns that time, or 0
// if it did not wait.
func (r *run) linger(ctx context.Context) time.Duration {
	d := time.Duration(0)
	if r.engine.Linger != nil {
		d = *r.engine.Linger
	} else if slices.ContainsFunc(r.scenario.Tags,
		func(t string) bool { return t == "cancel" || t == "load" || t == "close" }) {
		d = lingering
	}
	agent := r.Agent()
	if d == 0 || agent == nil {
		return 0
	}
	if r.engine.Slot != nil {
		defer r.engine.Slot(r.scenario.ID)()
	}
	r.engine.step(r.scenario.ID, "lingering")
	silence(ctx, r.t, d, agent)
	return d
}

// lastWords waits until the agent in a shared process has written its last output. An agent in a process of its own
// writes it before it exits.
func (r *run) lastWords(ctx context.Context) {
	agent := r.Agent()
	if r.engine.share == nil || agent == nil {
		return
	}
	defer r.since(&r.state.waits.Linger)()
	const most, pause = 2 * time.Second, 5 * time.Millisecond // one that is never silent holds nobody up
	ctx, cancel := context.WithTimeoutCause(ctx, most, errQuiet)
	defer cancel()
	for last := r.t.Len(); ctx.Err() == nil && !idle(ctx, r.t, last, lingering, agent); last = r.t.Len() {
		within(ctx, r.t, last, pause, agentFrame)
	}
}

// hearModel waits until the agent asks the model or falls silent, if the script sent a prompt and has a model. A
// failure's text depends on whether the agent reached its model (found.go), and must not depend on timing.
func (r *run) hearModel(ctx context.Context) {
	if agent := r.Agent(); agent != nil && r.scenario.Model != nil && len(r.prompts()) > 0 {
		untilAsked(ctx, r.t, lingering, agent)
	}
}

var modelAsked = transcript.First("a model request",
	func(e transcript.Entry) bool { return e.Kind == transcript.ModelRequest })

// untilAsked waits until the agent has asked the model, or has done nothing for d.
func untilAsked(ctx context.Context, t *transcript.Transcript, d time.Duration, agent talker) {
	for range wakings {
		last := t.Len()
		if within(ctx, t, 0, d, modelAsked).Met() || ctx.Err() != nil || idle(ctx, t, last, d, agent) {
			return
		}
	}
}

// within waits, for at most d, for a wanted entry later than the Seq after.
func within(ctx context.Context, t *transcript.Transcript, after int, d time.Duration,
	wanted transcript.Expectation) transcript.Outcome {
	wait, cancel := context.WithTimeoutCause(ctx, d, errQuiet)
	defer cancel()
	return t.Await(wait, after, wanted)
}

// talker is an agent whose silence the engine waits for.
type talker interface {
	Taken(context.Context)
	Busy() bool
	CatchUp(context.Context)
}

// wakings is how many times a wait for an agent's silence starts again. An agent that is never silent must not hold up
// the run.
const wakings = 10

// silence waits until the agent has written nothing for d.
func silence(ctx context.Context, t *transcript.Transcript, d time.Duration, agent talker) {
	last := t.Len()
	for range wakings {
		if o := within(ctx, t, last, d, agentFrame); o.Met() {
			last = o.Entry.Seq
		} else if ctx.Err() != nil || idle(ctx, t, last, d, agent) {
			return
		}
	}
}

// idle reports whether an agent that wrote nothing for d after entry last will stay silent. On a busy machine the time
// alone does not prove it: the agent must have read its input and be idle, and its output must have been logged.
func idle(ctx context.Context, t *transcript.Transcript, last int, d time.Duration, agent talker) bool {
	wait, cancel := context.WithTimeoutCause(ctx, d, errQuiet)
	defer cancel()
	agent.Taken(wait)
	if agent.Busy() {
		return false
	}
	agent.CatchUp(wait)
	if wait.Err() != nil {
		return false
	}
	cancel() // only what is there already counts
	return !t.Await(wait, last, agentFrame).Met()
}
