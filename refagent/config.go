package refagent

import (
	"cmp"
	"encoding/json"
	"slices"
)

// The ids of the configuration options.
const (
	optionMode     = "mode"          // the session's mode as an option
	optionThoughts = "show_thoughts" // whether the agent sends reasoning to the editor
)

type configOption struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Category    string `json:"category,omitempty"`
	Type        string `json:"type"`
	Current     any    `json:"currentValue"`
	Options     any    `json:"options,omitempty"` // []configChoice or []configGroup
}

type configChoice struct {
	ID          string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

type configGroup struct {
	Group   string         `json:"group"`
	Name    string         `json:"name"`
	Options []configChoice `json:"options"`
}

// choices returns the values of a select option. It groups them if the habit GroupedOptions is set.
func (a *agent) choices(list []configChoice) any {
	if !a.habits.GroupedOptions {
		return list
	}
	groups := []configGroup{{Group: "usual", Name: "Usual", Options: list[:1]}}
	if len(list) > 1 {
		groups = append(groups, configGroup{Group: "others", Name: "Others", Options: list[1:]})
	}
	return groups
}

// options returns the complete list of the session's options. The boolean option is included only if the editor
// supports boolean options.
func (s *session) options() []configOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []configOption
	if modes := s.a.modes(); len(modes) > 0 && !s.a.habits.ModesOnly {
		var choices []configChoice
		for _, m := range modes {
			choices = append(choices, configChoice(m))
		}
		list = append(list, configOption{ID: optionMode, Name: "Mode", Description: "How freely the agent acts",
			Category: "mode", Type: "select", Current: s.rec.mode, Options: s.a.choices(choices)})
	}
	booleans := s.a.capabilities().BooleanOptions
	for _, extra := range s.a.habits.Settings {
		o := configOption{ID: extra.ID, Name: extra.Name, Category: extra.Category, Type: "boolean",
			Current: s.rec.settings[extra.ID] == "true"}
		if len(extra.Values) > 0 {
			var choices []configChoice
			for _, v := range extra.Values {
				choices = append(choices, configChoice{v, v, ""})
			}
			o.Type, o.Options = "select", s.a.choices(choices)
			o.Current = cmp.Or(s.rec.settings[extra.ID], extra.Values[0])
		} else if !booleans {
			continue
		}
		list = append(list, o)
	}
	if booleans {
		list = append(list, configOption{ID: optionThoughts, Name: "Show thoughts",
			Description: "Send the model's reasoning to the editor", Type: "boolean", Current: s.rec.thoughts})
	}
	return list
}

func (a *agent) capabilities() ClientCapabilities {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.client
}

func (a *agent) setConfigOption(r *request, s *session, params json.RawMessage) *rpcError {
	if err := a.applyOption(s, params); err != nil {
		return err
	}
	a.conn.respond(r, object{"configOptions": s.shownOptions()}, nil)
	return nil
}

func (a *agent) applyOption(s *session, params json.RawMessage) *rpcError {
	var p struct {
		ConfigID *string
		Type     string
		Value    json.RawMessage
	}
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	if p.ConfigID == nil || p.Value == nil {
		return badParams("configId and value are required")
	}
	if a.v2() && p.Type != "id" && p.Type != "boolean" {
		return badParams("there is no type %q of values", p.Type)
	}
	switch {
	case *p.ConfigID == optionMode && !a.habits.ModesOnly && !a.habits.NoModes:
		var value string
		if json.Unmarshal(p.Value, &value) != nil || p.Type == "boolean" || !a.knownMode(value) {
			return a.unknownValue("option %q has no value %s", optionMode, p.Value)
		}
		s.write(event{Type: eventState, Mode: value})
		a.tellMode(s, value)
	case *p.ConfigID == optionThoughts && a.capabilities().BooleanOptions:
		var value bool
		if p.Type != "boolean" || json.Unmarshal(p.Value, &value) != nil || string(p.Value) == "null" {
			return badParams("option %q takes a boolean, with type boolean", optionThoughts)
		}
		s.write(event{Type: eventState, Thoughts: &value})
	default:
		return a.applySetting(s, *p.ConfigID, p.Type, p.Value)
	}
	return nil
}

func (a *agent) applySetting(s *session, id, kind string, raw json.RawMessage) *rpcError {
	i := slices.IndexFunc(a.habits.Settings, func(e Setting) bool { return e.ID == id })
	if i < 0 {
		return a.unknownValue("unknown option %q", id)
	}
	value, values, boolean := "", a.habits.Settings[i].Values, false
	if json.Unmarshal(raw, &value) != nil {
		value = string(raw)
	}
	if len(values) == 0 {
		values, boolean = []string{"true", "false"}, true
	}
	if !slices.Contains(values, value) || (kind == "boolean") != boolean {
		return a.unknownValue("option %q has no value %s", id, raw)
	}
	s.write(event{Type: eventState, Setting: id, Value: value})
	return nil
}
