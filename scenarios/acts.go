package scenarios

import (
	"context"
	"path/filepath"
	"time"

	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transcript"
)

func actCommands() []*Command {
	return []*Command{
		{
			Name: "start", Group: "acts", Alone: true, Summary: "start the agent",
			Detail:  "Other acts start it when they need it.",
			Compile: Plain(func(ctx context.Context, b *Branch, _ *Line) error { return b.Begin(ctx) }),
		}, {
			Name: "release", Group: "acts", Args: "GATE",
			Summary: "release a gate of the model",
			Detail: "A released gate no longer holds, even if the model reaches it only later. The agent gets\n" +
				"up to a second to read what acp-test wrote to it before.",
			Compile: compileRelease,
		}, {
			Name: "write", Group: "acts", Args: "FILE @SOURCE|TEXT",
			Summary: "write a file into the workspace, as the user would", Compile: CompileFile(writeFile),
		},
		togetherCommand(),
	}
}

// Plain compiles a command without arguments.
func Plain(run func(context.Context, *Branch, *Line) error) func(*Line) Step {
	return func(l *Line) Step {
		l.AtMost(0)
		return func(ctx context.Context, b *Branch) error { return run(ctx, b, l) }
	}
}

func compileRelease(l *Line) Step {
	gate := l.One(0, "the name of a gate")
	l.UsesGate(gate)
	l.AtMost(1)
	return func(ctx context.Context, b *Branch) error {
		if err := b.Begin(ctx); err != nil {
			return err
		}
		// Before the model goes on, the agent must have read a cancel that the script sent.
		taken, cancel := context.WithTimeout(ctx, time.Second)
		if agent := b.Agent(); agent != nil && !stateOf(b.run, func(s *state) bool { return s.held }) {
			agent.Taken(taken)
			digested(taken, agent)
		}
		cancel()
		e, err := b.run.model.Release(gate)
		if err != nil {
			return l.Fault(err)
		}
		b.Acted(b.Session(), e)
		return nil
	}
}

// digesting is the longest time that an opening gate waits for the agent to process the input it has read. An agent
// whose threads never stop must not hold up the run.
const digesting = 100 * time.Millisecond

// digested waits until no thread of the agent is running, for at most digesting. An agent without a running thread has
// processed its input.
func digested(ctx context.Context, agent talker) {
	ctx, cancel := context.WithTimeout(ctx, digesting)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for agent.Busy() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// CompileFile compiles "FILE @SOURCE|TEXT". do receives the file name and the text, both with their variables
// expanded.
func CompileFile(do func(b *Branch, l *Line, name, text string) error) func(*Line) Step {
	return func(l *Line) Step {
		l.Need(1, "the text")
		l.AtMost(2)
		source := l.Source(l.Rest[1])
		return func(_ context.Context, b *Branch) error {
			name, err := b.Expand(l.Rest[0])
			if err != nil {
				return l.Fault(err)
			}
			text, err := b.Expand(source)
			if err != nil {
				return l.Fault(err)
			}
			return do(b, l, name, text)
		}
	}
}

func writeFile(b *Branch, l *Line, name, text string) error {
	b.Did(l)
	if b.Agent() != nil {
		b.run.t.Event(b.run.connection(), transcript.Note, transcript.FileWritten, "",
			map[string]string{"path": filepath.ToSlash(name), "text": text})
	}
	defer b.changedByOthers(context.Background())
	return workspace.WriteIn(b.run.files, "work", map[string][]byte{filepath.ToSlash(name): []byte(text)})
}
