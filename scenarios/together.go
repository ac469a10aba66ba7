package scenarios

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transport"
)

// atOnce lists the commands that never wait for the agent. Only these are allowed in a block that runs while the
// agent is stopped.
var atOnce = []string{"cancel", "cancel-request", "release", "answer", "prompt", "request", "notify", "write",
	"session", "permit"}

// longestHold is the maximum time for which the agent is stopped. The lines may fill its input pipe, and then only a
// running agent can make room.
const longestHold = time.Second

func togetherCommand() *Command {
	return &Command{
		Name: "together", Group: "acts", Args: "", Blocks: 1,
		Summary: "do several things while the agent is stopped",
		Detail: "acp-test stops the agent's process group, plays the lines of the block, and continues\n" +
			"the processes after at most a second, so that the agent finds everything at once. Only\n" +
			"lines that wait for nothing are allowed: permit, cancel, cancel-request, release, answer,\n" +
			"prompt, request, notify, write, and session with wait=no. An agent that cannot be stopped,\n" +
			"on Windows or at a URL, gets the lines one right after the other.",
		Compile: compileTogether,
	}
}

func compileTogether(l *Line) Step {
	steps := l.Body(0)
	for _, in := range l.Blocks[0] {
		waits := in.Is("session") && !slices.ContainsFunc(in.Words, func(w script.Word) bool { return w.Raw() == "wait=no" })
		if in.Kind == script.Command && (waits || !slices.Contains(atOnce, in.Name.Raw())) {
			l.Reject(in.Number, in.Name.Column, in.Name.Raw()+" may wait for the agent, which is stopped in together")
		}
	}
	return func(ctx context.Context, b *Branch) error {
		agent, err := b.Running(ctx, l)
		if err != nil {
			return err
		}
		goOn, err := agent.Hold()
		if errors.Is(err, transport.ErrExited) {
			return b.Unsent(l, err)
		}
		if err != nil { // this agent cannot be stopped
			return b.play(ctx, steps)
		}
		b.run.change(func(s *state) { s.held = true })
		on := sync.OnceValue(func() error {
			b.run.change(func(s *state) { s.held = false })
			return goOn()
		})
		late := time.AfterFunc(longestHold, func() { _ = on() })
		defer late.Stop()
		err = b.play(ctx, steps)
		if on := on(); err == nil && on != nil {
			return l.Fault(on)
		}
		return err
	}
}
