package language

import (
	"slices"

	"github.com/acp-test/acp-test/transcript"
)

// kinds returns the kinds of patterns by their names.
func (d *Dialect[B]) kinds() map[string]*Kind {
	all := map[string]*Kind{}
	for _, k := range slices.Concat(d.Kinds, d.AnyKinds) {
		for _, name := range append([]string{k.Name}, k.Aliases...) {
			all[name] = &k
		}
	}
	return all
}

// Kind is a kind of pattern.
type Kind struct {
	// Name is its first word, Arg what follows ("" nothing, "?" what need not
	// follow, "REF" the name of a line that sent a request), Help what it looks for.
	Name, Arg, Help string
	// Aliases are other names.
	Aliases []string
	// Events are the arguments it takes, as events of Of; nil takes any.
	Events []string
	Of     string
	// Match reports whether an entry is of the kind. own is false if the entry
	// is of another session than the pattern.
	Match func(x Bound, e transcript.Entry, own bool) bool
	// Inner: it can only come before the end of the turn. Opens: without it, the
	// lines after it have no situation to judge. Effect: it is about an effect or
	// an end. Outlives: it may come after the end of the agent.
	// Answered: "after" counts from the answer on.
	Inner, Opens, Effect, Outlives, Answered bool
	// Alone: a scenario with it needs a process of the agent that no other used.
	Alone bool

	// InnerArg reports whether Inner and Opens hold for an argument; nil: for none.
	InnerArg func(arg string) bool
}

// OfRequest reports whether the argument names the request that the pattern is about: what
// comes of it is looked for from there on.
func (k *Kind) OfRequest() bool { return k.Arg == "REF" }

// Bound is what a pattern asks of an entry, with its variables replaced.
type Bound struct {
	// Arg is the argument of its kind, or "".
	Arg string
	// Session is the id of the session that it is about; "" is any.
	Session string
	// Ref is the Seq of the request that it names.
	Ref int
	// Over are the prompts whose turns have ended: a second answer to one ends
	// no other.
	Over []int
}
