package scenarios

import (
	"slices"

	"github.com/acp-test/acp-test/scenarios/results"
)

// prompts are the Seqs of all prompts of the run.
func (r *run) prompts() (seqs []int) {
	for e := range r.t.All() {
		if r.protocol().Prompts(e) {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// markTurns notes whether the model server was reached where the script prompted
// the agent and had replies for it, and which findings are about a turn.
func (r *run) markTurns(res *results.Result) {
	prompts := r.prompts()
	wire, _ := r.model.Learned()
	res.Reached = wire != ""
	res.Unreached = wire == "" && r.scenario.Model != nil && len(prompts) > 0
	for i, f := range res.Findings {
		res.Findings[i].InTurn = slices.ContainsFunc(f.Entries, func(seq int) bool { return slices.Contains(prompts, seq) })
	}
}

// missedInTurn reports whether a line of the check missed after the first prompt.
func (r *run) missedInTurn(c *checkState) bool {
	prompts := r.prompts()
	return len(prompts) > 0 && slices.ContainsFunc(c.misses, func(m *Miss) bool { return m.at >= prompts[0] })
}
