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
