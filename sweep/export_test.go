package sweep

import (
	"context"
	"os"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios"
)

// Texts are the scenarios of all schedules of scenarios, by id.
func Texts(ctx context.Context, w *Sweeper, scs ...*scenarios.Scenario) (map[string][]byte, []string, error) {
	s := newSweep(w)
	list, err := s.plan(ctx, scs)
	out := map[string][]byte{}
	var order []string
	for _, sch := range list {
		out[sch.id()] = sch.text().text()
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
	file, err := writeRepro(dir, "r", split([]byte(script)), &f)
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Rewrite reads the model's part of a scenario and writes it again.
func Rewrite(model string) string { return readModel(model).Format() }

// Held is the model's part, held at each place of its first turn in turn.
func Held(src string) []string {
	m := readModel(src)
	var out []string
	for _, at := range m.Turns[0].Places() {
		h := *m
		h.Turns = append([]fakellm.TurnNode{m.Turns[0].With(at, gate(hold))}, m.Turns[1:]...)
		out = append(out, h.Format())
	}
	return out
}

// Targets are the lines of a scenario whose turns can be swept, and why others
// cannot.
func Targets(p *scenarios.Protocol, text string) (lines []int, notes []string) {
	b := readBase(p.CommandTable(), "case", "case.txtar", []byte(text))
	for _, t := range b.targets {
		lines = append(lines, b.lines[t.line].Number)
	}
	return lines, b.notes
}
