package sweep

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/acp-test/acp-test/scenarios"
)

// Perturb draws what an editor may do to a scenario without meaning anything by
// it: writes in pieces, reads that wait, answers that take their time. Seed,
// scenario and round decide all of it. The first round is left as it is.
func Perturb(seed int64, id string, round int) scenarios.Perturbation {
	var p scenarios.Perturbation
	if round <= 1 {
		return p
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", round, id)
	r := rand.New(rand.NewPCG(uint64(seed), h.Sum64()))
	split, reads, answers := 1+r.IntN(40), 1+r.IntN(10), 1+r.IntN(40)
	// Two of three, so that rounds differ in what they do, and each does
	// something.
	without := r.IntN(3)
	if without != 0 {
		p.Split = split
		p.How = append(p.How, fmt.Sprintf("writes in pieces of %d bytes", split))
	}
	if without != 1 {
		// Most reads do not wait: a long reply would take for ever.
		p.Pace.Read = sometimes(r.Uint64(), 6, reads)
		p.How = append(p.How, fmt.Sprintf("one read of six up to %d ms late", reads))
	}
	if without != 2 {
		p.Pace.Answer = sometimes(r.Uint64(), 2, answers)
		p.How = append(p.How, fmt.Sprintf("every other answer up to %d ms late", answers))
	}
	return p
}

// sometimes draws a time of at most most milliseconds, and nothing but for one
// of n times.
func sometimes(seed uint64, n, most int) func() time.Duration {
	r := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration {
		if r.IntN(n) > 0 {
			return 0
		}
		return time.Duration(1+r.IntN(most*1000)) * time.Microsecond
	}
}
