// Package slots limits how many scenarios run at once.
package slots

import (
	"context"
	"runtime"
	"time"

	"github.com/acp-test/acp-test/internal/process"
)

// Slots are the places for scenarios that run at once. A scenario gives its slot back when only its final wait is left.
// The capacity is the maximum number of slots.
type Slots chan struct{}

// mostAtOnce is the default maximum of scenarios at once. Each has an agent, which uses memory even while it waits.
const mostAtOnce = 16

// idleCheck is how often fit checks whether the processors have time for one more scenario.
const idleCheck = 200 * time.Millisecond

// crowded is the number of checks in a row that must find all processors busy before fit takes one slot back.
const crowded = 25

// New returns n slots. For n = 0 it starts with one per processor and adjusts the number until ctx ends: it adds a
// slot when all are taken and the processors are idle. It removes one when the processors had no time for five seconds
// and more than twice as many scenarios run as there are processors.
func New(ctx context.Context, n int) Slots {
	if n > 0 {
		return make(Slots, n)
	}
	s := make(Slots, max(mostAtOnce, runtime.NumCPU()))
	for range cap(s) - runtime.NumCPU() {
		s <- struct{}{}
	}
	if process.Starved() > 0 { // else this system does not tell
		tick := time.NewTicker(idleCheck)
		context.AfterFunc(ctx, tick.Stop)
		go s.fit(ctx, cap(s)-runtime.NumCPU(), tick.C, process.Starved)
	}
	return s
}

// fit changes the number of slots by at most one per tick, until ctx ends. It adds up to n slots while all are taken
// and the processors are idle. It takes one back when the processors were busy for 25 ticks in a row (see crowded),
// but keeps two slots per processor. starved returns the total time for which processes have waited for a processor.
func (s Slots) fit(ctx context.Context, n int, tick <-chan time.Time, starved func() time.Duration) {
	for before, full := starved(), 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		now := starved()
		waited := now - before
		before = now
		if full++; waited < idleCheck*9/10 {
			full = 0
		}
		switch {
		case n > 0 && s.offer(waited):
			n--
		case full >= crowded && cap(s)-n > 2*runtime.NumCPU():
			select {
			case s <- struct{}{}:
				n, full = n+1, 0
			case <-ctx.Done():
				return
			}
		}
	}
}

// offer adds one slot if all are taken and the processors were idle: waited, the time that processes waited for one,
// is less than half of idleCheck.
func (s Slots) offer(waited time.Duration) bool {
	if len(s) < cap(s) || waited >= idleCheck/2 {
		return false
	}
	<-s
	return true
}

// Take waits for a slot and takes it. It reports false if ctx ends before.
func (s Slots) Take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Give gives a slot back.
func (s Slots) Give() { <-s }
