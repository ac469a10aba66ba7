package words

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
)

// compileSet compiles a request about a session, which has words of the line as its params.
func compileSet(method, what string, keys ...string) func(*scenarios.Line) scenarios.Step {
	n := len(keys)
	return func(l *scenarios.Line) scenarios.Step {
		name := l.TakeSession(n, openIt)
		l.Need(n-1, what)
		l.AtMost(n)
		return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error {
			params := map[string]any{"sessionId": s.ID}
			for i, key := range keys {
				text, err := b.Expand(l.Rest[i])
				if err != nil {
					return l.Fault(err)
				}
				params[key] = text
			}
			method := of(b).setting(method, params)
			if l.Alias != "" { // the script judges the answer: it may ask for what is not on offer
				defer func(from int) { b.ExcuseSince(from, method) }(b.Transcript().Len())
			}
			_, err := call(ctx, b, l, s, method, params, true)
			return err
		})
	}
}

// setting makes a request for a mode or an option what the version has, by params that it changes.
func (c *client) setting(method string, params map[string]any) string {
	if c.version == v2 && strings.HasPrefix(method, "session/set_") {
		params["type"] = "id"
		if mode, ok := params["modeId"]; ok { // a mode is an option
			delete(params, "modeId")
			method, params["configId"], params["value"] = "session/set_config_option", c.modeOption(), mode
		}
	}
	if text := params["value"]; text == "true" || text == "false" {
		params["value"], params["type"] = text == "true", "boolean"
	}
	return method
}

func compileRaw(request bool) func(*scenarios.Line) scenarios.Step {
	return func(l *scenarios.Line) scenarios.Step {
		l.Need(0, "a method")
		l.Starts("the agent gets a message as it is")
		l.AtMost(2, `quote the JSON: request _x/y '{"a": 1}'`)
		return func(ctx context.Context, b *scenarios.Branch) error {
			start := b.Begin
			if l.Rest[0].Is("initialize") || b.Ended() {
				start = b.Launch
			}
			if err := start(ctx); err != nil {
				return err
			}
			method, err := b.Expand(l.Rest[0])
			if err != nil {
				return l.Fault(err)
			}
			var params any
			if len(l.Rest) > 1 {
				text, err := script.ExpandText(l.File(), l.Rest[1].Raw(), b.Variable)
				if err != nil {
					return l.Fault(err)
				}
				if !json.Valid([]byte(text)) {
					return l.Fault(fmt.Errorf("%s is no JSON", text))
				}
				params = json.RawMessage(text)
			}
			// Whatever the script writes by hand may break the protocol on
			// purpose, so rules for clients do not judge it.
			defer func(from int) { b.ExcuseSince(from, method) }(b.Transcript().Len())
			if !request {
				return notify(ctx, b, l, b.Session(), method, params)
			}
			c, err := send(ctx, b, l, b.Session(), method, params)
			if err != nil || method != "initialize" {
				return err
			}
			// What follows speaks to an agent that is initialized, by this or not.
			e, err := answer(ctx, b, l, c, false)
			if result := e.JSON().Get("result"); err == nil && result.Exists() {
				of(b).change(func() { of(b).greeting = result })
				return b.Greeted()
			}
			return err
		}
	}
}
