//go:build linux

package main

import "slices"

func modes() []mode {
	return slices.Concat(floods(), ids(), values(), injections(), secrets(), processes(), files(), evidence(), requests(),
		models(), isolated())
}

// at makes a mode for each stage.
func at(stages []stage, name string, do func(a *agent)) (all []mode) {
	for _, s := range stages {
		all = append(all, mode{name: string(s) + "-" + name, at: s, do: do})
	}
	return all
}

var (
	ends  = []stage{atStart, inTurn}
	most  = []stage{atStart, atInitialize, inTurn, afterTurn}
	every = []stage{atStart, atInitialize, atNew, inTurn, afterTurn, atEnd}
)
