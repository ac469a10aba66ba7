// Package sabotage simulates faults in any agent by changing the messages between the editor and the agent. This
// tests whether a run finds the fault. The mutations are in mutations.txt.
package sabotage

import (
	_ "embed" // the table
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/refagent/mutation"
)

//go:embed mutations.txt
var table string

// Mutation is one change of an agent's messages: a fault, or a legal variation.
type Mutation struct {
	mutation.Block
	// Breaks is the id of the requirement that the mutation breaks. It is "" if
	// no requirement covers the change.
	Breaks string
	// Legal is true if an agent with this change is still correct.
	Legal bool
	// Live is true if the mutation can be tested only in a live run and not on a log, because the agent itself gets
	// or does something different.
	Live bool
	// Held is true if the mutation's author did not look at the rules and scenarios that find it.
	Held bool
}

var all = sync.OnceValues(func() ([]Mutation, error) { return parse("mutations.txt", table) })

// All returns the mutations in the order of the table.
func All() []Mutation {
	list, err := all()
	if err != nil {
		panic(err) // cannot happen: a test reads the embedded table
	}
	return slices.Clone(list)
}

func Names() []string { return names(All()) }

func names(list []Mutation) []string {
	return lists.Map(list, func(m Mutation) string { return m.Name })
}

func parse(name, text string) (list []Mutation, err error) {
	blocks, err := mutation.Parse(name, text, "breaks", "told", "legal", "live", "held")
	for _, b := range blocks {
		if b.Empty() {
			return nil, fmt.Errorf("%s: %s changes nothing: it lacks a rule, such as <-- update plan", name, b.Name)
		}
		list = append(list, Mutation{Block: b, Breaks: b.Says["breaks"], Legal: b.Has("legal"), Live: b.Has("live"),
			Held: b.Has("held")})
	}
	return list, err
}

// Find returns the mutation called name. A name that is not in the table must be FILE:NAME, or the path of a file
// with only one mutation.
func Find(name string) (m Mutation, err error) {
	if m, ok := lists.Find(All(), func(m Mutation) bool { return m.Name == name }); ok {
		return m, nil
	}
	file, which, _ := strings.Cut(name, ":")
	text, err := os.ReadFile(file)
	if err != nil {
		return m, fmt.Errorf("%q is neither a mutation of acp-test help sabotage%s nor a file that can be read", name,
			mistake.Meant(name, Names()))
	}
	list, err := parse(file, string(text))
	if err != nil {
		return m, err
	}
	if which == "" && len(list) == 1 {
		return list[0], nil
	}
	m, ok := lists.Find(list, func(m Mutation) bool { return m.Name == which })
	if !ok {
		return m, fmt.Errorf("%s has the mutations %s: name one of them, as in %s:%s", file,
			strings.Join(names(list), ", "), file, list[0].Name)
	}
	return m, nil
}
