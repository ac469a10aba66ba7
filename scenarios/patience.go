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

// Patience returns a context with the timeout for the response to a request. For requests that start the agent, this
// is the longer of the start timeout and the step timeout.
func (r *run) Patience(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	d := r.engine.Profile.Timeouts.Start
	if !r.protocol().Start(method) || d <= r.engine.StepTimeout {
		return r.waitFor(ctx, "the answer to "+method, "step timeout", r.engine.StepTimeout)
	}
	return r.waitFor(ctx, "the answer to "+method, "start timeout", d)
}

// StepLimit returns the step timeout.
func (r *run) StepLimit() time.Duration { return r.engine.StepTimeout }

// StepTimeout returns a context with the timeout of one line: within or, if within is 0, the step timeout.
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

// resting is how long a wait for the agent continues while the agent is idle.
var resting = 10 * time.Second

// UntilRest returns a context for a line that waits for something that the agent does by itself. kind is the kind of
// the wait. The context ends after the step timeout, or when the agent's processes have been idle for ten seconds.
// The idle time is shorter if a wait of this kind timed out before.
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
	if again { // the run's first wait of this kind was long enough
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

// timerError is the cause of a context whose timer expired.
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

// most is the maximum by which a timeout is extended on a busy machine, as a multiple of its normal length.
const most = 4

// patient returns a context with a timeout of d, which is extended on a busy machine. starved returns the total time
// that processes of this machine have waited for a processor; the timeout is extended by the increase of that time,
// up to four times d. still reports whether the agent uses no processor time. In that case the timeout is extended
// only once, by half of d, because more time would not help. still may be nil. If ctx has a deadline, the extended
// timeout ends before it; d itself is never reduced.
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

// still reports whether all threads of the agent's processes are waiting: none is running or ready to run.
func (r *run) still() bool {
	agent := r.Agent()
	return agent != nil && agent.PID() > 0 && !agent.Busy()
}

// since starts to measure a wait. The returned function adds the elapsed time to *wait, a field of the state.
func (r *run) since(wait *time.Duration) func() {
	began := time.Now()
	return func() { r.change(func(*state) { *wait += time.Since(began) }) }
}

// ranOut adds the duration of a wait that timed out to Waits.Deadline. It ignores other outcomes.
func (r *run) ranOut(o transcript.Outcome) {
	if _, ok := errors.AsType[*timerError](o.Cause); ok {
		r.change(func(s *state) { s.waits.Deadline += o.Waited })
	}
}

// lingering is the default time of silence after scenarios whose findings may come late.
const lingering = 250 * time.Millisecond

// linger waits until the agent has been silent for the engine's Linger. It returns that time, or 0 if it did not
// wait.
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

// lastWords waits until an agent in a shared process has written its last output. It does nothing for an agent with
// its own process, which writes its last output before it exits.
func (r *run) lastWords(ctx context.Context) {
	agent := r.Agent()
	if r.engine.share == nil || agent == nil {
		return
	}
	defer r.since(&r.state.waits.Linger)()
	const most, pause = 2 * time.Second, 5 * time.Millisecond // an agent that is never silent must not delay the run
	ctx, cancel := context.WithTimeoutCause(ctx, most, errQuiet)
	defer cancel()
	for last := r.t.Len(); ctx.Err() == nil && !idle(ctx, r.t, last, lingering, agent); last = r.t.Len() {
		within(ctx, r.t, last, pause, agentFrame)
	}
}

// hearModel waits until the agent has called the model or is silent. It does nothing if the script sent no prompt or
// has no model. The text of a failure depends on whether the agent reached its model (see found.go), and must not
// depend on timing.
func (r *run) hearModel(ctx context.Context) {
	if agent := r.Agent(); agent != nil && r.scenario.Model != nil && len(r.prompts()) > 0 {
		untilAsked(ctx, r.t, lingering, agent)
	}
}

var modelAsked = transcript.First("a model request",
	func(e transcript.Entry) bool { return e.Kind == transcript.ModelRequest })

// untilAsked waits until the agent has called the model, or has been silent for the duration d.
func untilAsked(ctx context.Context, t *transcript.Transcript, d time.Duration, agent talker) {
	for range wakings {
		last := t.Len()
		if within(ctx, t, 0, d, modelAsked).Met() || ctx.Err() != nil || idle(ctx, t, last, d, agent) {
			return
		}
	}
}

// within waits for an entry that meets wanted and has a Seq greater than after. It waits for at most d.
func within(ctx context.Context, t *transcript.Transcript, after int, d time.Duration,
	wanted transcript.Expectation) transcript.Outcome {
	wait, cancel := context.WithTimeoutCause(ctx, d, errQuiet)
	defer cancel()
	return t.Await(wait, after, wanted)
}

// talker is the part of an agent that tells whether the agent is silent.
type talker interface {
	Taken(context.Context)
	Busy() bool
	CatchUp(context.Context)
}

// wakings is how many times a wait for silence is restarted. An agent that is never silent must not delay the run
// further.
const wakings = 10

// silence waits until the agent has written nothing for the duration d.
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

// idle reports whether an agent that wrote nothing for d after the entry last will stay silent. Elapsed time is no
// proof on a busy machine. So the agent must also have read its input and be idle, and its output must be logged.
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
	cancel() // do not wait: look only at entries that are already logged
	return !t.Await(wait, last, agentFrame).Met()
}
