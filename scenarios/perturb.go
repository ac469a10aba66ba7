package scenarios

import (
	"context"
	"strings"

	"github.com/acp-test/acp-test/transport"
)

// Perturbation is what an editor may do without meaning anything by it: a
// scenario has to come out the same. The zero value changes nothing.
type Perturbation struct {
	// Split writes frames in pieces of so many bytes; 0 writes them whole. A
	// script that shapes its writes has its way.
	Split int
	// Pace delays reads and answers.
	Pace transport.Pace
	// How says what is done, for the reader.
	How []string
}

// perturb does to an agent's connection what the engine was told to.
func (r *run) perturb(ctx context.Context, a *transport.Agent) error {
	p := r.engine.Perturb
	if len(p.How) == 0 {
		return nil
	}
	a.SetPace(p.Pace)
	if r.connection() == 0 {
		r.Note("perturbed: %s", strings.Join(p.How, ", "))
	}
	if p.Split == 0 {
		return nil
	}
	return a.WriteShape(ctx, transport.Shape{Split: p.Split})
}

// Difference is a scenario that did not come out the same in two rounds.
type Difference struct {
	ID string `json:"id"`
	// Rounds are the first and the first that differs from it.
	Rounds   [2]int     `json:"rounds"`
	Verdicts [2]Verdict `json:"verdicts"`
	// How is what the second round did differently.
	How []string `json:"how,omitempty"`
	// Explanation is the normaliser or the race that makes the difference.
	Explanation string `json:"explanation"`
	// Rows are the two transcripts side by side around each difference; rows
	// of "…" stand for what is the same.
	Rows [][2]string `json:"rows,omitempty"`
	// Times is in how many rounds it differed from the first.
	Times int `json:"times"`
}
