package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
)

// Review says what is doubtful in a scenario that is correct as a text: what
// can never match, what could be awaited. It needs no agent.
func (p *Protocol) Review(s *Scenario) []*Mistake {
	var out []*Mistake
	add := func(line int, hint, format string, args ...any) {
		out = append(out, &Mistake{File: s.File, Line: line, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if s.Title == "" {
		add(1, "begin the file with # and one sentence", "the scenario does not say what it is about")
	}
	if len(s.checks) == 0 && s.Role == "editor" {
		add(1, "open one with check REQUIREMENT or check SLUG", "the scenario has no check")
	}
	for _, c := range s.checks {
		for _, id := range c.requirements {
			if _, ok := p.Rules.Requirement(id); !ok {
				add(c.line, "acp-test help requirements lists them", "there is no requirement %s", id)
			}
		}
	}
	gates := map[string]bool{}
	if s.model != nil {
		script, err := fakellm.ParseScript(s.File, s.model, func(string) (string, error) { return "x", nil })
		if err != nil {
			var m *Mistake
			if errors.As(s.modelMistake(err), &m) {
				out = append(out, m)
			}
		} else {
			for _, g := range script.Gates() {
				gates[g] = false
			}
			if n := len(script.Turns); n > len(s.prompts) && len(s.prompts) > 0 {
				add(s.modelAt, "", "llm.yaml has %d turns, the script only %d prompts", n, len(s.prompts))
			}
		}
	}
	for _, g := range s.gates {
		if _, ok := gates[g.name]; !ok {
			add(g.line, "gates stand in llm.yaml: - gate: "+g.name, "the model has no gate %q", g.name)
		}
		gates[g.name] = true
	}
	cuts := false // the turn is cut off, so that a gate may hold for ever
	for i, st := range s.steps {
		if st.command == nil {
			continue
		}
		cuts = cuts || st.command.Cuts
		if st.command.Name == "pause" && (i == 0 || !strings.HasPrefix(s.steps[i-1].text, "#")) {
			add(st.line, "await something, or say why in a comment above", "the scenario pauses")
		}
	}
	for g, used := range gates {
		if !used && !cuts {
			add(s.modelAt, "await gate "+g, "nothing awaits or releases the gate %q: the model will hold there until the run ends", g)
		}
	}
	for i, a := range s.prompts {
		for _, b := range s.prompts[i+1:] {
			if strings.Contains(a.text, b.text) || strings.Contains(b.text, a.text) {
				add(b.line, "make the texts differ", "this prompt's text holds that of line %d, or the other way: the model's turns are found by it", a.line)
			}
		}
	}
	for name := range s.want {
		if !slices.ContainsFunc(s.steps, func(st step) bool { return strings.Contains(st.text, "want/"+name) }) {
			add(1, "cmp FILE want/"+name, "nothing compares want/%s", name)
		}
	}
	if n := len(s.steps); n > 60 {
		add(1, "", "the script has %d lines; a scenario over 60 is two", n)
	}
	return out
}

// modelMistake places a mistake of llm.yaml in the file that the user wrote.
func (s *Scenario) modelMistake(err error) error {
	var bad *Mistake
	if !errors.As(err, &bad) {
		return err
	}
	return &Mistake{File: s.File, Line: s.modelAt + bad.Line - 1, Column: bad.Column, Message: "llm.yaml: " + bad.Message, Hint: bad.Hint}
}
