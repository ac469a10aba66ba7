package transport

// holder is a Process that can be paused. A process of the system is stopped with
// its group; for an agent within this process, only its input waits.
type holder interface {
	Hold() error
	GoOn() error
}

// Hold pauses the agent until goOn is called; the agent then finds everything
// done meanwhile at once. For an agent without a process it returns ErrNoProcess.
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

// Hold makes the agent's reads wait.
func (l *local) Hold() error { l.in.hold(true); return nil }

// GoOn ends Hold.
func (l *local) GoOn() error { l.in.hold(false); return nil }

// hold makes reads wait until it is called with false.
func (m *memory) hold(held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = held
	m.cond.Broadcast()
}
