package scenarios

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The clock is one of starvation: it goes on with each look at it.
func TestPatient(t *testing.T) {
	cause := errors.New("the timer")
	const d = 5 * time.Millisecond
	for _, c := range []struct {
		name        string
		each        time.Duration // so much longer has been waited at each look
		looks, most int
	}{
		{"nobody waits for a processor", 0, 2, 2},
		{"somebody waited for as long once", d, 3, 4},
		{"somebody always waits", time.Hour, 3, 3},
	} {
		looks, sum := 0, time.Duration(0)
		began := time.Now()
		ctx, cancel := patient(context.Background(), d, cause, func() time.Duration {
			looks++
			if looks > 1 && (looks == 2 || c.each > d) {
				sum += c.each
			}
			return sum
		})
		<-ctx.Done()
		if got := context.Cause(ctx); got != cause {
			t.Errorf("%s: the cause is %v", c.name, got)
		}
		if took := time.Since(began); c.each >= d && took < 2*d || c.each > d && took < most*d {
			t.Errorf("%s: it took %v", c.name, took)
		}
		if looks < c.looks || looks > c.most {
			t.Errorf("%s: %d looks", c.name, looks)
		}
		cancel()
	}
	parent, end := context.WithCancel(context.Background())
	ctx, cancel := patient(parent, time.Hour, cause, func() time.Duration { return 0 })
	defer cancel()
	end()
	if <-ctx.Done(); context.Cause(ctx) != context.Canceled {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}
