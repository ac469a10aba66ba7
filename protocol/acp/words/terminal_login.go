package words

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// aborting are the keys that abort a login: the end of the input, and then interrupts.
var aborting = []string{"\x04", "\x03", "\x03", "\x03"}

// compileLogin compiles a line that runs the agent's login in a terminal. An aborted login must fail, and any other
// must succeed.
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
		b.Did(l)
		aborts, keys := text == "abort", []string{text + "\r"}
		if aborts {
			keys = aborting
		}
		wait, cancel := b.StepTimeout(ctx, 0)
		defer cancel()
		printed, typed, err := mockclient.TypeInto(wait, cmd, end, keys...)
		if !aborts && text != "" {
			printed = strings.ReplaceAll(printed, text, "[what was typed]") // the terminal shows it
		}
		printed = fmt.Sprintf("; it printed %q", transcript.Clip(printed, 500))
		missed := func(expected, observed string) error {
			f := b.Failure(l, transcript.Outcome{})
			f.Expected, f.Observed = []string{expected}, observed+printed
			return &scenarios.Miss{Failure: f, Effect: true, Soft: aborts}
		}
		_, exited := errors.AsType[*exec.ExitError](err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errors.ErrUnsupported):
			return &scenarios.Skipped{Reason: "acp-test runs logins in terminals only on Unix"}
		case wait.Err() != nil && aborts:
			return &scenarios.Skipped{Reason: "the login in the terminal ends neither after ^D nor after ^C" + printed}
		case err != nil && wait.Err() == nil && !exited:
			return l.Fault(fmt.Errorf("running the login in a terminal: %w", err))
		case typed == 0 && aborts:
			return &scenarios.Skipped{Reason: "the login in the terminal ended by itself, before it was aborted" + printed}
		case aborts && err == nil:
			return missed("a status other than 0, because the login was aborted", "status 0")
		case !aborts && err != nil:
			return missed("the login to end with status 0", err.Error())
		}
		return nil
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
		env := []string{"TERM=xterm"}
		for name, value := range m.Get("env").Members() {
			env = append(env, name+"="+value.Str())
		}
		return b.AgentCommand(lists.Collect(m.Get("args").Items(), wire.Value.Str), env)
	}
	return nil, nil, &scenarios.Skipped{Reason: "the agent offers no login in a terminal"}
}
