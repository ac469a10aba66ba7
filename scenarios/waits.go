package scenarios

import (
	"errors"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// Waits is how much of its duration a scenario waited and could do nothing else.
type Waits struct {
	// Start is the time until an agent that was started had answered the greeting.
	Start time.Duration `json:"start_ns,omitempty"`
	// Deadline is what the lines took whose time ran out.
	Deadline time.Duration `json:"deadline_ns,omitempty"`
	// Linger is the silence that was listened to at the end.
	Linger time.Duration `json:"linger_ns,omitempty"`
	// Exit is the time until the agent's processes had ended.
	Exit time.Duration `json:"exit_ns,omitempty"`
}

// Add adds what another scenario waited.
func (w *Waits) Add(other Waits) {
	w.Start += other.Start
	w.Deadline += other.Deadline
	w.Linger += other.Linger
	w.Exit += other.Exit
}

// since begins to measure a wait; what it returns ends it.
func (r *run) since(of func(w *Waits) *time.Duration) func() {
	began := time.Now()
	return func() { r.waited(of, time.Since(began)) }
}

func (r *run) waited(of func(w *Waits) *time.Duration, d time.Duration) {
	r.change(func(s *state) { *of(&s.waits) += d })
}

func ofDeadline(w *Waits) *time.Duration { return &w.Deadline }
func ofLinger(w *Waits) *time.Duration   { return &w.Linger }
func ofExit(w *Waits) *time.Duration     { return &w.Exit }

// ranOut notes a line whose time ran out.
func (r *run) ranOut(o transcript.Outcome) {
	var timer *timerError
	if errors.As(o.Cause, &timer) {
		r.waited(ofDeadline, o.Waited)
	}
}
