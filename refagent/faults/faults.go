// Package faults holds the deliberate defects of the reference agents, most of
// them copied from public bug reports. They prove that a rule or a check can
// fail. A defect of messages is a mutation in the table of its protocol. A defect
// of the agent's behaviour is code that works through hooks. The correct agent's
// code knows none of them.
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

// The protocols that have faults.
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
	Summary string // the agent's wrong behaviour, in plain words
	Topic   string // its subject: cancel, permission, load, session, race and others
	Copies  string // the public report it copies (owner/repo#number), or ""
	Breaks  string // the requirement that it breaks, where the table names one
	// Effect says what finds the fault in Scenarios and in the scenarios that
	// the proof always runs.
	Effect
	// Hangs says that the editor waits for something that never comes, so that a
	// run needs a short step timeout.
	Hangs bool
	// Process says that the fault is about the agent's process: its death, its
	// children, its working directory. It does not show if the agent runs inside
	// another process.
	Process bool
	// Mutation is the change of messages; it may have no rules.
	Mutation *mutation.Mutation

	acp func() refagent.Hooks // nil for a mutation alone
	web func() webagent.Hooks
}

// Line returns the name, the broken requirement if it is known, and the summary.
func (f Fault) Line() (name, requirement, summary string) { return f.Name, f.Breaks, f.Summary }

// Swept reports whether only a sweep finds the fault, because no scenario shows
// it.
func (f Fault) Swept() bool { return slices.Equal(f.Reddens, []string{"-"}) }

//go:embed *.txt
var tables embed.FS

var lists = mutation.Tables(list, ACPv1, ACPv2, AGUI, Network)

// All returns the faults of a protocol in the order of its table, none for an unknown protocol.
func All(protocol string) []Fault { return lists(protocol) }

// Find returns the fault of a protocol with a name.
func Find(protocol, name string) (Fault, bool) {
	if name == "" { // most agents start without a fault: do not read the tables
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
		panic(err) // impossible: a test reads the tables
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
		panic(err) // impossible: the file is embedded
	}
	return string(data)
}

// Effect is where one fault shows, and which rules and checks find it.
type Effect struct {
	// Scenarios are the ids of scenarios that show the fault.
	Scenarios []string
	// Reddens is the exact set of rules (LATE-CONTENT) and checks (scenario#slug)
	// that find the fault where the proof looks. A name that ends in ? may be
	// missing, because finding it depends on a race in the fault.
	Reddens []string
}

// ReadEffects returns the effects of faults in a file, by name. For each fault
// the file has a line with the name, one with "in" and the scenarios, and one
// with "reddens" and the rules and checks. Lines that begin with # are comments.
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

// WriteEffects returns such a file for the faults in names, in this order. It
// begins with the opening comment of the older file.
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
