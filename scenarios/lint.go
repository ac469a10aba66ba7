package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
)

// Review says what is doubtful in a scenario that is correct as a text: what
// can never match, what could be awaited. It needs no agent.
func (p *Protocol) Review(s *Scenario) []*Mistake {
	r := &review{s: s}
	if s.Title == "" {
		r.add(1, "begin the file with # and one sentence", "the scenario does not say what it is about")
	}
	if len(s.checks) == 0 && s.Role == "editor" {
		r.add(1, "open one with check REQUIREMENT or check SLUG", "the scenario has no check")
	}
	for _, c := range s.checks {
		for _, id := range c.requirements {
			if _, ok := p.Rules.Requirement(id); !ok && !s.several {
				r.add(c.line, "acp-test help requirements lists them", "there is no requirement %s", id)
			}
		}
	}
	r.gates(r.model())
	for i, a := range s.prompts {
		for _, b := range s.prompts[i+1:] {
			if a.text == b.text && a.session != b.session && !s.endsTurn(a.line, b.line) {
				r.add(b.line, "make the texts differ", "line %d prompts another session with the same text, and no "+
					"line between them ends its turn: what asks the model is taken for the later one", a.line)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.want)) {
		if !slices.ContainsFunc(s.steps, func(st step) bool { return strings.Contains(st.text, "want/"+name) }) {
			r.add(1, "cmp FILE want/"+name, "nothing compares want/%s", name)
		}
	}
	if n := len(s.steps); n > 60 {
		r.add(1, "", "the script has %d lines; a scenario over 60 is two", n)
	}
	return r.out
}

// endsTurn reports whether a step between two lines waits for the end of a turn, or ends
// the agent.
func (s *Scenario) endsTurn(after, before int) bool {
	return slices.ContainsFunc(s.steps, func(st step) bool {
		return st.line > after && st.line < before && turnEnds.MatchString(st.text)
	})
}

var turnEnds = regexp.MustCompile(`^(await (turn|finished|error|interrupt)|kill|restart)\b`)

// review collects what is doubtful in a scenario.
type review struct {
	s   *Scenario
	out []*Mistake
}

func (r *review) add(line int, hint, format string, args ...any) {
	r.out = append(r.out, &Mistake{File: r.s.File, Line: line, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// model looks at the model's script, and returns its gates: none is used yet.
func (r *review) model() map[string]bool {
	gates := map[string]bool{}
	if r.s.model == nil {
		return gates
	}
	model, err := fakellm.ParseScript(r.s.File, r.s.model, anyVariable)
	var m *Mistake
	if errors.As(r.s.modelMistake(err), &m) {
		r.out = append(r.out, m)
		return gates
	}
	for _, g := range model.Gates() {
		gates[g] = false
	}
	if n := len(model.Turns); n > len(r.s.prompts) && len(r.s.prompts) > 0 {
		r.add(r.s.modelAt, "", "llm.yaml has %d turns, the script only %d prompts", n, len(r.s.prompts))
	}
	return gates
}

// gates asks of each gate whether it is there and whether it is opened, and
// whether the script pauses instead.
func (r *review) gates(gates map[string]bool) {
	for _, g := range r.s.gates {
		if _, ok := gates[g.name]; !ok {
			r.add(g.line, "gates stand in llm.yaml: - gate: "+g.name, "the model has no gate %q", g.name)
		}
		gates[g.name] = true
	}
	cuts := false // the turn is cut off, so that a gate may hold for ever
	for i, st := range r.s.steps {
		if st.command == nil {
			continue
		}
		cuts = cuts || st.command.Cuts
		if st.command.Name == "pause" && (i == 0 || !strings.HasPrefix(r.s.steps[i-1].text, "#")) {
			r.add(st.line, "await something, or say why in a comment above", "the scenario pauses")
		}
	}
	for _, g := range slices.Sorted(maps.Keys(gates)) {
		if !gates[g] && !cuts {
			r.add(r.s.modelAt, "await gate "+g,
				"nothing awaits or releases the gate %q: the model will hold there until the run ends", g)
		}
	}
}

// anyVariable stands for variables that are known only in a run.
func anyVariable(string) (string, error) { return "x", nil }

// modelMistake places a mistake of llm.yaml in the file that the user wrote.
func (s *Scenario) modelMistake(err error) error {
	var bad *Mistake
	if !errors.As(err, &bad) {
		return err
	}
	return &Mistake{File: s.File, Line: s.modelAt + bad.Line - 1, Column: bad.Column,
		Message: "llm.yaml: " + bad.Message, Hint: bad.Hint}
}
