package scenarios

import (
	"context"
	"runtime"
	"time"

	"github.com/acp-test/acp-test/internal/process"
)

// slots bounds how many scenarios run at once, and lets one that only lingers
// step aside.
type slots chan struct{}

// mostAtOnce is how many scenarios run at once where nobody says how many: each has an agent,
// which takes memory also while it waits.
const mostAtOnce = 16

// idleCheck is how often it is asked whether the processors have time for one more.
const idleCheck = 200 * time.Millisecond

// newSlots returns n slots. For 0 there are as many as processors at first, and one more each time
// that all are taken and the processors were idle, until ctx ends.
func newSlots(ctx context.Context, n int) slots {
	if n > 0 {
		return make(slots, n)
	}
	s := make(slots, max(mostAtOnce, runtime.NumCPU()))
	for range cap(s) - runtime.NumCPU() {
		s <- struct{}{}
	}
	if process.Starved() > 0 { // else this system does not tell
		go s.widen(ctx, cap(s)-runtime.NumCPU())
	}
	return s
}

// widen gives up to n slots more.
func (s slots) widen(ctx context.Context, n int) {
	tick := time.NewTicker(idleCheck)
	defer tick.Stop()
	for before := process.Starved(); n > 0; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := process.Starved()
		if s.offer(now - before) {
			n--
		}
		before = now
	}
}

// offer gives one slot more if all are taken, and processes waited for a processor for so short
// a part of idleCheck that they were idle.
func (s slots) offer(waited time.Duration) bool {
	if len(s) < cap(s) || waited >= idleCheck/2 {
		return false
	}
	<-s
	return true
}

func (s slots) take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) give() { <-s }
