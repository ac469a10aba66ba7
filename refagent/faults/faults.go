// Package faults holds the deliberate defects of the reference agents, most of them copied
// from public bug reports. They prove that a rule or a check can fail. A defect of messages is
// a mutation in the table of its protocol; one of what the agent does is code, which works
// through hooks. The correct agent's code knows none of them.
package faults

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/mutation"
	"github.com/acp-test/acp-test/refagent/webagent"
)

// The protocols that there are faults of.
const (
	ACPv1 = "acp-v1"
	ACPv2 = "acp-v2"
	AGUI  = "ag-ui"
	// Network is the transport of both versions of ACP. The topic of each fault is its binding.
	Network = "network"
)

// Fault is one defect.
type Fault struct {
	Name    string // kebab case, unique in its protocol
	Summary string // what the agent does wrong, in plain words
	Topic   string // what it is about: cancel, permission, load, session, race and others
	Copies  string // the public report it copies (owner/repo#number), or ""
	Breaks  string // the requirement that it breaks, where the table names one
	// Effect is what the proof finds in Scenarios and in the ones that it always runs.
	Effect
	// Hangs says that what an editor waits for never comes, so that a run needs
	// a short step timeout.
	Hangs bool
	// Process says that it is about the agent's process: its death, its children, the
	// directory it was started in. Within another process it does not show.
	Process bool
	// Mutation is what it does to messages; it may have no rules.
	Mutation *mutation.Mutation

	acp func() refagent.Hooks // nil for a mutation alone
	web func() webagent.Hooks
}

// Line returns the name, the requirement that the fault breaks if that is known, and the summary.
func (f Fault) Line() (name, requirement, summary string) { return f.Name, f.Breaks, f.Summary }

// Swept reports whether no scenario shows the fault: only a sweep finds it.
func (f Fault) Swept() bool { return slices.Equal(f.Reddens, []string{"-"}) }

//go:embed *.txt
var tables embed.FS

var lists = mutation.Tables(list, ACPv1, ACPv2, AGUI, Network)

// All returns the faults of a protocol in the order of its table, none for an unknown protocol.
func All(protocol string) []Fault { return lists(protocol) }

// Find returns the fault of a protocol that has a name.
func Find(protocol, name string) (Fault, bool) {
	if name == "" { // as most agents are started: the tables need not be read
		return Fault{}, false
	}
	all := All(protocol)
	i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return all[i], true
}

// list reads the table of a protocol.
func list(protocol string) (all []Fault) {
	blocks, err := mutation.Parse(protocol+".txt", table(protocol+".txt"), "copies", "breaks", "hangs", "process")
	if err != nil {
		panic(err) // a test reads the tables
	}
	measured := ReadEffects(table("reddens-" + protocol + ".txt"))
	acp, web := inACP(), inWeb()
	for i := range blocks {
		b := &blocks[i]
		f := Fault{Name: b.Name, Summary: b.Summary, Topic: b.Topic, Copies: b.Says["copies"], Breaks: b.Says["breaks"],
			Hangs: b.Has("hangs"), Process: b.Has("process"), Effect: measured[b.Name], Mutation: &b.Mutation}
		if protocol == ACPv1 {
			f.acp = acp[b.Name]
		} else if protocol == AGUI {
			f.web = web[b.Name]
		}
		all = append(all, f)
	}
	return all
}

func table(name string) string {
	data, err := tables.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(data)
}

// Effect is where one fault shows, and what finds it there.
type Effect struct {
	// Scenarios are the ids of scenarios that show it.
	Scenarios []string
	// Reddens is the exact set of rules (LATE-CONTENT) and checks (scenario#slug) that
	// find it where the proof looks. A name that ends in ? may be missing: whether it is
	// found depends on a race that is the fault's own.
	Reddens []string
}

// ReadEffects returns what a file says of each fault, by name: a line with the name, then one
// with "in" and the scenarios, and one with "reddens" and what finds it. Lines that begin
// with # say nothing.
func ReadEffects(file string) map[string]Effect {
	all := map[string]Effect{}
	name := ""
	for line := range strings.Lines(file) {
		words := strings.Fields(line)
		if len(words) == 0 || line[0] == '#' {
			continue
		}
		e := all[name]
		switch {
		case line[0] != ' ':
			name = words[0]
			continue
		case words[0] == "in":
			e.Scenarios = words[1:]
		default:
			e.Reddens = words[1:]
		}
		all[name] = e
	}
	return all
}

// WriteEffects returns the file that says the same of some faults, in the order of their names
// as given, behind the comment that an older file begins with.
func WriteEffects(older string, names []string, all map[string]Effect) []byte {
	head, _, _ := strings.Cut(older, "\n\n")
	out := bytes.NewBufferString(head + "\n\n")
	for _, name := range names {
		fmt.Fprintf(out, "%s\n  %s\n  %s\n", name,
			strings.Join(append([]string{"in"}, all[name].Scenarios...), " "),
			strings.Join(append([]string{"reddens"}, all[name].Reddens...), " "))
	}
	return out.Bytes()
}
