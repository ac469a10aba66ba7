package rules

// Begin begins the state machines of the rules that are on in a checker, by the ids of the rules;
// with adds to a Watch what they share. W is what a state machine works with.
func Begin[W any](c *Checker, machines map[string]func(W), with func(*Watch) W) {
	for _, r := range c.set.definition.Rules {
		if w := c.Watch(r); w != nil {
			machines[r.ID](with(w))
		}
	}
}

// Desk tells state machines what they asked to hear. T is what an entry is about, E an entry
// taken apart. The zero value has no listeners.
type Desk[T comparable, E any] struct {
	judges map[T][]func(E)
	atEnd  []func(End)
}

// On calls judge for each entry about one of the topics.
func (d *Desk[T, E]) On(judge func(E), about ...T) {
	if d.judges == nil {
		d.judges = map[T][]func(E){}
	}
	for _, t := range about {
		d.judges[t] = append(d.judges[t], judge)
	}
}

// AtEnd calls judge at the end of the transcript.
func (d *Desk[T, E]) AtEnd(judge func(End)) { d.atEnd = append(d.atEnd, judge) }

// Tell calls the judges of a topic, in the order in which they asked.
func (d *Desk[T, E]) Tell(about T, e E) {
	for _, judge := range d.judges[about] {
		judge(e)
	}
}

// Finish calls the judges of the end.
func (d *Desk[T, E]) Finish(end End) {
	for _, judge := range d.atEnd {
		judge(end)
	}
}

// Entry returns the value of a key, a new one where there was none.
func Entry[K comparable, V any](m map[K]*V, key K) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

// Seen is a set of names that tells which of them come again.
type Seen map[string]bool

// Again adds a name, and reports whether it was there.
func (s Seen) Again(name string) bool {
	before := s[name]
	s[name] = true
	return before
}

// Remember adds to a map that holds at most a number of keys: what comes after that is not
// remembered.
func Remember[K comparable, V any](m map[K]V, most int, key K, value V) {
	if _, known := m[key]; known || len(m) < most {
		m[key] = value
	}
}
