package refagent

import (
	"context"
	"errors"
)

// Model is the client of a model, for an agent that speaks another protocol.
type Model struct{ model *model }

// Offer is a tool that a model may call; Schema is that of its arguments.
type Offer struct {
	Name, About string
	Schema      map[string]any
}

// Reply is one complete answer of a model.
type Reply struct {
	Text   string
	Calls  []ModelCall
	Finish string // stop, tool_calls, length, content_filter …
	// Sent and Made are tokens; 0: not reported.
	Sent, Made int64
}

// OpenModel returns the client of the model that the environment names, see EnvBaseURL.
// Close it.
func OpenModel(getenv func(string) string) *Model { return &Model{newModel(getenv, &Habits{})} }

// Close ends connections that are idle.
func (m *Model) Close() { m.model.close() }

// Ask asks for one reply; on gets each piece as it arrives. A reply that breaks off is an
// error.
func (m *Model) Ask(ctx context.Context, history []ModelMessage, offers []Offer, on func(Piece)) (Reply, error) {
	var tools []tool
	for _, o := range offers {
		tools = append(tools, tool{name: o.Name, about: o.About, schema: o.Schema})
	}
	r, err := m.model.stream(ctx, history, tools, on)
	return Reply{Text: r.text, Calls: r.calls, Finish: r.finish, Sent: r.sent, Made: r.made}, err
}

// Refused returns the HTTP status with which a model refused a request, 0 if it did not.
func Refused(err error) int {
	var refused statusError
	if errors.As(err, &refused) {
		return refused.status
	}
	return 0
}
