// Package schedules tells a sweep of AG-UI runs where it can act: the points at which a
// front end can act, its acts there, and the events that must follow.
package schedules

import (
	_ "embed"
	"math/rand/v2"

	"github.com/acp-test/acp-test/sweep"
)

//go:embed acts.txt
var table string

// V1 returns the planner of AG-UI.
func V1() *sweep.Planner {
	return acts().Plan(sweep.Planner{
		Protocol: "ag-ui", Prompt: "run", Noun: "run",
		Turns: turns, Look: look,
		Points: func(o sweep.Observed, _ []*sweep.Script, _ *rand.Rand) ([]sweep.Point, int) { return points(o.Seen) },
	}, func(b *sweep.Builder) builder { return builder{b} }, builder.lead)
}
