// Package liberties holds what another correct agent does differently from the
// reference agent, and may: one value each. Any set of them leaves the reference
// agent correct. They prove that a rule or a check blames no agent for the habits
// of another.
package liberties

import (
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/refagent"
)

// Liberty is one thing that is done differently.
type Liberty struct {
	Name    string // kebab case, unique
	Summary string // what the agent does, in plain words
	// Allows are the ids of the requirements that leave it open; where the
	// specification is silent, of the nearest ones.
	Allows string
	// Takes is what an editor cannot do or see with such an agent, in words that
	// the reason of a skipped scenario has; "" if nothing.
	Takes string
	// Topic is shared by those of which one agent has at most one.
	Topic string
	// Learns says that the tools of the agent are not those of its profile.
	Learns bool
	// Slow says that it costs seconds.
	Slow bool

	set func(h *habits)
}

type habits = refagent.Habits

const (
	mostGiving = 12 // so many has an agent that is drawn, of those that take nothing away
	mostTaking = 5  // and so many of those that do
)

// Draw makes sets of all liberties: of each topic at most one, and few of those that take
// something away. The slow ones are in them if they are asked for, one at most in each.
func Draw(r *rand.Rand, slow bool) (sets [][]Liberty) {
	all := slices.DeleteFunc(All(), func(l Liberty) bool { return l.Slow && !slow })
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
next:
	for _, l := range all {
		for i, set := range sets {
			if l.fits(set) {
				sets[i] = append(set, l)
				continue next
			}
		}
		sets = append(sets, []Liberty{l})
	}
	return sets
}

// fits reports whether an agent that takes a set can take one more.
func (l Liberty) fits(set []Liberty) bool {
	takers, slows := 0, 0
	for _, o := range set {
		if o.Topic != "" && o.Topic == l.Topic {
			return false
		}
		if o.Takes != "" {
			takers++
		}
		if o.Slow {
			slows++
		}
	}
	if l.Takes == "" && len(set)-takers >= mostGiving || l.Takes != "" && takers >= mostTaking {
		return false
	}
	return !l.Slow || slows == 0
}

// of makes liberties of one topic; "" leaves each its own.
func of(topic string, list ...Liberty) []Liberty {
	for i := range list {
		list[i].Topic = topic
	}
	return list
}

func liberty(name, summary, allows string, set func(h *habits)) Liberty {
	return Liberty{Name: name, Summary: summary, Allows: allows, set: set}
}

func (l Liberty) takes(what string) Liberty {
	l.Takes = what
	return l
}

func (l Liberty) learned() Liberty {
	l.Learns = true
	return l
}

func (l Liberty) slow() Liberty {
	l.Slow = true
	return l
}

// All lists the liberties by topic.
func All() []Liberty {
	return slices.Concat(toolLiberties(), permissionLiberties(), fileLiberties(), modeLiberties(),
		capabilityLiberties(), messageLiberties(), stateLiberties(), modelLiberties(), turnLiberties())
}

// Find returns the liberty of a name.
func Find(name string) (Liberty, bool) {
	all := All()
	i := slices.IndexFunc(all, func(l Liberty) bool { return l.Name == name })
	if i < 0 {
		return Liberty{}, false
	}
	return all[i], true
}

// Habits are those of an agent that takes liberties. They are good for one run.
func Habits(list []Liberty) refagent.Habits {
	var h refagent.Habits
	for _, l := range list {
		l.set(&h)
	}
	return h
}
