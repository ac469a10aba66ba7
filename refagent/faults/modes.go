package faults

import "github.com/acp-test/acp-test/refagent"

func modeFaults() []Fault {
	return []Fault{
		{
			Name:    "mode-changes-label-only",
			Summary: "shows a new mode but goes on in the old one",
			Copies:  "cline/cline#13040",
			Hooks:   firstMode,
		},
		{
			Name:    "mode-and-option-differ",
			Summary: "does not show a new mode in the option that mirrors it",
			Copies:  "NousResearch/hermes-agent#32419",
			Hooks:   onUpdate(func(_ object, tag string) bool { return tag != "config_option_update" }),
		},
		{
			Name:    "mode-unlisted",
			Summary: "starts in a mode that is not among those it offers",
			Hooks:   onResult("session/new", func(r object) { modesOf(r)["currentModeId"] = "turbo" }),
		},
		{
			Name:    "mode-wrong-key",
			Summary: "announces a mode under the key modeId",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "current_mode_update" {
					u["modeId"] = u["currentModeId"]
					delete(u, "currentModeId")
				}
				return true
			}),
		},
		{
			Name:    "mode-refused",
			Summary: "answers a mode it offered with an internal error",
			Copies:  "agentclientprotocol/claude-agent-acp#507",
			Hooks:   with(func(t *tap) { refuseMethods(t, "session/set_mode", "session/set_config_option") }),
		},
		{
			Name:    "config-result-partial",
			Summary: "answers session/set_config_option without the options",
			Copies:  "Emanuele-web04/synara#337",
			Hooks: onResult("session/set_config_option", func(r object) {
				r["configOptions"] = []any{}
			}),
		},
		{
			Name:    "config-result-missing",
			Summary: "answers session/set_config_option with an empty object",
			Hooks:   onResult("session/set_config_option", func(r object) { delete(r, "configOptions") }),
		},
		{
			Name:    "config-value-unlisted",
			Summary: "gives an option a value that is not among its choices",
			Hooks:   onResult("session/new", func(r object) { firstOption(r)["currentValue"] = "turbo" }),
		},
		{
			Name:    "config-update-empty",
			Summary: "sends config_option_update without the options",
			Copies:  "shindgew/agy-acp#24",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "config_option_update" {
					delete(u, "configOptions")
				}
				return true
			}),
		},
		{
			Name:    "config-not-applied",
			Summary: "answers session/set_config_option with the old value",
			Copies:  "topcheer/ggcode#1145",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if p := m.Object("params"); is(m, "session/set_config_option") && p["configId"] == "mode" {
						p["value"] = "agentic"
					}
					return true
				}
			}),
		},
	}
}

// firstMode judges every tool call by the mode that sessions begin in.
func firstMode() refagent.Hooks {
	return refagent.Hooks{Mode: func(_, _ string) string { return "agentic" }}
}

func modesOf(result object) object {
	m, _ := result["modes"].(object)
	return m
}

func firstOption(result object) object {
	list, _ := result["configOptions"].([]any)
	if len(list) == 0 {
		return object{}
	}
	o, _ := list[0].(object)
	return o
}

func refuseMethods(t *tap, methods ...string) {
	t.in = func(m message) bool {
		for _, method := range methods {
			if is(m, method) {
				t.Emit(refuse(m["id"], -32603, "internal error"))
				return false
			}
		}
		return true
	}
}
