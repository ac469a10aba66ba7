package refagent

import (
	"bytes"
	"encoding/json"
)

// forks reports whether the agent has session/fork.
func (a *agent) forks() bool { return a.options.Getenv(EnvFork) == "yes" }

// forkSession opens a session that begins with the conversation of another one, and goes on
// by itself from there.
func (a *agent) forkSession(r *request, params json.RawMessage) *rpcError {
	_, set, lines, err := a.stored(params, false)
	if err != nil {
		return err
	}
	s, err := a.open(newSessionID(), set, newRecord().fold(lines))
	if err != nil {
		return err
	}
	if _, err := s.log.Write(bytes.Join(lines, []byte("\n"))); err != nil {
		return fault(codeInternal, "writing the session: %v", err)
	}
	s.write(event{Type: eventSession, Cwd: set.cwd})
	a.introduce(r, s, s.id)
	return nil
}
