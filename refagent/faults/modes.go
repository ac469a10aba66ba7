package faults

import "github.com/acp-test/acp-test/refagent"

func modeFaults() []Fault {
	return []Fault{
		fault("mode-changes-label-only", "shows a new mode but goes on in the old one",
			firstMode).copies("cline/cline#13040"),
		fault("mode-and-option-differ", "does not show a new mode in the option that mirrors it",
			onUpdate(func(_ object, tag string) bool { return tag != "config_option_update" })).
			copies("NousResearch/hermes-agent#32419"),
		fault("mode-unlisted", "starts in a mode that is not among those it offers",
			onResult("session/new", func(r object) { modesOf(r)["currentModeId"] = "turbo" })),
		fault("mode-wrong-key", "announces a mode under the key modeId", changeOnly("current_mode_update", func(u object) {
			u["modeId"] = u["currentModeId"]
			delete(u, "currentModeId")
		})),
		fault("mode-switch-untold", "does not tell of a new mode but in its option",
			onUpdate(func(_ object, tag string) bool { return tag != "current_mode_update" })),
		fault("mode-refused", "answers a mode it offered with an internal error",
			with(func(t *tap) { refuseMethods(t, "session/set_mode", "session/set_config_option") })).
			copies("agentclientprotocol/claude-agent-acp#507"),
		fault("last-mode-refused", "answers the last mode it offered with an internal error", with(refuseLastMode)),
		fault("last-value-refused", "answers the last value of each option with an internal error", with(refuseLastValue)),
		fault("mode-back-on-load", "tells of the mode it starts in when a session is loaded",
			onResult("session/load", func(r object) { modesOf(r)["currentModeId"] = "agentic" })),
		fault("config-result-partial", "answers session/set_config_option without the options",
			onResult("session/set_config_option", func(r object) {
				r["configOptions"] = []any{}
			})).copies("Emanuele-web04/synara#337"),
		fault("config-result-missing", "answers session/set_config_option with an empty object",
			onResult("session/set_config_option", func(r object) { delete(r, "configOptions") })),
		fault("config-value-unlisted", "gives an option a value that is not among its choices",
			onResult("session/new", func(r object) { firstOption(r)["currentValue"] = "turbo" })),
		fault("config-update-empty", "sends config_option_update without the options",
			changeOnly("config_option_update", func(u object) {
				delete(u, "configOptions")
			})).copies("shindgew/agy-acp#24"),
		fault("config-not-applied", "answers session/set_config_option with the old value", with(func(t *tap) {
			t.received = func(m message) {
				if p := m.Object("params"); is(m, "session/set_config_option") && p["configId"] == "mode" {
					p["value"] = "agentic"
				}
			}
		})).copies("topcheer/ggcode#1145"),
	}
}

// firstMode judges every tool call by the mode that sessions begin in.
func firstMode() refagent.Hooks {
	return refagent.Hooks{Mode: func(_, _ string) string { return "agentic" }}
}

// modesOf returns the modes of a result; an agent may have none.
func modesOf(result object) object {
	if m, ok := result["modes"].(object); ok {
		return m
	}
	return object{}
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

func refuseLastMode(t *tap) {
	last := map[string]any{} // by session
	t.sending = func(f frame) {
		if r, ok := f.Message["result"].(object); ok && answers(f, "session/new") {
			if list, _ := modesOf(r)["availableModes"].([]any); len(list) > 0 {
				last[f.Session] = list[len(list)-1].(object)["id"]
			}
		}
	}
	t.in = func(m message) bool {
		refused := is(m, "session/set_mode") && m.Object("params")["modeId"] == last[sessionOf(m)]
		if refused {
			t.Emit(refuse(m["id"], -32603, "internal error"))
		}
		return !refused
	}
}

func refuseLastValue(t *tap) {
	last := map[any]any{} // by option
	t.sending = func(f frame) {
		r, _ := f.Message["result"].(object)
		list, _ := r["configOptions"].([]any)
		for _, o := range list {
			if values, _ := o.(object)["options"].([]any); len(values) > 0 {
				last[o.(object)["id"]] = values[len(values)-1].(object)["value"]
			}
		}
	}
	t.in = func(m message) bool {
		p := m.Object("params")
		value, known := last[p["configId"]]
		refused := is(m, "session/set_config_option") && known && p["value"] == value
		if refused {
			t.Emit(refuse(m["id"], -32603, "internal error"))
		}
		return !refused
	}
}
