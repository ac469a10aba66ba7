// Package liberties contains behaviours in which a correct agent may differ from the reference agents. Each such
// liberty is a block in the table of its protocol. An agent with any set of liberties is correct. The liberties prove
// that no rule or check reports an agent for such a difference.
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
	Name    string // kebab case, unique in the liberty's protocol
	Alias   string // the liberty's former name, or ""
	Summary string // the agent's behaviour, in plain words
	// Allows contains the ids of the requirements that permit this behaviour. If the specification is silent, it
	// contains the ids of the closest requirements.
	Allows string
	// Takes names the feature that such an agent does not offer, in words that occur in the reasons of skipped
	// scenarios; "" if it offers everything.
	Takes string
	// Topic is a group of liberties. One agent can have at most one liberty of a group; "" means no group.
	Topic string
	// Learns is true if the agent's tools differ from its profile, so that the model server must learn them.
	Learns bool
	// Slow is true if a run with this liberty takes several seconds longer.
	Slow bool
	// Mutation is the change of messages. It has no rules if the liberty changes no messages.
	Mutation *mutation.Mutation

	habits, choices []byte // JSON; nil means none
	code            func(h *refagent.Habits)
}

// Line returns the liberty's name, the requirements that permit it, and its summary.
func (l Liberty) Line() (name, requirement, summary string) { return l.Name, l.Allows, l.Summary }

const (
	mostGiving = 12 // maximum number of liberties without Takes in a set
	mostTaking = 5  // maximum number of liberties with Takes in a set
)

// Draw divides all liberties of version 1 of ACP into random sets. A set has at most one liberty of each topic, at
// most mostGiving without Takes and at most mostTaking with Takes. Slow liberties are included only if slow is set,
// at most one per set.
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

// fits reports whether the liberty can be added to the set.
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

// Network stands for the liberties of an ACP server, in any version of ACP. The topic of each is its transport
// binding.
const Network = "network"

//go:embed *.txt
var tables embed.FS

var lists = mutation.Tables(list, "acp-v1", "acp-v2", "ag-ui", Network)

// All returns the liberties of a protocol in the order of its table, or nil for an unknown protocol.
func All(protocol string) []Liberty { return lists(protocol) }

// Find returns the liberties of a protocol that have these names or aliases. If a name is unknown, it returns the
// first unknown name instead.
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

// list reads the liberties of a protocol from its table.
func list(protocol string) (all []Liberty) {
	text, err := tables.ReadFile(protocol + ".txt")
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	if all, err = Parse(protocol+".txt", string(text)); err != nil {
		panic(err) // cannot happen: a test reads all tables
	}
	return all
}

// Parse reads a table of liberties. Errors contain the file's name, the line and the column.
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

// Habits returns the habits of an ACP agent with the given liberties. The result contains state, so it must be used
// for only one run.
func Habits(taken []Liberty) refagent.Habits {
	var h refagent.Habits
	for _, l := range taken {
		lacks := h.Without
		h.Without = nil
		l.set(&h)
		h.Without = append(lacks, h.Without...) // a missing capability stays missing
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

// Web returns the habits of an AG-UI server with the given liberties.
func Web(taken []Liberty) webagent.Habits {
	var h webagent.Habits
	for _, l := range taken {
		l.set(&h)
	}
	return h
}

// set stores a liberty's habits in the struct habits. Other fields keep their values.
func (l Liberty) set(habits any) {
	if len(l.habits) == 0 {
		return
	}
	if err := json.Unmarshal(l.habits, habits); err != nil {
		panic(fmt.Errorf("the habits of %s: %w", l.Name, err)) // cannot happen: a test reads all tables
	}
}

// playing returns a change that applies a mutation.
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
