package mockclient

import "time"

// Pace is how long an editor takes where editors take time. Each function is
// asked for every line read and every request answered; nil takes none. A
// function is called by one goroutine at a time.
type Pace struct {
	// Read is waited before the next line of the agent is taken.
	Read func() time.Duration
	// Answer is waited before a request of the agent is answered. A
	// permission with a delay of its own keeps that.
	Answer func() time.Duration
}

// SetPace sets the pace from now on. An agent that has ended is read at once.
func (a *Agent) SetPace(p Pace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pace = p
}

func (a *Agent) readPace() time.Duration {
	a.mu.Lock()
	f := a.pace.Read
	a.mu.Unlock()
	return drawn(f)
}

func (a *Agent) answerPace() time.Duration {
	a.mu.Lock()
	f := a.pace.Answer
	a.mu.Unlock()
	return drawn(f)
}

func drawn(f func() time.Duration) time.Duration {
	if f == nil {
		return 0
	}
	return f()
}
