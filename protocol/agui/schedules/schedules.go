// Package schedules says what a sweep can do in the runs of AG-UI: the points at which a
// front end can act, what it can do there, and what must follow.
package schedules

import (
	_ "embed"
	"math/rand/v2"

	"github.com/acp-test/acp-test/sweep"
)

//go:embed acts.txt
var table string

// V1 returns what a sweep can do in AG-UI.
func V1() *sweep.Planner {
	return acts().Plan(sweep.Planner{
		Protocol: "ag-ui", Prompt: "run", Noun: "run",
		Turns: turns, Look: look,
		Points: func(o sweep.Observed, _ []*sweep.Script, _ *rand.Rand) ([]sweep.Point, int) { return points(o.Seen) },
	}, func(b *sweep.Builder) builder { return builder{b} }, builder.lead)
}
