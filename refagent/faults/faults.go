// Package faults holds deliberate defects of the reference agent, one value
// each, most of them copied from public bug reports. They prove that a rule or
// a check can fail. Each works through refagent.Hooks alone: the correct
// agent's code knows none of them.
package faults

import (
	_ "embed"
	"slices"
	"sync"

	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/effects"
)

//go:embed reddens.txt
var reddens string

// measured are what the proof has measured, by fault.
var measured = sync.OnceValue(func() map[string]effects.Effect { return effects.Read(reddens) })

// Fault is one defect.
type Fault struct {
	Name    string // kebab case, unique
	Summary string // what the agent does wrong, in plain words
	Topic   string // what it is about: cancel, permission, load, session, race and others
	Copies  string // the public report it copies (owner/repo#number), or ""
	// Hooks makes fresh hooks for one run of the agent.
	Hooks func() refagent.Hooks
	// Effect is what the proof finds in Scenarios and in the ten that it always runs.
	effects.Effect
	// Hangs says that what an editor waits for never comes, so that a run needs
	// a short step timeout.
	Hangs bool
	// Process says that it is about the agent's process: its death, its children, the
	// directory it was started in. Within another process it does not show.
	Process bool
}

// fault begins a fault; copies, hangs and process say more of it.
func fault(name, summary string, hooks func() refagent.Hooks) Fault {
	return Fault{Name: name, Summary: summary, Hooks: hooks}
}

func (f Fault) copies(report string) Fault {
	f.Copies = report
	return f
}

func (f Fault) hangs() Fault {
	f.Hangs = true
	return f
}

func (f Fault) process() Fault {
	f.Process = true
	return f
}

// Swept reports whether no scenario shows the fault: only a sweep finds it.
func (f Fault) Swept() bool { return slices.Equal(f.Reddens, []string{"-"}) }

// All lists the faults by topic.
func All() []Fault {
	var all []Fault
	for _, t := range []struct {
		topic string
		list  []Fault
	}{
		{"cancel", cancelFaults()}, {"turn", turnFaults()}, {"setup", setupFaults()}, {"tool", toolFaults()},
		{"permission", permissionFaults()}, {"load", loadFaults()}, {"session", sessionFaults()}, {"list", listFaults()},
		{"transport", transportFaults()}, {"error", errorFaults()}, {"file", fileFaults()}, {"terminal", terminalFaults()},
		{"capability", capabilityFaults()}, {"mode", modeFaults()}, {"update", updateFaults()},
		{"elicitation", elicitationFaults()}, {"narrow", narrowFaults()}, {"stale", staleFaults()},
		{"reported", reportedFaults()}, {"race", raceFaults()}, {"kept", keptFaults()}, {"fork", forkFaults()},
		{"opening", openingFaults()},
	} {
		for _, f := range t.list {
			f.Topic = t.topic
			all = append(all, f)
		}
	}
	for i, f := range all {
		all[i].Effect = measured()[f.Name]
	}
	return all
}

// Find returns the fault of a name.
func Find(name string) (Fault, bool) {
	all := All()
	i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return all[i], true
}
