package schedules

import (
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
)

// Held is the model's part, held at each place of its first turn in turn.
func Held(src string) []string {
	m := sweep.ReadModel(src)
	var out []string
	for _, at := range m.Turns[0].Places() {
		h := *m
		h.Turns = append([]fakellm.TurnNode{m.Turns[0].With(at, sweep.Gate(sweep.Hold))}, m.Turns[1:]...)
		out = append(out, h.Format())
	}
	return out
}

// Targets are the lines of a scenario whose turns can be swept, and why others
// cannot.
func Targets(p *scenarios.Protocol, text string) (lines []int, notes []string) {
	v := *V1()
	v.Natural = nil
	b, notes := v.Base(p.CommandTable(), "case", []byte(text))
	for _, t := range b.Turns {
		lines = append(lines, b.Lines[t.Line].Number)
	}
	return lines, notes
}

// Instead is what is swept in place of a scenario, and what of it is not.
func Instead(p *scenarios.Protocol, text string) (string, []string) {
	b, notes := V1().Base(p.CommandTable(), "case", []byte(text))
	return string(b.Instead()), notes
}
