package transport

// holder is a Process that can be made to stand still. A process of the system is
// stopped with its group; of an agent within this process, only the input waits.
type holder interface {
	Hold() error
	GoOn() error
}

// Hold makes the agent stand still until goOn is called, so that it finds all that was
// done meanwhile at once. An agent without a process is ErrNoProcess.
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
	a.note(note{Code: "held", Text: "the agent stands still"})
	return func() error {
		a.note(note{Code: "goes-on", Text: "the agent goes on"})
		return h.GoOn()
	}, nil
}

// Hold makes reading wait.
func (l *local) Hold() error { l.in.hold(true); return nil }

// GoOn ends Hold.
func (l *local) GoOn() error { l.in.hold(false); return nil }

// hold makes reads wait, or go on.
func (m *memory) hold(held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = held
	m.cond.Broadcast()
}
