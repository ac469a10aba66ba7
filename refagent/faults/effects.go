package faults

import (
	"bytes"
	"fmt"
	"strings"
)

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
