package refagent

import (
	"encoding/json"
	"slices"
)

// The modes of a session.
const (
	modeAgentic     = "agentic"     // runs tools, asks by policy
	modeInteractive = "interactive" // asks before every tool
	modeReadonly    = "readonly"    // runs no tool that changes anything
	modePlanning    = "planning"    // turns such tools into a plan
	modeEditing     = "editing"     // changes files without a question
	modeTrusting    = "trusting"    // asks before no tool
)

type mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

var modeList = []mode{
	{modeAgentic, "Agentic", "Runs tools on its own and asks where the policy says so"},
	{modeInteractive, "Interactive", "Asks before every tool"},
	{modeReadonly, "Read only", "Runs no tool that changes anything"},
	{modePlanning, "Planning", "Writes down what it would change instead of doing it"},
	{modeEditing, "Editing", "Changes files on its own"},
	{modeTrusting, "Trusting", "Asks before no tool"},
}

// usualModes is how many modes of modeList an agent without habits has.
const usualModes = 4

// modes returns the modes that sessions have.
func (a *agent) modes() []mode {
	if a.habits.NoModes {
		return nil
	}
	if a.habits.Modes == nil {
		return modeList[:usualModes]
	}
	var list []mode
	for _, id := range a.habits.Modes {
		list = append(list, modeList[slices.IndexFunc(modeList, func(m mode) bool { return m.ID == id })])
	}
	return list
}

func (a *agent) knownMode(id string) bool {
	return slices.ContainsFunc(a.modes(), func(m mode) bool { return m.ID == id })
}

type modeState struct {
	Current   string `json:"currentModeId"`
	Available []mode `json:"availableModes"`
}

// modes returns the state of the modes, nil if the session has none.
func (s *session) modes() *modeState {
	if s.a.habits.NoModes || s.a.habits.OptionsOnly {
		return nil
	}
	return &modeState{s.mode(), s.a.modes()}
}

// setMode changes the mode. It announces the option that mirrors the mode before
// it answers, so that the two agree when the editor reads the answer.
func (a *agent) setMode(r *request, s *session, params json.RawMessage) *rpcError {
	id, err := member(params, "modeId")
	if err != nil {
		return err
	}
	if !a.knownMode(id) {
		return a.unknownValue("unknown mode %q", id)
	}
	s.write(event{Type: eventState, Mode: id})
	a.tellOptions(s)
	a.conn.respond(r, nil, nil)
	return nil
}

// switchMode changes the mode on the agent's own initiative.
func (a *agent) switchMode(s *session, id string) {
	s.write(event{Type: eventState, Mode: id})
	a.tellMode(s, id)
	a.tellOptions(s)
}

func (a *agent) tellMode(s *session, id string) {
	if !a.habits.OptionsOnly {
		a.tell(s, update{Tag: "current_mode_update", Mode: id})
	}
}

func (a *agent) tellOptions(s *session) {
	if list := s.options(); len(list) > 0 {
		a.tell(s, update{Tag: "config_option_update", Options: list})
	}
}
