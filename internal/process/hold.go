package process

import "errors"

// stand stops a process with its group, so that it stands still until goOn.
func stand(p Process) error {
	if stopSignal == 0 {
		return errors.New("a process cannot be made to stand still on this system")
	}
	return p.Signal(stopSignal, true)
}

func goOn(p Process) error { return p.Signal(goOnSignal, true) }

// Hold makes the agent stand still until GoOn.
func (k *kept) Hold() error { return stand(k) }

// GoOn ends Hold.
func (k *kept) GoOn() error { return goOn(k) }

// Hold makes the agent stand still until GoOn.
func (b *bare) Hold() error { return stand(b) }

// GoOn ends Hold.
func (b *bare) GoOn() error { return goOn(b) }
