package scenarios

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

func compileSet(method, key, value string) func(*line) (func(context.Context, *branch) error, error) {
	n := 1
	if value != "" {
		n = 2
	}
	return func(l *line) (func(context.Context, *branch) error, error) {
		name := ""
		if len(l.words) == n+1 {
			var ok bool
			if name, ok = l.session(0); !ok {
				return nil, l.mistake(l.words[0].Column, "open it with session new NAME", "no session %s is open", l.words[0].Raw())
			}
			l.words = l.words[1:]
		}
		if _, m := l.need(n-1, "a value"); m != nil {
			return nil, m
		}
		if m := l.atMost(n); m != nil {
			return nil, m
		}
		return func(ctx context.Context, b *branch) error {
			s, err := b.need(ctx, l, name)
			if err != nil {
				return err
			}
			params := map[string]any{"sessionId": s.id}
			for i, k := range []string{key, value}[:n] {
				text, err := b.expand(l.words[i])
				if err != nil {
					return l.runtime(err)
				}
				params[k] = text
				if k == "value" && (text == "true" || text == "false") {
					params[k], params["type"] = text == "true", "boolean"
				}
			}
			if l.as != "" { // the script judges the answer: it may ask for what is not on offer
				defer func(from int) { b.run.excuseSince(from, method) }(b.run.t.Len())
			}
			_, err = b.call(ctx, l, s, method, params, true)
			return err
		}, nil
	}
}

func compileRaw(request bool) func(*line) (func(context.Context, *branch) error, error) {
	return func(l *line) (func(context.Context, *branch) error, error) {
		if _, m := l.need(0, "a method"); m != nil {
			return nil, m
		}
		if m := l.atMost(2); m != nil {
			m.Hint = `quote the JSON: request _x/y '{"a": 1}'`
			return nil, m
		}
		return func(ctx context.Context, b *branch) error {
			r := b.run
			if err := r.beginFor(ctx, l.words[0].Raw()); err != nil {
				return err
			}
			method, err := b.expand(l.words[0])
			if err != nil {
				return l.runtime(err)
			}
			var params any
			if len(l.words) > 1 {
				text, err := script.ExpandText(l.p.file, l.words[1].Raw(), b.variable)
				if err != nil {
					return l.runtime(err)
				}
				if !json.Valid([]byte(text)) {
					return l.runtime(fmt.Errorf("%s is no JSON", text))
				}
				params = json.RawMessage(text)
			}
			// Whatever the script writes by hand may break the protocol on
			// purpose, so rules for clients do not judge it.
			defer func(from int) { r.excuseSince(from, method) }(r.t.Len())
			if !request {
				return b.notify(l, b.current(), method, params)
			}
			_, err = b.call(ctx, l, b.current(), method, params, false)
			return err
		}, nil
	}
}

// excuseSince excuses the frames of a method that were written since an entry.
func (r *run) excuseSince(from int, method string) {
	for e := range r.t.From(from + 1) {
		if e.Source == transcript.Editor && e.Method == method {
			r.excuse(e.Seq)
		}
	}
}
