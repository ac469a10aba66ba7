// Package liberties holds the behaviours in which a correct agent may differ from
// the reference agents. Each such liberty is a block in the table of its
// protocol. Any set of them leaves the agent correct. They prove that no rule or
// check blames an agent for such a difference.
package liberties

import (
	"embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/mutation"
	"github.com/acp-test/acp-test/refagent/webagent"
)

// Liberty is one behaviour in which a correct agent may differ.
type Liberty struct {
	Name    string // kebab case, unique in its protocol
	Alias   string // the name that it had before, or ""
	Summary string // the agent's behaviour, in plain words
	// Allows are the ids of the requirements that leave this behaviour open or,
	// if the specification is silent, of the nearest ones.
	Allows string
	// Takes names the feature that an editor lacks with such an agent, in words
	// that occur in the reason of a skipped scenario; "" if none.
	Takes string
	// Topic groups liberties of which one agent can have at most one.
	Topic string
	// Learns says that the agent's tools differ from its profile, so the model
	// server must learn them.
	Learns bool
	// Slow says that a run with it takes seconds longer.
	Slow bool
	// Mutation is the change of messages; it may have no rules.
	Mutation *mutation.Mutation

	habits, choices []byte // JSON; nil: none
	code            func(h *refagent.Habits)
}

// Line returns the name, the requirements that leave the liberty open, and the summary.
func (l Liberty) Line() (name, requirement, summary string) { return l.Name, l.Allows, l.Summary }

const (
	mostGiving = 12 // maximum number in a drawn set of liberties with no Takes
	mostTaking = 5  // maximum number in a drawn set of liberties with Takes
)

// Draw divides all liberties of version 1 of ACP into random sets. A set has at
// most one of each topic, and few that take something from an editor. Slow
// liberties are included only if slow is set, at most one in each set.
func Draw(r *rand.Rand, slow bool) (sets [][]Liberty) {
	all := slices.DeleteFunc(All("acp-v1"), func(l Liberty) bool { return l.Slow && !slow })
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, l := range all {
		if i := slices.IndexFunc(sets, l.fits); i >= 0 {
			sets[i] = append(sets[i], l)
		} else {
			sets = append(sets, []Liberty{l})
		}
	}
	return sets
}

// fits reports whether the set can have this liberty too.
func (l Liberty) fits(set []Liberty) bool {
	takers := 0
	for _, o := range set {
		if o.Topic != "" && o.Topic == l.Topic || o.Slow && l.Slow {
			return false
		}
		if o.Takes != "" {
			takers++
		}
	}
	if l.Takes == "" {
		return len(set)-takers < mostGiving
	}
	return takers < mostTaking
}

// Network names the liberties of a server, in any version of ACP. The topic of
// each is its transport binding.
const Network = "network"

//go:embed *.txt
var tables embed.FS

var lists = mutation.Tables(list, "acp-v1", "acp-v2", "ag-ui", Network)

// All returns the liberties of a protocol in the order of its table, none for an unknown one.
func All(protocol string) []Liberty { return lists(protocol) }

// Find returns the liberties of a protocol with these names, or the first unknown
// name.
func Find(protocol string, names ...string) (taken []Liberty, unknown string) {
	if len(names) == 0 {
		return nil, ""
	}
	all := All(protocol)
	for _, name := range names {
		i := slices.IndexFunc(all, func(l Liberty) bool { return l.Name == name || l.Alias == name && name != "" })
		if i < 0 {
			return nil, name
		}
		taken = append(taken, all[i])
	}
	return taken, ""
}

// list reads the table of a protocol.
func list(protocol string) (all []Liberty) {
	text, err := tables.ReadFile(protocol + ".txt")
	if err != nil {
		panic(err) // it is embedded
	}
	if all, err = Parse(protocol+".txt", string(text)); err != nil {
		panic(err) // a test reads the tables
	}
	return all
}

// Parse reads a table. Errors name file, line and column.
func Parse(name, text string) (all []Liberty, err error) {
	blocks, err := mutation.Parse(name, text, "allows", "takes", "slow", "learns", "habits", "choices", "alias")
	own := code()
	for i := range blocks {
		b := &blocks[i]
		all = append(all, Liberty{Name: b.Name, Alias: b.Says["alias"], Summary: b.Summary, Topic: b.Topic,
			Allows: b.Says["allows"], Takes: b.Says["takes"], Slow: b.Has("slow"), Learns: b.Has("learns"),
			Mutation: &b.Mutation,
			habits:   []byte(b.Says["habits"]), choices: []byte(b.Says["choices"]), code: own[b.Name]})
	}
	return all, err
}

// Habits returns the habits of an ACP agent that takes liberties. They keep
// state, so use them for one run only.
func Habits(taken []Liberty) refagent.Habits {
	var h refagent.Habits
	for _, l := range taken {
		lacks := h.Without
		h.Without = nil
		l.set(&h)
		h.Without = append(lacks, h.Without...) // no liberty restores a capability that another removes
		if l.code != nil {
			l.code(&h)
		}
		if len(l.choices) > 0 {
			h.Changes = append(h.Changes, choose(l.choices))
		}
		if !l.Mutation.Empty() {
			h.Changes = append(h.Changes, playing(l.Mutation.Player()))
		}
	}
	return h
}

// Web returns the habits of an AG-UI server that takes liberties.
func Web(taken []Liberty) webagent.Habits {
	var h webagent.Habits
	for _, l := range taken {
		l.set(&h)
	}
	return h
}

// set sets the habits of a liberty in habits, over those already there.
func (l Liberty) set(habits any) {
	if len(l.habits) == 0 {
		return
	}
	if err := json.Unmarshal(l.habits, habits); err != nil {
		panic(fmt.Errorf("the habits of %s: %w", l.Name, err)) // a test reads the tables
	}
}

// playing returns a mutation as a habit.
func playing(p *mutation.Player) refagent.Change {
	from := func(side mutation.Side) func(m refagent.Message) []refagent.Message {
		return func(m refagent.Message) (list []refagent.Message) {
			for _, out := range p.PlayMessage(side, m, nil) {
				list = append(list, out.Message)
			}
			return list
		}
	}
	return refagent.Change{Out: from(mutation.Agent), In: from(mutation.Client)}
}
