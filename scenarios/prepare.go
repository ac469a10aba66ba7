package scenarios

import (
	"context"
	"errors"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/transcript"
)

// Prepare runs the set-up step of the engine's profile, if it has one, for all runs that
// follow. An isolated engine isolates it. The error is one message for the user.
func (e *Engine) Prepare(ctx context.Context) error {
	o := agents.Preparation{Keeper: e.keeper(), Sandbox: agents.Sandbox{Temp: e.Temp, Self: e.Self, Cwd: e.Cwd,
		HostEnv: e.Host, Env: e.Env, Pass: e.PassEnv}}
	if e.Isolate {
		o.Isolate = func(root string, l agents.Launch) (*isolate.Isolation, error) { return e.isolation(root, l) }
	}
	p, err := e.Profile.Prepare(ctx, o)
	if err != nil {
		return errors.New(e.clean(err.Error()))
	}
	e.Profile = p
	return nil
}

const greeting = "# The agent is greeted.\nfurther off 'no turn'\nstart\n"

// Greeting starts the agent once, greets it and ends it. It returns what the agent calls
// itself, "" if it did not answer.
func (e *Engine) Greeting(ctx context.Context) (name string) {
	own := *e
	own.Out, own.Golden, own.Step, own.Launched, own.Share, own.Debug = "", nil, nil, nil, false, false
	own.Redact = func() func(transcript.Entry) transcript.Entry { return nil }
	s, err := own.Protocol.Parse("greeting", "greeting.txtar", []byte(greeting))
	if err != nil {
		return ""
	}
	return own.Run(ctx, s).AgentName
}
