package webagent

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"github.com/acp-test/acp-test/refagent/effects"
)

// Fault is one deliberate defect.
type Fault struct {
	Name    string // kebab case, unique
	Summary string // what the agent does wrong, in plain words
	// Copies is the public report that it copies (owner/repo#number), or "".
	Copies string
	// Hooks makes fresh hooks for one server.
	Hooks func() Hooks
	effects.Effect
}

//go:embed reddens.txt
var reddens string

// measured are what the proof has measured, by fault.
var measured = sync.OnceValue(func() map[string]effects.Effect { return effects.Read(reddens) })

// Faults lists all faults.
func Faults() []Fault {
	all := slices.Concat(runFaults(), textFaults(), toolFaults(), stateFaults(), httpFaults(), stopFaults())
	for i := range all {
		all[i].Effect = measured()[all[i].Name]
	}
	return all
}

// Take gives the server a fault and liberties, by their names.
func (o *Options) Take(fault string, liberties []string) error {
	if fault != "" {
		i := slices.IndexFunc(Faults(), func(f Fault) bool { return f.Name == fault })
		if i < 0 {
			return fmt.Errorf("--fault: there is no fault %q of the AG-UI agent: acp-test refagent --ag-ui= --faults "+
				"lists them", fault)
		}
		o.Hooks = Faults()[i].Hooks()
	}
	for _, name := range liberties {
		i := slices.IndexFunc(Liberties(), func(l Liberty) bool { return l.Name == name })
		if i < 0 {
			return fmt.Errorf("--liberty: there is no liberty %q of the AG-UI agent: acp-test refagent --ag-ui= "+
				"--liberties lists them",
				name)
		}
		Liberties()[i].set(&o.Habits)
	}
	return nil
}

func fault(name, copies, summary string, hooks func() Hooks) Fault {
	return Fault{Name: name, Summary: summary, Copies: copies, Hooks: hooks}
}

// sends is a fault of what is sent.
func sends(f func(p *Port, e Event)) func() Hooks {
	return func() Hooks { return Hooks{Send: f} }
}

// instead sends other events in the place of those of a type.
func instead(kind string, f func(p *Port, e Event) []Event) func() Hooks {
	return sends(func(p *Port, e Event) {
		if e.Type() != kind {
			p.Emit(e)
			return
		}
		for _, e := range f(p, e) {
			p.Emit(e)
		}
	})
}

// dropping sends no events of some types.
func dropping(kinds ...string) func() Hooks {
	return sends(func(p *Port, e Event) {
		if !slices.Contains(kinds, e.Type()) {
			p.Emit(e)
		}
	})
}

// once is instead for the first event of a type in each run.
func once(kind string, f func(p *Port, e Event) []Event) func() Hooks {
	return instead(kind, func(p *Port, e Event) []Event {
		if p.Notes[kind] != nil {
			return []Event{e}
		}
		p.Notes[kind] = true
		return f(p, e)
	})
}

// plus sends an event and others behind it.
func plus(more ...Event) func(*Port, Event) []Event {
	return func(_ *Port, e Event) []Event { return append([]Event{e}, more...) }
}

// with sends events with another value of a member; nil leaves it out.
func with(name string, value any) func(*Port, Event) []Event {
	return func(_ *Port, e Event) []Event {
		if value == nil {
			return []Event{e.Without(name)}
		}
		return []Event{e.With(name, value)}
	}
}
