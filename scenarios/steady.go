package scenarios

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/process"
)

func steadyCommand() *Command {
	return &Command{
		Name: "steady", Group: "structure", Args: "N", Blocks: 1, Process: true,
		Summary: "repeat a block, and ask that the agent's memory, descriptors and processes do not grow",
		Detail: "acp-test measures the agent's processes after N, 2N and 4N rounds. Memory grows if each\n" +
			"round adds at least 1 MiB in both stretches, and in the second one not much less than in\n" +
			"the first: memory that is only freed late levels off. This takes at least 100 rounds.\n" +
			"Descriptors and processes grow if both stretches leave one behind in every other round.\n" +
			"The scenario is skipped on systems other than Linux, which have no such measurements, and\n" +
			"if the rounds would take longer than its timeout.",
		Compile: compileSteady,
	}
}

func compileSteady(l *Line) Step {
	n := l.Int(l.Need(0, "a number of rounds"), 2, "steady takes a number of rounds, at least 2")
	l.AtMost(1)
	steps := l.Body(0)
	return func(ctx context.Context, b *Branch) error {
		var after [3]process.Footprint
		for i, rounds := range []int{n, n, 2 * n} {
			began := time.Now()
			for range rounds {
				if err := b.play(ctx, steps); err != nil {
					return err
				}
			}
			if end, ok := ctx.Deadline(); ok && i == 0 && time.Until(end) < 4*time.Since(began) {
				took := time.Since(began).Round(time.Second)
				return &Skipped{fmt.Sprintf("%d rounds took %v, and the timeout leaves no time for more", n, took)}
			}
			agent, err := b.Alive(l)
			if err != nil {
				return err
			}
			silence(ctx, b.run.t, lingering, agent)
			var ok bool
			if after[i], ok = agent.Footprint(); !ok {
				return &Skipped{"acp-test cannot measure the agent's processes on this system"}
			}
		}
		grown := growth(after, n)
		if len(grown) == 0 {
			return nil
		}
		return b.Back(l, false, "an agent whose processes do not grow with each round", strings.Join(grown, "\n"))
	}
}

// leastMemory is the average number of bytes per round above which memory counts as growing. Smaller amounts may be
// noise.
const leastMemory = 1 << 20

// growth returns the resources that grew. after has the footprints after n, 2n and 4n rounds.
func growth(after [3]process.Footprint, n int) (grown []string) {
	for _, q := range []struct {
		name  string
		of    func(process.Footprint) int
		least float64 // minimum growth per round
		unit  int
		from  int     // rounds that are needed to tell growth from noise
		share float64 // minimum growth in the second stretch, as a share of the growth in the first
	}{
		{"MiB of memory", func(f process.Footprint) int { return f.Memory }, leastMemory, 1 << 20, 100, 0.8},
		{"descriptors", func(f process.Footprint) int { return f.Descriptors }, 0.5, 1, 0, 0},
		{"processes", func(f process.Footprint) int { return f.Processes }, 0.5, 1, 0, 0},
	} {
		a, b, c := q.of(after[0]), q.of(after[1]), q.of(after[2])
		first, second := float64(b-a)/float64(n), float64(c-b)/float64(2*n)
		if n*4 >= q.from && first >= q.least && second >= q.least && second >= q.share*first {
			grown = append(grown, fmt.Sprintf("%d %s after %d rounds, %d after %d, %d after %d", a/q.unit, q.name, n,
				b/q.unit, 2*n, c/q.unit, 4*n))
		}
	}
	return grown
}
