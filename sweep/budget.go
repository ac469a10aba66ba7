package sweep

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// Learning returns the time that is left for the baselines or for the
// calibration of an agent: half of the budget, but at least 30 s. The time
// counts from Engine.Began or, if that is zero, from began.
func (w *Sweeper) Learning(began time.Time) time.Duration {
	return max(w.Budget/2, 30*time.Second) - time.Since(cmp.Or(w.Engine.Began, began))
}

// limit sets a deadline, d from now, for runs that start later.
func (s *sweep) limit(d time.Duration) (done func()) {
	s.whole, done = context.WithTimeoutCause(s.whole, d, errBudget)
	return done
}

// budgeted divides the budget. It returns a context for exploring, and one for
// confirming and shrinking findings (settle), which ends later. Runs that have
// started before settle ends may continue for a twelfth of the budget.
func (s *sweep) budgeted(ctx context.Context) (explore, settle context.Context, done func()) {
	if s.Budget <= 0 {
		return ctx, ctx, func() {}
	}
	var stop, end, cut context.CancelFunc
	explore, stop = context.WithCancel(ctx)
	if began := s.engine.Began; !began.IsZero() {
		s.Budget = max(s.Budget-time.Since(began), s.Budget/2)
	}
	settle, end = context.WithTimeoutCause(ctx, s.Budget-s.Budget/12, errBudget)
	s.whole, cut = context.WithTimeoutCause(ctx, s.Budget, errBudget)
	go s.divide(settle, stop)
	return explore, settle, func() { cut(); end(); stop() }
}

// divide stops exploring when ctx ends. After seven twelfths of the budget, it
// stops exploring as soon as there is an unknown finding.
func (s *sweep) divide(ctx context.Context, stop context.CancelFunc) {
	defer stop()
	later := time.NewTimer(s.Budget * 7 / 12)
	defer later.Stop()
	select {
	case <-ctx.Done():
		return
	case <-later.C:
	}
	often := time.NewTicker(max(s.Budget/100, time.Millisecond))
	defer often.Stop()
	for {
		s.mu.Lock()
		found := slices.ContainsFunc(s.seen, func(g *sighting) bool { return g.schedule.Action != "" && g.known == "" })
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-often.C:
		}
	}
}

// instead is the step timeout for a replacement scenario, whose acts in the
// middle of turns were removed. Some of its turns end only by a timeout.
const instead = 5 * time.Second

var errBudget = errors.New("the budget is used up")
