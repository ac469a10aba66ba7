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

// Plain returns the Compile function of a command without arguments. run plays a line of the command.
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
		// The agent must read a cancel that the script sent before the model continues.
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

// digesting is the maximum time that a gate waits, before it opens, for the agent to process its input. An agent
// whose threads never stop must not delay the run further.
const digesting = 100 * time.Millisecond

// digested waits until no thread of the agent is running, but not longer than digesting. An agent without running
// threads has processed its input.
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

// CompileFile returns the Compile function of a command "FILE @SOURCE|TEXT". do gets the file name and the text,
// after the variables in both were expanded.
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
