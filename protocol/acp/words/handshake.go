package words

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

func compileInitialize(l *scenarios.Line) scenarios.Step {
	opts := l.Options("version")
	l.AtMost(0)
	var version json.RawMessage
	if w, ok := opts["version"]; ok {
		version = json.RawMessage(w.Raw())
		if !json.Valid(version) {
			return l.Usage(w.Column, "version= takes a JSON value")
		}
	}
	if version != nil || l.Alias != "" {
		l.Alone() // the script looks at the answer, so the agent must not be shared with other scenarios
	}
	return func(ctx context.Context, b *scenarios.Branch) error {
		if err := b.Launch(ctx); err != nil {
			return err
		}
		return initialize(ctx, b, l, version)
	}
}

// initialize sends the request initialize and stores the result. If version is nil, the editor offers the client's
// version.
func initialize(ctx context.Context, b *scenarios.Branch, l *scenarios.Line, version json.RawMessage) error {
	c := of(b)
	own := max(c.version, 1)
	if version == nil {
		version = json.RawMessage(strconv.Itoa(own))
	}
	var hello json.RawMessage
	var err error
	c.change(func() { hello, err = json.Marshal(c.hello(version)) })
	if err != nil {
		return err
	}
	e, err := call(ctx, b, l, nil, "initialize", hello, true)
	if err != nil {
		return err
	}
	c.change(func() { c.greeting = e.JSON().Get("result") })
	if got, ok := c.greeting.Get("protocolVersion").Int(); ok && own == v2 && got == 1 {
		f := b.Failure(l, transcript.Outcome{Verdict: transcript.Unmeetable, Entry: e})
		f.Expected, f.Observed = []string{"an agent that speaks version 2"}, "the agent answered with version 1"
		f.Advice = "omit --protocol to test version 1"
		b.NotStarted(f)
		return &scenarios.Miss{Failure: f, Verdict: results.Inconclusive}
	}
	if b.Provided() {
		if err := provide(ctx, b); err != nil {
			return err
		}
	}
	return b.Greeted()
}

// compileCall compiles a request with at most one parameter.
func compileCall(method, param string) func(*scenarios.Line) scenarios.Step {
	return func(l *scenarios.Line) scenarios.Step {
		n := 0
		if param != "" {
			n = 1
			l.Need(0, param)
		}
		l.AtMost(n)
		return func(ctx context.Context, b *scenarios.Branch) error {
			if err := b.Begin(ctx); err != nil {
				return err
			}
			params := map[string]any{}
			if n == 1 {
				v, err := b.Expand(l.Rest[0])
				if err != nil {
					return l.Fault(err)
				}
				params[param] = v
			}
			c := of(b)
			if method == "authenticate" {
				c.change(func() { c.asked = true })
			}
			_, err := call(ctx, b, l, nil, c.method(method), params, true)
			return err
		}
	}
}

// notify sends a notification and moves the cursor to it.
func notify(
	ctx context.Context, b *scenarios.Branch, l *scenarios.Line, s *scenarios.Session, method string, params any,
) error {
	editor, err := live(b, l)
	if err != nil {
		return err
	}
	e, err := editor.NotifyContext(ctx, method, params)
	if err != nil && e.Seq == 0 {
		return b.Unsent(l, err)
	}
	b.Acted(s, e)
	b.Name(l.Alias, e)
	return nil
}

// call sends a request. If wait is set, it waits for the answer. An error answer then ends the script, unless the line
// gives the request a name: then later lines judge the answer.
func call(ctx context.Context, b *scenarios.Branch, l *scenarios.Line, s *scenarios.Session, method string, params any,
	wait bool) (transcript.Entry, error) {
	c, err := send(ctx, b, l, s, method, params)
	if err != nil || !wait {
		return transcript.Entry{}, err
	}
	return answer(ctx, b, l, c, l.Alias == "")
}

// untimed lists the requests whose answer may take any time: a turn, and a login by the user.
var untimed = []string{"session/prompt", "authenticate", "auth/login"}

// send sends a request and moves the cursor to it.
func send(ctx context.Context, b *scenarios.Branch, l *scenarios.Line, s *scenarios.Session, method string,
	params any) (*mockclient.Call, error) {
	editor, err := live(b, l)
	if err != nil {
		return nil, err
	}
	written, cancel := b.StepTimeout(ctx, 0) // over HTTP, the write ends with the server's acceptance
	defer cancel()
	c := editor.CallContext(written, method, params)
	if c.Entry.Seq == 0 {
		_, err := c.Wait(ctx)
		return nil, greeted(b, method, b.Unsent(l, err))
	}
	b.Acted(s, c.Entry)
	b.Name(l.Alias, c.Entry)
	return c, nil
}

// answer waits for the answer to a request. If must is set, an error answer is a Miss.
func answer(ctx context.Context, b *scenarios.Branch, l *scenarios.Line, c *mockclient.Call,
	must bool) (transcript.Entry, error) {
	wait, cancel := b.Patience(ctx, c.Entry.Method)
	defer cancel()
	e, err := c.Wait(wait)
	b.Settle(e)
	var rpc *mockclient.RPCError
	switch {
	case err == nil, errors.As(err, &rpc) && !must:
		return e, nil
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	}
	o := transcript.Outcome{Verdict: transcript.Unmeetable, Entry: e}
	if rpc == nil && wait.Err() == nil {
		b.ExpectExit()
	}
	if wait.Err() != nil {
		o.Verdict, o.Cause = transcript.Unmet, context.Cause(wait)
	}
	f := b.Failure(l, o)
	f.Expected = []string{"an answer to " + c.Entry.Method}
	switch {
	case rpc != nil:
		f.Expected = []string{"a result of " + c.Entry.Method}
		f.Observed = brief(e)
		f.Entries = []int{e.Seq}
		if rpc.Code == -32000 {
			f.Advice = of(b).loginAdvice()
		}
	case wait.Err() != nil:
		f.Observed = cmp.Or(b.Unreached(), "nothing")
	default:
		f.Observed, f.Reason = cmp.Or(b.Unreached(), "the agent exited"), err.Error()
	}
	m := &scenarios.Miss{Failure: f, Effect: true}
	if wait.Err() != nil && !slices.Contains(untimed, c.Entry.Method) {
		m.Unanswered = "RPC-005"
	}
	if rpc != nil && rpc.Code == -32000 && !loggedIn(b.Transcript()) {
		m.Verdict = results.Inconclusive
	}
	if rpc == nil {
		m = greeted(b, c.Entry.Method, m)
	}
	return e, m
}

// greeted adds advice to the Miss of an initialize request that got no answer, and marks the agent as not started. It
// does not change the Miss of another request.
func greeted(b *scenarios.Branch, method string, m *scenarios.Miss) *scenarios.Miss {
	if method == "initialize" {
		m.Failure.Advice = b.StartAdvice(m.Failure)
		b.NotStarted(m.Failure)
	}
	return m
}

// provide sends providers/set for each of the agent's providers that can use the run's model server.
func provide(ctx context.Context, b *scenarios.Branch) error {
	line := scenarios.Implied("start")
	list, err := call(ctx, b, line, nil, "providers/list", map[string]any{}, true)
	if err != nil {
		return err
	}
	base, err := b.Variable("LLM")
	if err != nil {
		return err
	}
	urls := map[string]string{"openai": base + "/v1", "anthropic": base}
	for p := range list.JSON().Path("result.providers").Items() {
		for api := range p.Get("supported").Items() {
			if urls[api.Str()] == "" {
				continue
			}
			_, err := call(ctx, b, line, nil, "providers/set", map[string]any{"providerId": p.Get("providerId").Str(),
				"apiType": api.Str(), "baseUrl": urls[api.Str()],
				"headers": map[string]string{"authorization": "Bearer sk-test", "x-api-key": "sk-test"}}, true)
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}
