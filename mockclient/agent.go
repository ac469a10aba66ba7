package mockclient

import (
	"context"
	"io"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// What an editor has of the agent it talks to; see package transport.
type (
	// Agent is one running agent.
	Agent = transport.Agent
	// Command says how to run an agent as a process.
	Command = transport.Command
	// Exit says how an agent ended.
	Exit = transport.Exit
	// Process is a process of the agent's tree.
	Process = transport.ProcessInfo
	// Shutdown says how an agent was brought to its end.
	Shutdown = transport.Shutdown
	// Shape is how frames to the agent are cut into writes.
	Shape = transport.Shape
	// Pace is how long an editor takes where editors take time.
	Pace = transport.Pace
)

// Errors of writing to an agent.
var (
	ErrExited      = transport.ErrExited
	ErrStdinClosed = transport.ErrStdinClosed
)

// Start runs an agent as the connection conn of the run that t logs. ctx bounds
// the start alone.
func Start(ctx context.Context, t *transcript.Transcript, conn int, c Command) (*Agent, error) {
	return transport.Start(ctx, t, conn, c)
}

// InProcess runs an agent inside this process, as transport.InProcess does.
func InProcess(
	t *transcript.Transcript, conn int, serve func(ctx context.Context, in io.Reader, out io.Writer) error,
) *Agent {
	return transport.InProcess(t, conn, serve)
}
