package refagent

import (
	"encoding/json"
	"slices"
)

// The modes of a session.
const (
	modeAgentic     = "agentic"     // runs tools, asks for some
	modeInteractive = "interactive" // asks before every tool
	modeReadonly    = "readonly"    // runs no tool that makes changes
	modePlanning    = "planning"    // makes a plan instead of running such tools
	modeEditing     = "editing"     // changes files without asking
	modeTrusting    = "trusting"    // never asks
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

// usualModes is the number of modes in modeList that an agent without habits offers.
const usualModes = 4

// modes returns the modes that the agent offers.
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

// modes returns the current and the available modes, or nil if the session shows none.
func (s *session) modes() *modeState {
	if s.a.habits.NoModes || s.a.habits.OptionsOnly {
		return nil
	}
	return &modeState{s.mode(), s.a.modes()}
}

// setMode handles session/set_mode. Before it responds, it announces the configuration option for the mode, so that
// the editor sees the same value in both.
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

// switchMode changes the mode without a request from the editor, and announces the change.
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
