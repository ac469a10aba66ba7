// Package second breaks the reference agent in version 2 of the protocol, in one way at a
// time, and lets it differ where version 2 leaves it open.
package second

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/effects"
)

// Fault is one deliberate defect.
type Fault struct {
	Name    string // kebab case, unique
	Summary string // what the agent does wrong, in plain words
	// Breaks is the requirement that it breaks.
	Breaks string
	effects.Effect

	hooks func() refagent.Hooks
}

// Hooks makes fresh hooks for one agent.
func (f Fault) Hooks() refagent.Hooks { return f.hooks() }

// Liberty is one thing that another correct agent does differently.
type Liberty struct {
	Name    string
	Summary string
	// Allows is the requirement that leaves it open.
	Allows string

	set func(h *refagent.Habits)
}

//go:embed reddens.txt
var reddens string

// measured are what the proof has measured, by fault.
var measured = sync.OnceValue(func() map[string]effects.Effect { return effects.Read(reddens) })

// Faults lists all faults.
func Faults() []Fault {
	all := slices.Concat(greetFaults(), sessionFaults(), turnFaults(), cancelFaults(), updateFaults(), terminalFaults(),
		askFaults())
	for i := range all {
		all[i].Effect = measured()[all[i].Name]
	}
	return all
}

// Take gives the agent a fault and liberties, by their names.
func Take(o *refagent.Options, fault string, liberties []string) error {
	if fault != "" {
		i := slices.IndexFunc(Faults(), func(f Fault) bool { return f.Name == fault })
		if i < 0 {
			return fmt.Errorf("--fault: there is no fault %q of version 2: acp-test refagent --second --faults lists them",
				fault)
		}
		o.Hooks = Faults()[i].Hooks()
	}
	for _, name := range liberties {
		i := slices.IndexFunc(Liberties(), func(l Liberty) bool { return l.Name == name })
		if i < 0 {
			return fmt.Errorf("--liberty: there is no liberty %q of version 2: acp-test refagent --second --liberties lists "+
				"them", name)
		}
		Liberties()[i].set(&o.Habits)
	}
	return nil
}

type (
	object = map[string]any
	port   = *refagent.Port
	frame  = refagent.Frame
)

// fault makes a fault of messages on their way to the editor: what is returned is sent
// instead. make is called for each agent.
func fault(name, breaks, summary string, make func() func(p port, f frame) []object) Fault {
	return Fault{Name: name, Breaks: "V2-" + breaks, Summary: summary, hooks: func() refagent.Hooks {
		change := make()
		var mu sync.Mutex
		return refagent.Hooks{Send: func(p port, f frame) {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range change(p, f) {
				p.Emit(m)
			}
		}}
	}}
}

// changing is a fault that changes each message and keeps nothing in mind.
func changing(name, breaks, summary string, change func(f frame)) Fault {
	return fault(name, breaks, summary, func() func(port, frame) []object {
		return func(_ port, f frame) []object {
			change(f)
			return one(f)
		}
	})
}

// hearing is a fault of what the agent makes of the editor's messages: the line that is
// returned is taken instead, none if it is nil.
func hearing(name, breaks, summary string, change func(p port, m refagent.Message) refagent.Message) Fault {
	return Fault{Name: name, Breaks: "V2-" + breaks, Summary: summary, hooks: func() refagent.Hooks {
		return refagent.Hooks{Receive: func(p port, line []byte) {
			m := refagent.Decode(line)
			if m == nil {
				p.Deliver(line)
				return
			}
			if m = change(p, m); m != nil {
				p.DeliverMessage(m)
			}
		}}
	}}
}

func one(f frame) []object { return []object{f.Message} }

// result is the result of an answer to a method; nil if the frame is none.
func result(f frame, method string) object {
	if f.IsResponse() && f.Method == method {
		return f.Message.Object("result")
	}
	return nil
}

// failure is the error of an answer to a method; nil if the frame is none.
func failure(f frame, method string) object {
	if f.IsResponse() && f.Method == method {
		return f.Message.Object("error")
	}
	return nil
}

// state is the state that a frame tells, "" if it tells none.
func state(f frame) string {
	if u, tag := f.Update(); tag == "state_update" {
		s, _ := u["state"].(string)
		return s
	}
	return ""
}

// succeed turns an error into a success.
func succeed(f frame, result object) {
	delete(f.Message, "error")
	f.Message["result"] = result
}

// fail turns an answer into an error.
func fail(f frame, code int, message string) {
	delete(f.Message, "result")
	f.Message["error"] = object{"code": code, "message": message}
}

// telling is an update of a frame's session.
func telling(f frame, update object) object {
	return object{"jsonrpc": "2.0", "method": "session/update",
		"params": object{"sessionId": f.Session, "update": update}}
}

// like is an update as the one of a frame with other members.
func like(f frame, other object) object {
	u, _ := f.Update()
	u = maps.Clone(u)
	maps.Copy(u, other)
	return telling(f, u)
}

// array is a line that is a JSON array, as its items.
func array(line []byte) (items []json.RawMessage) {
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) {
		_ = json.Unmarshal(line, &items) // what is no array has none
	}
	return items
}
