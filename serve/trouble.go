package serve

import (
	"errors"

	"github.com/acp-test/acp-test/transcript"
)

// Network is the output of an agent that its editor reaches over a network. The network fails on request.
type Network interface {
	// Fail plans a failure of a kind that happens times times, to messages with the method at if at is not "". It calls
	// did with the details whenever the failure happens. It returns an error if the connection cannot fail so.
	Fail(kind, at string, times int, did func(details any)) error
	// Failed reports whether the network has failed for any connection, and whether that has ended this one.
	Failed() (any, this bool)
}

// Troubled is the kind of the transcript entry, from the network, for a failure that a script has planned. It has the
// members trouble, message (the method of the message that was hit), status and stopped (the agent did not get the
// message).
const Troubled transcript.Kind = "trouble"

// Inapplicable is the kind of the transcript note for an act that does not apply to the editor's connection. It says
// why. The scenario then proves nothing about the editor.
const Inapplicable transcript.Kind = "inapplicable"

// Trouble makes the network fail, as Network.Fail describes. On pipes, and for a failure that the connection does not
// have, it notes that the scenario does not apply. It returns errEnded if the failure has ended the connection.
func (s *Run) Trouble(kind, at string, times int) error {
	err := errors.New("the editor started the agent as a process, without a network: give the editor {url} or {ws}")
	n, ok := s.Out.(Network)
	if ok {
		err = n.Fail(kind, at, times, func(details any) {
			s.Log.Event(0, transcript.Network, Troubled, s.session, details)
		})
	}
	if err != nil {
		s.Log.Event(0, transcript.Note, Inapplicable, s.session, map[string]any{"text": err.Error()})
	} else if _, this := n.Failed(); this {
		return errEnded
	}
	return nil
}
