// Package slots limits how many scenarios run at once.
package slots

import (
	"context"
	"runtime"
	"time"

	"github.com/acp-test/acp-test/internal/process"
)

// Slots limits how many scenarios run at once. A scenario returns its slot when it only has its final wait left. The
// capacity is the maximum number of slots.
type Slots chan struct{}

// mostAtOnce is the default maximum of scenarios at once. Each has an agent, which uses memory even while it waits.
const mostAtOnce = 16

// idleCheck is the time between two checks of whether the processors have time for one more scenario.
const idleCheck = 200 * time.Millisecond

// crowded is how many checks in a row must find all processors busy before a slot is removed.
const crowded = 25

// New returns n slots. If n is 0, it starts with one slot per processor and adjusts the number until ctx ends.
// It adds a slot when all slots are taken and the processors are idle. It removes a slot after the processors were
// busy for five seconds, as long as there are more than two slots per processor.
func New(ctx context.Context, n int) Slots {
	if n > 0 {
		return make(Slots, n)
	}
	s := make(Slots, max(mostAtOnce, runtime.NumCPU()))
	for range cap(s) - runtime.NumCPU() {
		s <- struct{}{}
	}
	if process.Starved() > 0 { // otherwise this system does not report the waiting time
		tick := time.NewTicker(idleCheck)
		context.AfterFunc(ctx, tick.Stop)
		go s.fit(ctx, cap(s)-runtime.NumCPU(), tick.C, process.Starved)
	}
	return s
}

// fit changes the number of slots by at most one per tick, until ctx ends. It adds up to n slots while all slots are
// taken and the processors are idle. It removes one when the processors were busy for crowded ticks in a row, but
// keeps two slots per processor. starved returns the total time that processes have waited for a processor.
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

// offer adds a slot if all slots are taken and the processors were idle. waited is how long processes waited for a
// processor since the last tick; less than half of idleCheck counts as idle.
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
