package scenarios

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/wire"
)

func compilePrompt(l *line) (func(context.Context, *branch) error, error) {
	var files []script.Word
	var rest []script.Word
	var extra script.Word
	for _, w := range l.words {
		switch key, _, value, ok := w.Cut("="); {
		case ok && key == "attach" && !strings.HasPrefix(w.Raw(), "'"):
			files = append(files, value)
		case ok && key == "meta":
			extra = value
		default:
			rest = append(rest, w)
		}
	}
	l.words = rest
	meta, m := l.json(extra)
	if m != nil {
		return nil, m
	}
	name := ""
	if len(l.words) == 2 {
		var ok bool
		if name, ok = l.session(0); !ok {
			return nil, l.mistake(l.words[0].Column, "open it with session new NAME, or quote the text", "no session %s is open", l.words[0].Raw())
		}
		l.words = l.words[1:]
	}
	if m := l.atMost(1); m != nil {
		m.Hint = "quote the text: prompt 'Do this.'"
		return nil, m
	}
	w, m := l.need(0, "the text")
	if m != nil {
		return nil, m
	}
	text, err := l.p.source(l, w)
	if err != nil {
		return nil, err
	}
	for _, p := range l.p.scenario.prompts {
		if p.text == text.Raw() {
			return nil, l.mistake(w.Column, fmt.Sprintf("the first is on line %d", p.line), "two prompts have the same text; the model's turns are found by it")
		}
	}
	l.p.scenario.prompts = append(l.p.scenario.prompts, promptDecl{name, text.Raw(), l.Number})
	index := len(l.p.scenario.prompts)
	return func(ctx context.Context, b *branch) error {
		s, err := b.need(ctx, l, name)
		if err != nil {
			return err
		}
		words, err := b.expand(text)
		if err != nil {
			return l.runtime(err)
		}
		blocks := []any{map[string]any{"type": "text", "text": words}}
		for _, f := range files {
			block, err := b.attachment(f)
			if err != nil {
				return l.runtime(err)
			}
			blocks = append(blocks, block)
		}
		if b.run.model != nil {
			b.run.model.Begin(fakellm.Prompt{Session: s.id, Name: s.name, Index: index, Text: words})
		}
		params := map[string]any{"sessionId": s.id, "prompt": blocks}
		if meta != nil {
			params["_meta"] = meta
		}
		b.run.countResidents()
		c, err := b.send(ctx, l, s, "session/prompt", params)
		if err == nil {
			b.run.change(func(*state) { s.prompts = append(s.prompts, c.Entry.Seq) })
		}
		return err
	}, nil
}

// source is the text of a word, which may be @FILE for a file of the archive.
func (p *parser) source(l *line, w script.Word) (script.Word, error) {
	s, ok := w.Literal()
	if !ok || w.Quoted || !strings.HasPrefix(s, "@") {
		return w, nil
	}
	data, ok := p.scenario.archived(s[1:])
	if !ok {
		return script.Word{}, l.mistake(w.Column, "add it below as -- "+s[1:]+" --", "the archive holds no file %q", s[1:])
	}
	return script.Quote(string(data)), nil
}

// attachment is a file of the workspace as a content block.
func (b *branch) attachment(w script.Word) (any, error) {
	name, err := b.expand(w)
	if err != nil {
		return nil, err
	}
	path := b.run.inWork(name)
	kind := mediaType(name)
	uri := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	what, _, _ := strings.Cut(kind, "/")
	media := what == "image" || what == "audio"
	if !media && !on(b.run.capability("promptCapabilities").Get("embeddedContext")) {
		return map[string]any{"type": "resource_link", "uri": uri, "name": filepath.Base(name)}, nil
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the workspace holds no file %q to attach: add it below as -- %s --, or write it first", name, name)
	case err != nil:
		return nil, err
	case !media:
		resource := map[string]any{"uri": uri, "text": string(data)}
		if kind != "" {
			resource["mimeType"] = kind
		}
		return map[string]any{"type": "resource", "resource": resource}, nil
	}
	block := map[string]any{"type": what, "mimeType": kind, "data": base64.StdEncoding.EncodeToString(data)}
	if what == "image" {
		block["uri"] = uri
	}
	return block, nil
}

func on(v wire.Value) bool {
	b, ok := v.Bool()
	return ok && b || v.Kind() == wire.Object
}
