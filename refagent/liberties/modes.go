package liberties

import (
	"slices"

	"github.com/acp-test/acp-test/refagent"
)

// modeLiberties are about modes and options.
func modeLiberties() []Liberty {
	return slices.Concat(
		of("modes",
			liberty("modes-none", "has no modes", "SESSION-024", func(h *habits) { h.NoModes = true }).takes("modes"),
			liberty("modes-one", "has one mode", "SESSION-024 MODE-001", func(h *habits) {
				h.Modes = []string{"agentic"}
			}).takes("mode"),
			liberty("modes-two", "has a mode to work and one to ask", "MODE-001", func(h *habits) {
				h.Modes = []string{"interactive", "agentic"}
			}).takes("mode"),
			liberty("modes-reversed", "lists its modes in another order", "MODE-001", func(h *habits) {
				h.Modes = []string{"planning", "readonly", "interactive", "agentic"}
			}),
			liberty("modes-as-options", "has modes as an option only", "MODE-009", func(h *habits) {
				h.OptionsOnly = true
			}).takes("modes"),
			liberty("mode-ids-odd", "has mode ids that are addresses", "MODE-001", modeIDs("https://example.org/modes#")),
		),
		of("settings",
			liberty("options-one-value", "has an option with a single value before the others", "CONFIG-001 CONFIG-003",
				settings(refagent.Setting{ID: "model", Name: "Model", Category: "model", Values: []string{"reference-model"}})).
				takes("option"),
			liberty("options-boolean", "has a boolean option before the others", "CONFIG-001",
				settings(refagent.Setting{ID: "web", Name: "Web search"})),
			liberty("options-many", "has options of all categories", "CONFIG-011 CONFIG-012", settings(
				refagent.Setting{ID: "effort", Name: "Effort", Category: "thought_level", Values: []string{"low", "high"}},
				refagent.Setting{ID: "model", Name: "Model", Category: "model", Values: []string{"small", "large"}},
				refagent.Setting{ID: "_tone", Name: "Tone", Category: "_tone", Values: []string{"dry", "warm"}})),
		),
		of("", liberty("options-grouped", "puts the values of options into groups", "CONFIG-005",
			func(h *habits) { h.GroupedOptions = true })),
	)
}

func settings(list ...refagent.Setting) func(h *habits) {
	return func(h *habits) { h.Settings = list }
}

// modeIDs puts a prefix before the ids of modes, there and back again.
func modeIDs(prefix string) func(h *habits) {
	known := []string{"agentic", "interactive", "readonly", "planning"}
	to := func(o object, keys ...string) {
		for _, k := range keys {
			if id, ok := o[k].(string); ok && slices.Contains(known, id) {
				o[k] = prefix + id
			}
		}
	}
	options := func(v any) {
		for _, o := range list(v) {
			to(o, "currentValue")
			for _, c := range list(o["options"]) {
				to(c, "value")
				for _, inner := range list(c["options"]) {
					to(inner, "value")
				}
			}
		}
	}
	return func(h *habits) {
		out(func(m message) {
			u, _ := updateOf(m)
			to(u, "currentModeId")
			options(u["configOptions"])
			r := m.Object("result")
			options(r["configOptions"])
			modes, _ := r["modes"].(object)
			to(modes, "currentModeId")
			for _, mode := range list(modes["availableModes"]) {
				to(mode, "id")
			}
		})(h)
		h.In = append(h.In, func(m message) []message {
			p := m.Object("params")
			for _, k := range []string{"modeId", "value"} {
				if id, ok := p[k].(string); ok && len(id) > len(prefix) && id[:len(prefix)] == prefix {
					p[k] = id[len(prefix):]
				}
			}
			return []message{m}
		})
	}
}
