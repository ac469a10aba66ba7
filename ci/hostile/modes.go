//go:build linux

package main

import (
	"github.com/acp-test/acp-test/internal/lists"
	"slices"
)

func modes() []mode {
	return slices.Concat(floods(), ids(), values(), injections(), secrets(), processes(), files(), evidence(), requests(),
		models(), isolated())
}

// at makes a mode for each stage.
func at(stages []stage, name string, do func(a *agent)) (all []mode) {
	return lists.Map(stages, func(s stage) mode { return mode{name: string(s) + "-" + name, at: s, do: do} })
}

var (
	ends  = []stage{atStart, inTurn}
	most  = []stage{atStart, atInitialize, inTurn, afterTurn}
	every = []stage{atStart, atInitialize, atNew, inTurn, afterTurn, atEnd}
)
