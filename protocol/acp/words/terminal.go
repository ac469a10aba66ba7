package words

import (
	"context"
	"math"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
)

func compileTerminal(l *scenarios.Line) scenarios.Step {
	allow := l.Every("allow")
	opts := l.Options("match", "output", "exit", "signal")
	kind := l.One(0, "real or scripted")
	if kind == "real" {
		l.Starts("the editor runs commands that the agent asks for")
	}
	command := mockclient.ScriptedCommand{Match: opts["match"].Raw(), Signal: opts["signal"].Raw()}
	if w, ok := opts["exit"]; ok {
		command.Exit = l.Int(w, math.MinInt, "exit= is a number")
	}
	for _, w := range l.Rest[1:] {
		if w.Raw() != "hold" {
			return l.Usage(w.Column, "%q is nothing a terminal could do", w.Raw())
		}
		command.Hold = true
	}
	switch {
	case kind != "real" && kind != "scripted":
		return l.Usage(l.Rest[0].Column, "%q is no kind of terminal", kind)
	case kind == "real" && (len(opts) > 0 || command.Hold), kind == "scripted" && allow != nil:
		return l.Usage(l.Rest[0].Column, "that does not go with a %s terminal", kind)
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		if err := scenarios.Early(l, b, "terminals"); err != nil {
			return err
		}
		if kind == "real" {
			globs := []string{"*"}
			if allow != nil {
				globs = nil
			}
			for _, w := range allow {
				glob, err := b.Expand(w)
				if err != nil {
					return l.Fault(err)
				}
				globs = append(globs, glob)
			}
			of(b).change(func() {
				t := &of(b).terminals
				t.Real, t.Allow = true, append(t.Allow, globs...)
			})
			return nil
		}
		output, err := b.Expand(opts["output"])
		if err != nil {
			return l.Fault(err)
		}
		c := command
		c.Output = output
		of(b).change(func() { of(b).terminals.Script = append(of(b).terminals.Script, c) })
		return nil
	}
}
