package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/transcript"
)

// Patience is the context for the answer to a request: agents take longer to
// start than to do anything else.
func (r *run) Patience(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	d := r.engine.Profile.Timeouts.Start
	if !r.protocol().Start(method) || d <= r.engine.StepTimeout {
		return r.waitFor(ctx, "the answer to "+method, "step timeout", r.engine.StepTimeout)
	}
	return r.waitFor(ctx, "the answer to "+method, "start timeout", d)
}

// StepLimit is how long one line may take.
func (r *run) StepLimit() time.Duration { return r.engine.StepTimeout }

// StepTimeout bounds one line.
func (r *run) StepTimeout(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	d, name := within, "within"
	if d == 0 {
		d, name = r.engine.StepTimeout, "step timeout"
	}
	if r.engine.Debug {
		return context.WithCancel(ctx)
	}
	return patient(ctx, d, &timerError{name: name, d: d}, process.Starved)
}

// timerError names the timer that ended a wait.
type timerError struct {
	name    string
	d       time.Duration
	instead string // how long it is otherwise, and why not now; "" if it is so long
}

func (e *timerError) Error() string {
	if e.instead != "" {
		return fmt.Sprintf("%s %v instead of %s", e.name, e.d, e.instead)
	}
	return fmt.Sprintf("%s %v", e.name, e.d)
}

// most is how many times as long as it is a timeout may take on a busy machine.
const most = 4

// patient is a context that ends after d, not counting the time in which processes of
// this machine waited for a processor, of which starved is the sum: nobody can answer
// who may not run. It ends after four times d all the same, and where d does, before
// ctx ends.
func patient(
	ctx context.Context, d time.Duration, cause error, starved func() time.Duration,
) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	began, before := time.Now(), starved()
	longest := most * d
	if end, ok := ctx.Deadline(); ok {
		longest = max(d, min(longest, end.Sub(began)-time.Second))
	}
	var mu sync.Mutex
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		left := min(d+starved()-before, longest) - time.Since(began)
		if left < time.Millisecond || ctx.Err() != nil {
			cancel(cause)
			return
		}
		timer.Reset(left)
	})
	return ctx, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// since begins to measure a wait, which is one of those in the state; what it returns ends it.
func (r *run) since(wait *time.Duration) func() {
	began := time.Now()
	return func() { r.change(func(*state) { *wait += time.Since(began) }) }
}

// ranOut notes a line whose time ran out.
func (r *run) ranOut(o transcript.Outcome) {
	var timer *timerError
	if errors.As(o.Cause, &timer) {
		r.change(func(s *state) { s.waits.Deadline += o.Waited })
	}
}
