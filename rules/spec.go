package rules

// Begin starts the state machine of each rule that is not turned off. machines
// maps the id of a rule to the function that starts its state machine. The
// function with makes the argument for it from the Watch of the rule, and may
// add shared state.
func Begin[W any](c *Checker, machines map[string]func(W), with func(*Watch) W) {
	for _, r := range c.set.definition.Rules {
		if w := c.Watch(r); w != nil {
			machines[r.ID](with(w))
		}
	}
}

// Desk passes entries to the functions that subscribed to their topic. T is the
// type of topics, E the type of parsed entries. The zero value has no
// subscribers.
type Desk[T comparable, E any] struct {
	judges map[T][]func(E)
	atEnd  []func(End)
}

// On subscribes judge to each of the topics in about.
func (d *Desk[T, E]) On(judge func(E), about ...T) {
	if d.judges == nil {
		d.judges = map[T][]func(E){}
	}
	for _, t := range about {
		d.judges[t] = append(d.judges[t], judge)
	}
}

// AtEnd subscribes judge to the end of the transcript.
func (d *Desk[T, E]) AtEnd(judge func(End)) { d.atEnd = append(d.atEnd, judge) }

// Tell calls the subscribers of the topic about, in the order of their
// subscription.
func (d *Desk[T, E]) Tell(about T, e E) {
	for _, judge := range d.judges[about] {
		judge(e)
	}
}

// Finish calls the functions that AtEnd subscribed.
func (d *Desk[T, E]) Finish(end End) {
	for _, judge := range d.atEnd {
		judge(end)
	}
}

// Entry returns the value of a key. If the map lacks the key, Entry adds a new
// zero value and returns it.
func Entry[K comparable, V any](m map[K]*V, key K) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

// Seen is a set of names that detects repetitions.
type Seen map[string]bool

// Again adds a name, and reports whether the set already had it.
func (s Seen) Again(name string) bool {
	before := s[name]
	s[name] = true
	return before
}

// Remember sets a key of a map that may have at most most keys. Once the map is
// full, it ignores new keys.
func Remember[K comparable, V any](m map[K]V, most int, key K, value V) {
	if _, known := m[key]; known || len(m) < most {
		m[key] = value
	}
}
