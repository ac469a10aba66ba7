package language

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lazy"
)

// Review returns warnings about a scenario that has no errors, for example a pattern that can never match, or a pause
// that could be an await. It needs no agent.
func (d *Dialect[B]) Review(s *Scenario[B]) []*Mistake {
	r := &review[B]{s: s}
	if s.Title == "" {
		r.add(1, "begin the file with # and one sentence", "the scenario does not say what it is about")
	}
	// The rules judge every scenario, even a reduced recording without checks. Only a scenario of a suite must have a
	// check.
	if len(s.Checks) == 0 && s.Role == "editor" && s.Suite != "" {
		r.add(1, "open one with check REQUIREMENT or check SLUG", "the scenario has no check")
	}
	for _, c := range s.Checks {
		for _, id := range c.Requirements {
			if !d.Requirement(id) && !s.Several {
				r.add(c.Line, "acp-test help requirements lists them", "there is no requirement %s", id)
			}
		}
	}
	r.gates(r.model())
	for i, a := range s.Prompts {
		for _, b := range s.Prompts[i+1:] {
			if a.Text == b.Text && a.Session != b.Session && !s.endsTurn(a.Line, b.Line) {
				r.add(b.Line, "make the texts differ", "line %d prompts another session with the same text, and no "+
					"line between them ends its turn: model requests of both would count for the later prompt", a.Line)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Want)) {
		if !slices.ContainsFunc(s.Steps, func(st Played[B]) bool { return strings.Contains(st.Text, "want/"+name) }) {
			r.add(1, "cmp FILE want/"+name, "nothing compares want/%s", name)
		}
	}
	if n := len(s.Steps); n > 60 {
		r.add(1, "", "the script has %d lines; split a scenario of more than 60", n)
	}
	return r.out
}

// Starts returns the lines that run something or make the agent run something: programs, settings, raw messages and
// the model's tool calls. It helps a user to decide whether to trust a scenario.
func (s *Scenario[B]) Starts() []*Mistake {
	out := slices.Clone(s.starts)
	model, err := fakellm.ParseScript(s.File, s.Model, nil)
	if s.Model == nil || err != nil { // Review reports the error
		return out
	}
	for line, call := range model.Calls() {
		out = append(out, &Mistake{File: s.File, Line: s.modelAt + line - 1,
			Message: "the model calls a tool, which the agent may run: " + call})
	}
	return out
}

// endsTurn reports whether a line between the lines after and before waits for the end of a turn, or ends the agent.
func (s *Scenario[B]) endsTurn(after, before int) bool {
	return slices.ContainsFunc(s.Steps, func(st Played[B]) bool {
		return st.Line > after && st.Line < before && turnEnds().MatchString(st.Text)
	})
}

var turnEnds = lazy.Regexp(`^(await (turn|finished|error|interrupt)|kill|restart)\b`)

// review collects the warnings about a scenario.
type review[B any] struct {
	s   *Scenario[B]
	out []*Mistake
}

func (r *review[B]) add(line int, hint, format string, args ...any) {
	r.out = append(r.out, &Mistake{File: r.s.File, Line: line, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// model reviews the model's script and returns the names of its gates. The value of each gate is false, which means
// unused.
func (r *review[B]) model() map[string]bool {
	gates := map[string]bool{}
	if r.s.Model == nil {
		return gates
	}
	model, err := fakellm.ParseScript(r.s.File, r.s.Model, anyVariable)
	var m *Mistake
	if errors.As(r.s.ModelMistake(err), &m) {
		r.out = append(r.out, m)
		return gates
	}
	for _, g := range model.Gates() {
		gates[g] = false
	}
	rounds := slices.ContainsFunc(r.s.Steps, func(st Played[B]) bool {
		return strings.HasPrefix(st.Text, "each ") || strings.HasPrefix(st.Text, "repeat ")
	})
	if n := len(model.Turns); n > len(r.s.Prompts) && len(r.s.Prompts) > 0 && !rounds {
		r.add(r.s.modelAt, "", "llm.yaml has %d turns, the script only %d prompts", n, len(r.s.Prompts))
	}
	return gates
}

// gates adds warnings about gates that do not exist, gates that are not used, and pauses without a reason. gates maps
// the names of existing gates to whether they are used.
func (r *review[B]) gates(gates map[string]bool) {
	for _, g := range r.s.gates {
		if _, ok := gates[g.name]; !ok {
			r.add(g.line, "define the gate in llm.yaml: - gate: "+g.name, "the model has no gate %q", g.name)
		}
		gates[g.name] = true
	}
	cuts := false // the turn may be cut off, so that a gate may wait for ever
	for i, st := range r.s.Steps {
		if st.Command == nil {
			continue
		}
		cuts = cuts || st.Command.Cuts
		if st.Command.Name == "pause" && (i == 0 || !strings.HasPrefix(r.s.Steps[i-1].Text, "#")) {
			r.add(st.Line, "await something, or say why in a comment above", "the scenario pauses")
		}
	}
	for _, g := range slices.Sorted(maps.Keys(gates)) {
		if !gates[g] && !cuts {
			r.add(r.s.modelAt, "await gate "+g,
				"nothing awaits or releases the gate %q: the model will hold there until the run ends", g)
		}
	}
}

// anyVariable is a value for each variable that is known only during a run.
func anyVariable(string) (string, error) { return "x", nil }

// ModelMistake converts the position of a mistake in llm.yaml to the position in the scenario file.
func (s *Scenario[B]) ModelMistake(err error) error {
	var bad *Mistake
	if !errors.As(err, &bad) {
		return err
	}
	return &Mistake{File: s.File, Line: s.modelAt + bad.Line - 1, Column: bad.Column,
		Message: "llm.yaml: " + bad.Message, Hint: bad.Hint}
}
