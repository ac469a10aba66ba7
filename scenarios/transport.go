package scenarios

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/transport"
)

func transportCommands() []*Command {
	return []*Command{
		{
			Name: "send", Group: "acts", Alone: true, Args: "RAW", Captures: true,
			Summary: "write a raw line to the agent, valid or not",
			Detail:  "Variables outside quotes are expanded. Rules for clients do not judge it.",
			Compile: compileSend,
		}, {
			Name: "write-shape", Group: "acts", Args: "coalesce|flush|split=N|bytewise|normal",
			Summary: "choose how frames are written from now on",
			Detail: "coalesce holds frames back and writes them in one write at flush, or when the\n" +
				"shape changes; split=N writes pieces of N bytes; bytewise single bytes.",
			Compile: compileShape,
		}, {
			Name: "stall", Group: "acts", Alone: true, Args: "D",
			Summary: "read nothing from the agent for a time, like a slow editor",
			Detail:  "Time in which processes wait for a processor does not count.",
			Compile: func(l *Line) Step {
				d := l.OnlyDuration()
				return func(ctx context.Context, b *Branch) error {
					agent, err := b.Running(ctx, l)
					if err == nil {
						agent.PauseReading()
						over, _ := patient(context.WithoutCancel(ctx), d, nil, process.Starved, nil)
						context.AfterFunc(over, agent.ResumeReading)
						b.Did(l)
					}
					return err
				}
			},
		}, {
			Name: "pause", Group: "acts", Args: "D",
			Summary: "do nothing for a time; only for scenarios about timing",
			Detail:  "Use await instead if there is an entry to await: lint asks for the reason of a pause.",
			Compile: func(l *Line) Step {
				d := l.OnlyDuration()
				return func(ctx context.Context, b *Branch) error {
					b.Did(l)
					timer := time.NewTimer(d)
					defer timer.Stop()
					select {
					case <-timer.C:
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
			},
		}, {
			Name: "close-stdin", Group: "acts", Cuts: true, Process: true, Summary: "close the agent's input",
			Compile: Plain(func(ctx context.Context, b *Branch, l *Line) error {
				agent, err := b.Running(ctx, l)
				if err == nil {
					b.run.change(func(s *state) { s.ended = true })
					agent.CloseStdin()
				}
				return err
			}),
		}, {
			Name: "signal", Group: "acts", Process: true, Args: "SIGNAL",
			Summary: "send a signal to the agent: INT, TERM, HUP, KILL",
			Compile: compileSignal,
		}, {
			Name: "kill", Group: "acts", Cuts: true, Process: true,
			Summary: "send SIGKILL to the agent and the processes it started, and wait for its end",
			Compile: Plain(func(ctx context.Context, b *Branch, l *Line) error {
				if err := b.Begin(ctx); err != nil {
					return err
				}
				return b.run.killAgent(ctx, l)
			}),
		}, {
			Name: "restart", Group: "acts", Process: true,
			Summary: "start the agent again with the same HOME and workspace, and initialize it",
			Detail: "First ends the running agent by closing its input, then by signals.\nSessions keep their ids, " +
				"so that they can be loaded.",
			Compile: Plain(func(ctx context.Context, b *Branch, l *Line) error {
				return b.another(ctx, l, func() { b.run.stopAgent(ctx) })
			}),
		}, {
			Name: "beside", Group: "acts", Process: true,
			Summary: "start a second process of the agent with the same HOME and workspace, and initialize it",
			Detail:  "The first process runs on until a restart or the end, but acp-test sends it nothing\nmore.",
			Compile: Plain(func(ctx context.Context, b *Branch, l *Line) error { return b.another(ctx, l, b.run.leaveAgent) }),
		},
	}
}

// another calls leave, which stops the agent or leaves it running. It then starts a new process and performs the
// greeting.
func (b *Branch) another(ctx context.Context, l *Line, leave func()) error {
	if err := b.Begin(ctx); err != nil {
		return err
	}
	b.Did(l)
	leave()
	if err := b.Launch(ctx); err != nil {
		return err
	}
	return b.client.Greet(ctx, b, l)
}

// ofProcess wraps the step of a command that concerns the agent's process. The wrapped step skips the scenario if the
// agent has no local process.
func ofProcess(name string, run Step) Step {
	return func(ctx context.Context, b *Branch) error {
		if p := b.run.engine.Profile; p.Remote() {
			return &Skipped{fmt.Sprintf("%s does not apply: the agent has no process here, it is reached at %s", name, p.URL)}
		}
		return run(ctx, b)
	}
}

func compileSend(l *Line) Step {
	l.Starts("the agent gets a raw message")
	l.Need(0, "what to send")
	l.AtMost(1, "quote the line")
	source := l.Source(l.Rest[0])
	return func(ctx context.Context, b *Branch) error {
		r := b.run
		if err := r.Launch(ctx); err != nil {
			return err
		}
		text, err := b.Content(l, source)
		if err != nil {
			return err
		}
		if _, err := r.Alive(l); err != nil {
			return err
		}
		e, err := r.client.Send([]byte(strings.TrimSuffix(text, "\n")))
		if err != nil && e.Seq == 0 {
			return r.Unsent(l, err)
		}
		r.Excuse(e.Seq)
		r.ExcuseAll()
		b.Acted(b.Session(), e)
		r.Name(l.Alias, e)
		return nil
	}
}

func compileShape(l *Line) Step {
	s := l.One(0, "a shape")
	l.AtMost(1)
	shape, ok := transport.ParseShape(s)
	switch {
	case ok || s == "flush":
	case strings.HasPrefix(s, "split="):
		return l.Usage(l.Rest[0].Column, "split= is a number of bytes")
	default:
		return l.Usage(l.Rest[0].Column, "%q is no shape %s", s,
			mistake.Nearest(s, []string{"coalesce", "flush", "split=", "bytewise", "normal"}))
	}
	if s == "bytewise" || strings.HasPrefix(s, "split=") {
		l.Alone() // a shared process gets only complete lines
	}
	return func(ctx context.Context, b *Branch) error {
		agent, err := b.Running(ctx, l)
		if err != nil {
			return err
		}
		b.Did(l)
		if s == "flush" {
			return agent.Flush(ctx)
		}
		return agent.WriteShape(ctx, shape)
	}
}

func compileSignal(l *Line) Step {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
		"KILL": syscall.SIGKILL}
	s := l.One(0, "a signal")
	sig, ok := signals[strings.TrimPrefix(s, "SIG")]
	if !ok {
		return l.Usage(l.Rest[0].Column, "%q is no signal", s)
	}
	return func(ctx context.Context, b *Branch) error {
		agent, err := b.Running(ctx, l)
		if err != nil {
			return err
		}
		b.run.change(func(s *state) { s.ended = true })
		if err := agent.Signal(sig); err != nil {
			return l.Fault(fmt.Errorf("sending %s: %w", s, err))
		}
		return nil
	}
}
