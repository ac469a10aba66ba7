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

// crowded is for how many checks in a row the processors have no time at all before one scenario
// less runs at once.
const crowded = 25

// newSlots returns n slots. For 0 there are as many as processors at first. There is one more each time
// that all are taken and the processors were idle, and one less each time that they had no time for five
// seconds and more than twice as many run as there are processors, until ctx ends.
func newSlots(ctx context.Context, n int) slots {
	if n > 0 {
		return make(slots, n)
	}
	s := make(slots, max(mostAtOnce, runtime.NumCPU()))
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

// fit gives up to n slots more, and takes slots back. At each tick it asks starved, which says for how
// long some process has waited for a processor.
func (s slots) fit(ctx context.Context, n int, tick <-chan time.Time, starved func() time.Duration) {
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
