package transport

// holder is a Process that can be paused. A process of the system is stopped
// together with its group. For an agent within this process, only reads of its
// input wait.
type holder interface {
	Hold() error
	GoOn() error
}

// Hold pauses the agent until goOn is called. The agent then finds everything
// that was done in between at once. If the agent cannot be paused, Hold returns
// ErrNoProcess.
func (a *Agent) Hold() (goOn func() error, err error) {
	if _, gone := a.Exit(); gone {
		return nil, ErrExited
	}
	h, ok := a.o.Process.(holder)
	if !ok {
		return nil, ErrNoProcess
	}
	if err := h.Hold(); err != nil {
		return nil, err
	}
	a.note(note{Code: "held", Text: "the agent is paused"})
	return func() error {
		a.note(note{Code: "goes-on", Text: "the agent is resumed"})
		return h.GoOn()
	}, nil
}

// Hold makes the agent's reads wait until GoOn is called.
func (l *local) Hold() error { l.in.hold(true); return nil }

// GoOn lets the agent's reads continue.
func (l *local) GoOn() error { l.in.hold(false); return nil }

// hold makes reads wait if held is true, and lets them continue if it is false.
func (m *memory) hold(held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = held
	m.cond.Broadcast()
}
