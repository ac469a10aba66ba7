package scenarios

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The clock is one of starvation: it goes on with each look at it.
func TestPatient(t *testing.T) { synctest.Test(t, testPatient) }

func testPatient(t *testing.T) {
	cause := errors.New("the timer")
	const d = 5 * time.Millisecond
	for _, c := range []struct {
		name  string
		each  time.Duration // so much longer has been waited at each look
		looks int
		took  time.Duration
		still []bool // what the agent is at each look
	}{
		{"nobody waits for a processor", 0, 2, d, nil},
		{"somebody waited for as long once", d, 3, 2 * d, nil},
		{"somebody always waits", time.Hour, 3, most * d, nil},
		{"somebody always waits, and the agent for none", time.Hour, 3, d + d/2, []bool{true, true}},
		{"the agent wants to run again", time.Hour, 4, most * d, []bool{true, false, true}},
	} {
		looks, sum := 0, time.Duration(0)
		began := time.Now()
		ctx, cancel := patient(context.Background(), d, cause, func() time.Duration {
			looks++
			if looks > 1 && (looks == 2 || c.each > d) {
				sum += c.each
			}
			return sum
		}, func() (yes bool) {
			if len(c.still) > 0 {
				yes, c.still = c.still[0], c.still[1:]
			}
			return yes
		})
		<-ctx.Done()
		if got := context.Cause(ctx); got != cause {
			t.Errorf("%s: the cause is %v", c.name, got)
		}
		if took := time.Since(began); took != c.took || looks != c.looks {
			t.Errorf("%s: it took %v and %d looks, want %v and %d", c.name, took, looks, c.took, c.looks)
		}
		cancel()
	}
	parent, end := context.WithCancel(context.Background())
	ctx, cancel := patient(parent, time.Hour, cause, func() time.Duration { return 0 }, nil)
	defer cancel()
	end()
	if <-ctx.Done(); context.Cause(ctx) != context.Canceled {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}
