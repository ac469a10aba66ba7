package sweep

import (
	"context"
	"os"

	"github.com/acp-test/acp-test/scenarios"
)

// Texts are the scenarios of all schedules of scenarios, by id.
func Texts(ctx context.Context, w *Sweeper, scs ...*scenarios.Scenario) (map[string][]byte, []string, error) {
	s := newSweep(w)
	list, err := s.plan(ctx, scs)
	out := map[string][]byte{}
	var order []string
	for _, sch := range list {
		out[sch.id()] = sch.text().Text()
		order = append(order, sch.id())
	}
	return out, order, err
}

// Explored are the findings of a sweep as they are found, neither confirmed nor
// shrunk.
func Explored(ctx context.Context, w *Sweeper, scs ...*scenarios.Scenario) ([]Finding, error) {
	s := newSweep(w)
	list, err := s.plan(ctx, scs)
	s.explore(ctx, list)
	var out []Finding
	for _, sig := range s.order {
		out = append(out, *s.findings[sig])
	}
	return out, err
}

// Repro is the file that is written for a finding.
func Repro(f Finding, script string) string {
	dir, err := os.MkdirTemp("", "repro-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file, err := writeRepro(dir, "r", Split([]byte(script)), &f)
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(text)
}
