package words

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

func compilePrompt(l *scenarios.Line) scenarios.Step {
	files, options := l.Every("attach"), l.Options("meta", "blocks", "key", "text")
	l.Inside(append(files, options["text"])...)
	meta, given := jsonWord(l, options["meta"]), options["blocks"]
	name := l.TakeSession(1, openIt+", or quote the text")
	l.AtMost(1, "quote the text: prompt 'Do this.'")
	text := l.Source(l.Need(0, "the text"))
	index := l.DeclarePrompt(name, text)
	return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error {
		words, err := b.Expand(text)
		if err != nil {
			return l.Fault(err)
		}
		blocks, err := promptBlocks(b, l, given, words)
		if err != nil {
			return err
		}
		for _, f := range files {
			block, err := attachment(ctx, b, l, f)
			if err != nil {
				return err
			}
			blocks = append(blocks, block)
		}
		if long, given := options["text"]; given {
			name, err := b.Path(l, long)
			if err != nil {
				return err
			}
			data, err := attached(ctx, b, l, name)
			if err != nil {
				return err
			}
			blocks = append(blocks, map[string]any{"type": "text", "text": string(data)})
		}
		if b.Model() != nil {
			b.Model().Begin(fakellm.Prompt{Session: s.ID, Name: s.Name, Index: index, Text: words})
		}
		params := map[string]any{"sessionId": s.ID, "prompt": blocks}
		if meta != nil {
			params["_meta"] = meta
		}
		if key, given := options["key"]; given {
			if params["idempotencyKey"], err = b.Expand(key); err != nil {
				return l.Fault(err)
			}
		}
		b.CountResidents()
		c, err := send(ctx, b, l, s, "session/prompt", params)
		if err == nil {
			b.Prompted(s, c.Entry)
		}
		return err
	})
}

// promptBlocks returns the content blocks of a prompt. They are the blocks that the line gives as JSON or, if given is
// missing, one block with the text.
func promptBlocks(b *scenarios.Branch, l *scenarios.Line, given script.Word, text string) ([]any, error) {
	if given.Raw() == "" {
		return []any{map[string]any{"type": "text", "text": text}}, nil
	}
	src, err := b.Expand(given)
	if err != nil {
		return nil, l.Fault(err)
	}
	var blocks []any
	if err := json.Unmarshal([]byte(src), &blocks); err != nil {
		return nil, l.Fault(fmt.Errorf("blocks= must be a JSON list of content blocks: %w", err))
	}
	return blocks, nil
}

// attachment returns a file of the workspace as a content block.
func attachment(ctx context.Context, b *scenarios.Branch, l *scenarios.Line, w script.Word) (any, error) {
	name, err := b.Path(l, w)
	if err != nil {
		return nil, err
	}
	kind := mockclient.MediaType(name)
	uri := mockclient.FileURI(b.InWork(name))
	what, _, _ := strings.Cut(kind, "/")
	media := what == "image" || what == "audio"
	if !media && !on(of(b).capability("promptCapabilities").Get("embeddedContext")) {
		return mockclient.ResourceLink(filepath.Base(name), uri), nil
	}
	data, err := attached(ctx, b, l, name)
	switch {
	case err != nil:
		return nil, err
	case !media:
		return mockclient.TextResource(uri, kind, string(data)), nil
	case what == "audio":
		return mockclient.Audio(kind, data), nil
	}
	block := mockclient.Image(kind, data)
	block["uri"] = uri
	return block, nil
}

// attached returns the content of a workspace file that is attached to a prompt.
func attached(ctx context.Context, b *scenarios.Branch, l *scenarios.Line, name string) ([]byte, error) {
	data, err := b.ReadFile(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, l.Fault(fmt.Errorf("the workspace holds no file %q to attach: add it below as -- %s --, or write it "+
			"first", name, name))
	}
	if err != nil { // the scenario's own files can be read, so the agent has replaced this one
		return nil, b.Back(l, true, "a file "+name+" to attach", err.Error())
	}
	return data, nil
}

func compileCancel(l *scenarios.Line) scenarios.Step {
	name := l.TakeSession(0, openIt)
	l.AtMost(0)
	return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error {
		return notify(ctx, b, l, s, "session/cancel", map[string]any{"sessionId": s.ID})
	})
}

func compileCancelRequest(l *scenarios.Line) scenarios.Step {
	ref := l.Ref(0)
	return func(ctx context.Context, b *scenarios.Branch) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		return notify(ctx, b, l, b.Session(), "$/cancel_request", map[string]any{"requestId": json.RawMessage(e.ID)})
	}
}

func compileSendAgain(l *scenarios.Line) scenarios.Step {
	ref := l.Ref(0)
	l.AtMost(1)
	return func(ctx context.Context, b *scenarios.Branch) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		_, err = send(ctx, b, l, b.Session(), e.Method, json.RawMessage(e.JSON().Get("params").Raw()))
		return err
	}
}

func compileAnswer(l *scenarios.Line) scenarios.Step {
	opts := l.Options("result", "error", "id")
	ref := l.Ref(0)
	l.AtMost(2)
	if len(opts)+len(l.Rest) != 2 {
		return l.Usage(l.Name.Column, "give exactly one answer: a choice, id=, result= or error=")
	}
	if len(l.Rest) == 2 && l.Rest[1].Raw() == "usual" {
		return unhold(l, ref)
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		result, rpc, err := answerOf(b, l, opts, e)
		if err != nil {
			return err
		}
		editor, err := live(b, l)
		if err != nil {
			return err
		}
		sent, err := editor.Answer(e.Seq, result, rpc)
		if err != nil && sent.Seq == 0 {
			return b.Unsent(l, err)
		}
		b.Excuse(sent.Seq, e.Seq)
		b.Acted(b.Session(), sent)
		b.Name(l.Alias, sent)
		return nil
	}
}

// unhold returns a step in which the editor gives its usual answer to a request that it has left unanswered.
func unhold(l *scenarios.Line, ref string) scenarios.Step {
	if l.Alias != "" {
		return l.Usage(l.Name.Column, "an answer with usual cannot have a name")
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		editor, err := live(b, l)
		if err != nil {
			return err
		}
		editor.Unhold(e.Seq)
		return nil
	}
}

// answerOf returns the result or the error with which the line answers the agent's request e.
func answerOf(b *scenarios.Branch, l *scenarios.Line, opts map[string]script.Word, e transcript.Entry) (any,
	*mockclient.RPCError, error) {
	selected := func(id string) any {
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": id}}
	}
	for key, w := range opts {
		text, err := b.Expand(w)
		if err != nil {
			return nil, nil, l.Fault(err)
		}
		switch key {
		case "id":
			return selected(text), nil, nil
		case "result":
			if !json.Valid([]byte(text)) {
				return nil, nil, l.Fault(fmt.Errorf("result=%s is not valid JSON", text))
			}
			return json.RawMessage(text), nil, nil
		case "error":
			rpc := &mockclient.RPCError{Message: "Refused by the scenario"}
			if _, bad := fmt.Sscan(text, &rpc.Code); bad != nil && json.Unmarshal([]byte(text), rpc) != nil {
				return nil, nil, l.Fault(fmt.Errorf("error=%s is neither a code nor a JSON object with code and message", text))
			}
			return nil, rpc, nil
		}
	}
	choice, err := b.Expand(l.Rest[1])
	if err != nil {
		return nil, nil, l.Fault(err)
	}
	if choice == "cancelled" {
		return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}, nil, nil
	}
	if o := e.JSON().Path("params.options").Find("kind", choice); o.Exists() {
		return selected(o.Get("optionId").Str()), nil, nil
	}
	return nil, nil, b.NoSituation(l, "a permission request that offers "+choice, b.Line(e))
}

// compileSet compiles a request about a session. The words of the line are the params of the request, named by keys.
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
			if l.Alias != "" { // the script judges the answer, because it may set a value that the agent does not offer
				defer func(from int) { b.ExcuseSince(from, method) }(b.Transcript().Len())
			}
			_, err := call(ctx, b, l, s, method, params, true)
			return err
		})
	}
}

// setting adapts a request that sets a mode or an option to the protocol version. It changes params, and returns the
// method to use.
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
		l.Starts("the agent gets a raw message")
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
					return l.Fault(fmt.Errorf("%s is not valid JSON", text))
				}
				params = json.RawMessage(text)
			}
			// A script may break the protocol on purpose in messages that it writes by hand. So rules for clients
			// ignore such messages.
			defer func(from int) { b.ExcuseSince(from, method) }(b.Transcript().Len())
			if !request {
				return notify(ctx, b, l, b.Session(), method, params)
			}
			c, err := send(ctx, b, l, b.Session(), method, params)
			if err != nil || method != "initialize" {
				return err
			}
			// Later lines need an initialized agent, whether or not this request succeeds.
			e, err := answer(ctx, b, l, c, false)
			if result := e.JSON().Get("result"); err == nil && result.Exists() {
				of(b).change(func() { of(b).greeting = result })
				return b.Greeted()
			}
			return err
		}
	}
}
