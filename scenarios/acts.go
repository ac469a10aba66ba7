package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
)

func actCommands() []*Command {
	return []*Command{
		{
			Name: "start", Group: "acts", Summary: "start the agent",
			Detail:  "Other acts start it when they need it.",
			Compile: plain(func(ctx context.Context, b *branch, _ *line) error { return b.run.begin(ctx) }),
		}, {
			Name: "initialize", Group: "acts", Args: "[version=N]", Captures: true,
			Summary: "send initialize and wait for the answer",
			Detail:  "An error answer is a failure, unless the line has a name: then the script judges it.",
			Compile: compileInitialize,
		}, {
			Name: "authenticate", Group: "acts", Args: "METHOD", Captures: true,
			Summary: "send authenticate and wait for the answer", Compile: compileCall("authenticate", "methodId"),
		}, {
			Name: "logout", Group: "acts", Captures: true,
			Summary: "send logout and wait for the answer", Compile: compileCall("logout", ""),
		}, {
			Name: "session", Group: "acts", Args: "new|load|resume|close|delete NAME [cwd=DIR] [add=DIR]… [meta=JSON] [wait=no] | list [cwd=DIR] [cursor=TEXT] | list all [NAME…] [cwd=DIR]", Captures: true,
			Summary: "open, list or end a session and wait for the answer",
			Detail: "NAME is the script's name for the session. load and resume use the id the name\n" +
				"already has. cwd is relative to the workspace. An error answer is a failure,\n" +
				"unless the line has a name: then the script judges it. wait=no only sends.\n" +
				"list all follows the cursors to the end: no cursor and no session may come\n" +
				"twice, and each NAME has to be there.",
			Compile: compileSession,
		}, {
			Name: "prompt", Group: "acts", Args: "[NAME] TEXT [attach=FILE]… [meta=JSON]", Captures: true,
			Summary: "send a prompt, and do not wait for the end of the turn",
			Detail: "Starts the agent, initializes it and opens a session with defaults unless the\n" +
				"script did. attach= adds a file of the workspace: as an image or audio block by\n" +
				"its extension, embedded if the agent takes embedded context, else as a link. An\n" +
				"agent may look into a picture: give it a real one, as -- dot.png.base64 --.\n" +
				"meta= is _meta.\n" +
				"Each prompt's text must be unique in the scenario: the model's turns are found by it.",
			Compile: compilePrompt,
		}, {
			Name: "cancel", Group: "acts", Args: "[NAME]", Captures: true,
			Summary: "send session/cancel",
			Detail:  "Open permission requests of the session are answered cancelled, unless permit says\notherwise.",
			Compile: func(l *line) (func(context.Context, *branch) error, error) {
				if m := l.atMost(1); m != nil {
					return nil, m
				}
				name, m := l.optionalSession()
				if m != nil {
					return nil, m
				}
				return func(ctx context.Context, b *branch) error {
					s, err := b.need(ctx, l, name)
					if err != nil {
						return err
					}
					return b.notify(l, s, "session/cancel", map[string]any{"sessionId": s.id})
				}, nil
			},
		}, {
			Name: "cancel-request", Group: "acts", Args: "REF", Captures: true,
			Summary: "send $/cancel_request for a request a line above named",
			Compile: compileCancelRequest,
		}, {
			Name: "answer", Group: "acts", Args: "REF CHOICE | REF result=JSON | REF error=CODE", Captures: true,
			Summary: "answer a request of the agent that is held",
			Detail: "REF is the name of the line that awaited it. CHOICE is an option kind or\n" +
				"cancelled for a permission. Answering twice, or with what was not offered\n" +
				"(id=OPTION), breaks the protocol on purpose.",
			Compile: compileAnswer,
		}, {
			Name: "set-mode", Group: "acts", Args: "[NAME] MODE", Captures: true,
			Summary: "send session/set_mode and wait for the answer",
			Compile: compileSet("session/set_mode", "modeId", ""),
		}, {
			Name: "set-option", Group: "acts", Args: "[NAME] ID VALUE", Captures: true,
			Summary: "send session/set_config_option and wait for the answer",
			Detail:  "true and false are sent as booleans.",
			Compile: compileSet("session/set_config_option", "configId", "value"),
		}, {
			Name: "request", Group: "acts", Args: "METHOD [JSON]", Captures: true,
			Summary: "send any request, and do not wait",
			Detail:  "Name it (as R) and await response R. Variables in JSON are expanded.",
			Compile: compileRaw(true),
		}, {
			Name: "notify", Group: "acts", Args: "METHOD [JSON]", Captures: true,
			Summary: "send any notification", Compile: compileRaw(false),
		}, {
			Name: "release", Group: "acts", Args: "GATE",
			Summary: "release a gate of the model",
			Detail: "A gate that is not reached yet will not hold. What was written to the agent\n" +
				"before comes before: up to a second is given to it to take that from its stdin.",
			Compile: compileRelease,
		}, {
			Name: "write", Group: "acts", Args: "FILE @SOURCE|TEXT",
			Summary: "write a file into the workspace, as the user would", Compile: compileFile(writeFile),
		},
	}
}

// plain compiles a command without arguments.
func plain(run func(context.Context, *branch, *line) error) func(*line) (func(context.Context, *branch) error, error) {
	return func(l *line) (func(context.Context, *branch) error, error) {
		if m := l.atMost(0); m != nil {
			return nil, m
		}
		return func(ctx context.Context, b *branch) error { return run(ctx, b, l) }, nil
	}
}

// notify sends a notification and sets the cursor to it.
func (b *branch) notify(l *line, s *session, method string, params any) error {
	_, editor, err := b.run.live(l)
	if err != nil {
		return err
	}
	e, err := editor.Notify(method, params)
	if err != nil && e.Seq == 0 {
		return b.run.unsent(l, err)
	}
	b.acted(s, e)
	b.run.name(l.as, e)
	return nil
}

// call sends a request and waits for the answer unless told otherwise. An
// error answer ends the script, unless the line has a name and so judges it
// itself.
func (b *branch) call(ctx context.Context, l *line, s *session, method string, params any, wait bool) (transcript.Entry, error) {
	c, err := b.send(ctx, l, s, method, params)
	if err != nil || !wait {
		return transcript.Entry{}, err
	}
	return b.answer(ctx, l, c, l.as == "")
}

// send sends a request and sets the cursor to it.
func (b *branch) send(ctx context.Context, l *line, s *session, method string, params any) (*mockclient.Call, error) {
	_, editor, err := b.run.live(l)
	if err != nil {
		return nil, err
	}
	c := editor.Call(method, params)
	if c.Entry.Seq == 0 {
		_, err := c.Wait(ctx)
		return nil, b.run.unsent(l, err)
	}
	b.acted(s, c.Entry)
	b.run.name(l.as, c.Entry)
	return c, nil
}

// answer waits for the answer to a request.
func (b *branch) answer(ctx context.Context, l *line, c *mockclient.Call, must bool) (transcript.Entry, error) {
	r := b.run
	wait, cancel := r.patience(ctx, c.Entry.Method)
	defer cancel()
	e, err := c.Wait(wait)
	r.settle(e)
	var rpc *mockclient.RPCError
	switch {
	case err == nil, errors.As(err, &rpc) && !must:
		return e, nil
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	}
	o := transcript.Outcome{Verdict: transcript.Unmeetable, Entry: e}
	if rpc == nil && wait.Err() == nil {
		r.expectExit()
	}
	if wait.Err() != nil {
		o.Verdict, o.Cause = transcript.Unmet, context.Cause(wait)
	}
	f := r.failure(l, o)
	f.Expected = []string{"an answer to " + c.Entry.Method}
	switch {
	case rpc != nil:
		f.Expected = []string{"a result of " + c.Entry.Method}
		f.Observed = brief(e)
		f.Entries = []int{e.Seq}
		if rpc.Code == -32000 {
			f.Advice = "the agent asks for authentication: give it a key with --env or --pass-env, or authenticate in the script"
		}
	case wait.Err() != nil:
		f.Observed = "nothing"
	default:
		f.Observed = "the agent exited"
		f.Reason = err.Error()
	}
	m := &miss{failure: f, effect: true}
	if rpc != nil && rpc.Code == -32000 {
		m.verdict = Inconclusive
	}
	if c.Entry.Method == "initialize" && rpc == nil {
		f.Advice = agentAdvice(f, r)
		r.change(func(s *state) { s.unstarted = f })
	}
	return e, m
}

func compileInitialize(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("version")
	if m != nil {
		return nil, m
	}
	if m := l.atMost(0); m != nil {
		return nil, m
	}
	version := json.RawMessage("1")
	if w, ok := opts["version"]; ok {
		version = json.RawMessage(w.Raw())
		if !json.Valid(version) {
			return nil, l.usage(w.Column, "version= takes a JSON value")
		}
	}
	return func(ctx context.Context, b *branch) error {
		if err := b.run.launchAgent(ctx); err != nil {
			return err
		}
		return b.initialize(ctx, l, version)
	}, nil
}

// initialize sends initialize and remembers what the agent says of itself.
func (b *branch) initialize(ctx context.Context, l *line, version json.RawMessage) error {
	var offer json.RawMessage
	var err error
	b.run.change(func(s *state) { offer, err = json.Marshal(s.client) })
	if err != nil {
		return err
	}
	e, err := b.call(ctx, l, nil, "initialize", map[string]any{
		"protocolVersion":    version,
		"clientCapabilities": offer,
		"clientInfo":         map[string]any{"name": "acp-test", "title": "acp-test", "version": "1"},
	}, true)
	if err != nil {
		return err
	}
	r := b.run
	r.change(func(s *state) { s.ready, s.init = true, slices.Clone(e.JSON().Get("result").Raw()) })
	return r.applies()
}

// compileCall compiles a request with at most one parameter.
func compileCall(method, param string) func(*line) (func(context.Context, *branch) error, error) {
	return func(l *line) (func(context.Context, *branch) error, error) {
		n := 0
		if param != "" {
			n = 1
			if _, m := l.need(0, param); m != nil {
				return nil, m
			}
		}
		if m := l.atMost(n); m != nil {
			return nil, m
		}
		return func(ctx context.Context, b *branch) error {
			if err := b.run.begin(ctx); err != nil {
				return err
			}
			params := map[string]any{}
			if n == 1 {
				v, err := b.expand(l.words[0])
				if err != nil {
					return l.runtime(err)
				}
				params[param] = v
			}
			_, err := b.call(ctx, l, nil, method, params, true)
			return err
		}, nil
	}
}

func compileRelease(l *line) (func(context.Context, *branch) error, error) {
	gate, m := l.one(0, "the name of a gate")
	if m != nil {
		return nil, m
	}
	l.p.scenario.gates = append(l.p.scenario.gates, gateUse{gate, l.Number})
	if m := l.atMost(1); m != nil {
		return nil, m
	}
	return func(ctx context.Context, b *branch) error {
		if err := b.run.begin(ctx); err != nil {
			return err
		}
		// Else the agent may see the model go on before it sees a cancel that
		// the script sent first.
		taken, cancel := context.WithTimeout(ctx, time.Second)
		if agent := b.run.running(); agent != nil {
			agent.Taken(taken)
		}
		cancel()
		e, err := b.run.model.Release(gate)
		if err != nil {
			return l.runtime(err)
		}
		b.acted(b.current(), e)
		return nil
	}, nil
}

// compileFile compiles "FILE @SOURCE|TEXT": do gets both with their variables
// expanded.
func compileFile(do func(b *branch, l *line, name, text string) error) func(*line) (func(context.Context, *branch) error, error) {
	return func(l *line) (func(context.Context, *branch) error, error) {
		if _, m := l.need(1, "the text"); m != nil {
			return nil, m
		}
		if m := l.atMost(2); m != nil {
			return nil, m
		}
		source, err := l.p.source(l, l.words[1])
		if err != nil {
			return nil, err
		}
		return func(_ context.Context, b *branch) error {
			name, err := b.expand(l.words[0])
			if err != nil {
				return l.runtime(err)
			}
			text, err := b.expand(source)
			if err != nil {
				return l.runtime(err)
			}
			return do(b, l, name, text)
		}, nil
	}
}

func writeFile(b *branch, l *line, name, text string) error {
	b.run.did(l)
	return writeFiles(b.run.box.work, map[string][]byte{filepath.ToSlash(name): []byte(text)})
}
