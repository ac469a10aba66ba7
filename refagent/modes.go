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
}

func knownMode(id string) bool {
	return slices.ContainsFunc(modeList, func(m mode) bool { return m.ID == id })
}

type modeState struct {
	Current   string `json:"currentModeId"`
	Available []mode `json:"availableModes"`
}

func (s *session) modes() *modeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &modeState{s.rec.mode, modeList}
}

// setMode changes the mode; the option that mirrors it is announced before
// the answer, so that the two agree when the editor reads it.
func (a *agent) setMode(r *request, params json.RawMessage) *rpcError {
	s, err := a.known(params)
	if err != nil {
		return err
	}
	r.session = s.id
	var p struct{ ModeID *string }
	err = decodeParams(params, &p)
	switch {
	case err != nil:
	case p.ModeID == nil:
		err = badParams("modeId is missing")
	case !knownMode(*p.ModeID):
		err = badParams("unknown mode %q", *p.ModeID)
	default:
		s.write(event{Type: eventState, Mode: *p.ModeID})
		a.tell(s, update{Tag: "config_option_update", Options: s.options()})
	}
	a.conn.respond(r, nil, err)
	return nil
}

// switchMode is a change of mode by the agent itself.
func (a *agent) switchMode(s *session, id string) {
	s.write(event{Type: eventState, Mode: id})
	a.tell(s, update{Tag: "current_mode_update", Mode: id})
	a.tell(s, update{Tag: "config_option_update", Options: s.options()})
}
