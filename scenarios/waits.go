package scenarios

import (
	"errors"
	"time"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// since begins to measure a wait; what it returns ends it.
func (r *run) since(of func(w *results.Waits) *time.Duration) func() {
	began := time.Now()
	return func() { r.waited(of, time.Since(began)) }
}

func (r *run) waited(of func(w *results.Waits) *time.Duration, d time.Duration) {
	r.change(func(s *state) { *of(&s.waits) += d })
}

func ofDeadline(w *results.Waits) *time.Duration { return &w.Deadline }
func ofLinger(w *results.Waits) *time.Duration   { return &w.Linger }
func ofExit(w *results.Waits) *time.Duration     { return &w.Exit }

// ranOut notes a line whose time ran out.
func (r *run) ranOut(o transcript.Outcome) {
	var timer *timerError
	if errors.As(o.Cause, &timer) {
		r.waited(ofDeadline, o.Waited)
	}
}
