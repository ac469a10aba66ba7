package faults

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed reddens.txt
var reddensText string

// effect is what the proof has measured of one fault.
type effect struct{ scenarios, reddens []string }

// effects reads reddens.txt. The file is part of the program: a mistake in it
// is found by the first test.
var effects = sync.OnceValue(func() map[string]effect {
	table := map[string]effect{}
	name := ""
	for i, line := range strings.Split(reddensText, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " ") && len(words) == 1:
			name = words[0]
			table[name] = effect{}
		case words[0] == "in" && name != "":
			e := table[name]
			e.scenarios = words[1:]
			table[name] = e
		case words[0] == "reddens" && name != "":
			e := table[name]
			e.reddens = words[1:]
			table[name] = e
		default:
			panic(fmt.Sprintf("reddens.txt:%d: %q is no line of this file", i+1, line))
		}
	}
	return table
})
