package words

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// aborting are the keys that break a login off: the end of the input, and then an interrupt.
var aborting = []string{"\x04", "\x03"}

// compileLogin compiles a line that performs the login of an auth method of type terminal. A login that the user
// breaks off must fail, and each other login must succeed.
func compileLogin(l *scenarios.Line) scenarios.Step {
	l.Need(0, "abort, or the text to type")
	l.AtMost(1)
	return func(ctx context.Context, b *scenarios.Branch) error {
		text, err := b.Expand(l.Rest[0])
		if err != nil {
			return l.Fault(err)
		}
		if err := b.Begin(ctx); err != nil {
			return err
		}
		cmd, end, err := terminalLogin(b)
		if err != nil {
			return err
		}
		defer end()
		b.Did(l)
		aborts, keys := text == "abort", []string{text + "\r", ""}
		if aborts {
			keys = aborting
		}
		wait, cancel := b.StepTimeout(ctx, 0)
		defer cancel()
		printed, err := mockclient.TypeInto(wait, cmd, keys...)
		_, exited := errors.AsType[*exec.ExitError](err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case wait.Err() != nil && aborts:
			return &scenarios.Skipped{Reason: "the login in the terminal ends neither with ^D nor with ^C"}
		case err != nil && wait.Err() == nil && !exited:
			return l.Fault(fmt.Errorf("running the login in a terminal: %w", err))
		case aborts == (err != nil):
			return nil
		}
		f := b.Failure(l, transcript.Outcome{})
		f.Expected = []string{"the login to end with status 0"}
		f.Observed = fmt.Sprintf("%v", err)
		if aborts {
			f.Expected, f.Observed = []string{"another status than 0, because the user broke the login off"}, "status 0"
		}
		f.Observed += fmt.Sprintf("; it printed %q", transcript.Clip(printed, 500))
		return &scenarios.Miss{Failure: f, Effect: true, Soft: true}
	}
}

// terminalLogin returns the command of the agent's first auth method of type terminal, and a function that ends what
// the command leaves behind. It returns a Skipped error if there is no such method.
func terminalLogin(b *scenarios.Branch) (cmd *exec.Cmd, end func(), err error) {
	var greeting wire.Value
	c := of(b)
	c.change(func() { greeting = c.greeting })
	for m := range greeting.Get("authMethods").Items() {
		if !m.Get("type").Is("terminal") {
			continue
		}
		env := map[string]string{"TERM": "xterm"}
		for name, value := range m.Get("env").Members() {
			env[name] = value.Str()
		}
		return b.Beside(lists.Collect(m.Get("args").Items(), wire.Value.Str), env)
	}
	return nil, nil, &scenarios.Skipped{Reason: "the agent offers no login in a terminal"}
}
