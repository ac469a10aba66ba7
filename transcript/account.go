package transcript

import "iter"

// note keeps account of an entry that is about to be stored.
func (t *Transcript) note(e Entry) {
	t.agents.note(e)
	t.links.note(e)
	if e.Source == Note && e.Kind == Places {
		t.places = append(t.places, e.Seq)
	}
}

// Places yields the entries of kind Places, without reading the others.
func (t *Transcript) Places() iter.Seq[Entry] {
	t.mu.Lock()
	places := t.places
	t.mu.Unlock()
	return func(yield func(Entry) bool) {
		for _, seq := range places {
			if !yield(t.At(seq)) {
				return
			}
		}
	}
}

// agents keeps account of the agents that run, so that waiting ends with the
// last of them.
type agents struct {
	running map[int]struct{} // by connection
	exited  bool
}

func (a *agents) note(e Entry) {
	if e.Source != Process {
		return
	}
	switch e.Kind {
	case Started:
		if a.running == nil {
			a.running = map[int]struct{}{}
		}
		a.running[e.Conn] = struct{}{}
	case Exited:
		delete(a.running, e.Conn)
		a.exited = true
	}
}

// gone reports whether an agent has exited and none runs.
func (a *agents) gone() bool { return a.exited && len(a.running) == 0 }
