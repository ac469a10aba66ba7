package words

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
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
)

func compilePrompt(l *scenarios.Line) (scenarios.Step, error) {
	var files []script.Word
	var rest []script.Word
	var extra script.Word
	for _, w := range l.Rest {
		switch key, _, value, ok := w.Cut("="); {
		case ok && key == "attach" && !strings.HasPrefix(w.Raw(), "'"):
			files = append(files, value)
		case ok && key == "meta":
			extra = value
		default:
			rest = append(rest, w)
		}
	}
	l.Rest = rest
	meta, m := jsonWord(l, extra)
	if m != nil {
		return nil, m
	}
	name := ""
	if len(l.Rest) == 2 {
		var ok bool
		if name, ok = l.SessionName(0); !ok {
			return nil, l.Mistake(l.Rest[0].Column, "open it with session new NAME, or quote the text", "no session %s is open", l.Rest[0].Raw())
		}
		l.Rest = l.Rest[1:]
	}
	if m := l.AtMost(1); m != nil {
		m.Hint = "quote the text: prompt 'Do this.'"
		return nil, m
	}
	w, m := l.Need(0, "the text")
	if m != nil {
		return nil, m
	}
	text, err := l.Source(w)
	if err != nil {
		return nil, err
	}
	index, m := l.DeclarePrompt(name, text)
	if m != nil {
		return nil, m
	}
	return func(ctx context.Context, b *scenarios.Branch) error {
		s, err := need(ctx, b, l, name)
		if err != nil {
			return err
		}
		words, err := b.Expand(text)
		if err != nil {
			return l.Fault(err)
		}
		blocks := []any{map[string]any{"type": "text", "text": words}}
		for _, f := range files {
			block, err := attachment(b, f)
			if err != nil {
				return l.Fault(err)
			}
			blocks = append(blocks, block)
		}
		if b.Model() != nil {
			b.Model().Begin(fakellm.Prompt{Session: s.ID, Name: s.Name, Index: index, Text: words})
		}
		params := map[string]any{"sessionId": s.ID, "prompt": blocks}
		if meta != nil {
			params["_meta"] = meta
		}
		b.CountResidents()
		c, err := send(ctx, b, l, s, "session/prompt", params)
		if err == nil {
			b.Prompted(s, c.Entry)
		}
		return err
	}, nil
}

// attachment is a file of the workspace as a content block.
func attachment(b *scenarios.Branch, w script.Word) (any, error) {
	name, err := b.Expand(w)
	if err != nil {
		return nil, err
	}
	path := b.InWork(name)
	kind := mediaType(name)
	uri := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	what, _, _ := strings.Cut(kind, "/")
	media := what == "image" || what == "audio"
	if !media && !on(of(b).capability("promptCapabilities").Get("embeddedContext")) {
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
