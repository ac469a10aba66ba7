// Package faults contains deliberate defects of the reference agents, most of them copied from public bug reports.
// They prove that a rule or a check can fail. A defect in messages is a mutation in the table of its protocol. A
// defect in the agent's behaviour is code that uses hooks. The code of the correct agent contains none of the
// defects.
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

// The protocols for which there are faults.
const (
	ACPv1 = "acp-v1"
	ACPv2 = "acp-v2"
	AGUI  = "ag-ui"
	// Network stands for ACP over the network, in both versions. The topic of each of its faults is the binding: http
	// or ws.
	Network = "network"
)

// Fault is one defect.
type Fault struct {
	Name    string // kebab case, unique in the fault's protocol
	Summary string // the agent's wrong behaviour, in plain words
	Topic   string // subject: cancel, permission, load, session, race and others
	Copies  string // public report that it copies (owner/repo#number), or ""
	Breaks  string // id of the requirement that it breaks; "" if the table has none
	// Effect lists the rules and checks that find the fault, in Scenarios and in the scenarios that the proof always
	// runs.
	Effect
	// Hangs is true if the fault makes the editor wait for something that never arrives. A run of it then needs a
	// short step timeout.
	Hangs bool
	// Process is true if the fault concerns the agent's process, such as its death, its children or its working
	// directory. Such a fault has no effect if the agent runs inside another process.
	Process bool
	// Mutation is the change of messages. It has no rules if the fault is only code.
	Mutation *mutation.Mutation

	acp func() refagent.Hooks // nil if the fault is only a mutation
	web func() webagent.Hooks
}

// Line returns the fault's name, the id of the requirement that it breaks ("" if unknown), and its summary.
func (f Fault) Line() (name, requirement, summary string) { return f.Name, f.Breaks, f.Summary }

// Swept reports whether only a sweep finds the fault, because no single scenario shows it.
func (f Fault) Swept() bool { return slices.Equal(f.Reddens, []string{"-"}) }

//go:embed *.txt
var tables embed.FS

var lists = mutation.Tables(list, ACPv1, ACPv2, AGUI, Network)

// All returns the faults of a protocol in the order of its table, or nil for an unknown protocol.
func All(protocol string) []Fault { return lists(protocol) }

// Find returns the fault with a name, from the table of a protocol. ok is false if there is none.
func Find(protocol, name string) (Fault, bool) {
	if name == "" { // most agents run without a fault: skip the tables
		return Fault{}, false
	}
	all := All(protocol)
	i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return all[i], true
}

// list reads the faults of a protocol from its table.
func list(protocol string) (all []Fault) {
	blocks, err := mutation.Parse(protocol+".txt", table(protocol+".txt"), "copies", "breaks", "hangs", "process")
	if err != nil {
		panic(err) // cannot happen: a test reads all tables
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
		panic(err) // cannot happen: the file is embedded
	}
	return string(data)
}

// Effect lists where one fault shows, and which rules and checks find it.
type Effect struct {
	// Scenarios contains the ids of the scenarios that show the fault.
	Scenarios []string
	// Reddens is the exact set of rules (LATE-CONTENT) and checks (scenario#slug) that find the fault in the
	// scenarios of the proof. If a name ends in ?, the finding may be missing in some runs, because it depends on a
	// race.
	Reddens []string
}

// ReadEffects parses a file of effects and returns the effects by the fault's name. For each fault, the file has
// three lines: the name, "in" with the scenarios, and "reddens" with the rules and checks. Lines that begin with #
// are comments.
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

// WriteEffects returns a file of effects for the faults in names, in this order. The comment at the beginning of the
// older file is kept.
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
