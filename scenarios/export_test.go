package scenarios

import (
	"context"
	"net"
	"time"
)

// Outlet is an address behind which one server after the other stands.
func Outlet() (url string, lend func() net.Listener, err error) {
	o, err := newOutlet()
	if err != nil {
		return "", nil, err
	}
	return o.url(), o.lend, nil
}

// Silence is silence, for its test.
var Silence = silence

// UntilAsked is untilAsked, for its test.
var UntilAsked = untilAsked

// Guarded plays one line that calls f, and returns what becomes of it.
func Guarded(f func()) error {
	line := func(context.Context, *Branch) error { f(); return nil }
	return (&Branch{run: &run{}}).play(context.Background(), []played{{Do: line}})
}

// NeedsTools are the neutral tools that the scenario needs, with what they have to be
// able to do.
func NeedsTools(s *Scenario) (tools []string) {
	for _, n := range s.Needs {
		if n.What == "tool" {
			tools = append(tools, n.Name)
		}
	}
	return tools
}

// LeakTime sets how long leaks are traced, and returns what sets it back.
func LeakTime(d time.Duration) (back func()) {
	was := leakTime
	leakTime = d
	return func() { leakTime = was }
}

// ShortestDoubt sets how long a doubted wait may take at least, and returns what sets it back.
func ShortestDoubt(d time.Duration) (back func()) {
	was := shortestDoubt
	shortestDoubt = d
	return func() { shortestDoubt = was }
}

// Resting sets how long an agent rests before nothing more is expected of it, and returns what sets it back.
func Resting(d time.Duration) (back func()) {
	was := resting
	resting = d
	return func() { resting = was }
}
