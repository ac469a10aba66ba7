package refagent

import "encoding/json"

// The ids of the configuration options.
const (
	optionMode     = "mode"          // the session's mode again, as an option
	optionThoughts = "show_thoughts" // whether reasoning is sent to the editor
)

type configOption struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Category    string         `json:"category,omitempty"`
	Type        string         `json:"type"`
	Current     any            `json:"currentValue"`
	Options     []configChoice `json:"options,omitempty"`
}

type configChoice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// options is the complete list; the boolean one only for editors that know
// boolean options.
func (s *session) options() []configOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	choices := make([]configChoice, len(modeList))
	for i, m := range modeList {
		choices[i] = configChoice{m.ID, m.Name, m.Description}
	}
	list := []configOption{{
		ID: optionMode, Name: "Mode", Description: "How freely the agent acts",
		Category: "mode", Type: "select", Current: s.rec.mode, Options: choices,
	}}
	if s.a.capabilities().BooleanOptions {
		list = append(list, configOption{
			ID: optionThoughts, Name: "Show thoughts", Description: "Send the model's reasoning to the editor",
			Type: "boolean", Current: s.rec.thoughts,
		})
	}
	return list
}

func (a *agent) capabilities() ClientCapabilities {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.client
}

func (a *agent) setConfigOption(r *request, params json.RawMessage) *rpcError {
	s, err := a.known(params)
	if err != nil {
		return err
	}
	r.session = s.id
	if err := a.applyOption(s, params); err != nil {
		return err
	}
	a.conn.respond(r, map[string]any{"configOptions": s.options()}, nil)
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
	switch {
	case *p.ConfigID == optionMode:
		var value string
		if json.Unmarshal(p.Value, &value) != nil || p.Type == "boolean" || !knownMode(value) {
			return badParams("option %q has no value %s", optionMode, p.Value)
		}
		s.write(event{Type: eventState, Mode: value})
		a.tell(s, update{Tag: "current_mode_update", Mode: value})
	case *p.ConfigID == optionThoughts && a.capabilities().BooleanOptions:
		var value bool
		if p.Type != "boolean" || json.Unmarshal(p.Value, &value) != nil || string(p.Value) == "null" {
			return badParams("option %q takes a boolean, with type boolean", optionThoughts)
		}
		s.write(event{Type: eventState, Thoughts: &value})
	default:
		return badParams("unknown option %q", *p.ConfigID)
	}
	return nil
}
