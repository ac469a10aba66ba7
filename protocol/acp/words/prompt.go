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
)

func compilePrompt(l *scenarios.Line) scenarios.Step {
	files, options := l.Every("attach"), l.Options("meta", "blocks", "key")
	l.Inside(files...)
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

// promptBlocks are the content blocks of a prompt: those given as JSON, else one with
// the text.
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
		return nil, l.Fault(fmt.Errorf("blocks= is a JSON list of content blocks: %w", err))
	}
	return blocks, nil
}

// attachment is a file of the workspace as a content block.
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
	data, err := b.ReadFile(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, l.Fault(fmt.Errorf("the workspace holds no file %q to attach: add it below as -- %s --, or write it "+
			"first", name, name))
	case err != nil:
		// What the scenario put there can be read: the agent put something else there.
		return nil, b.Back(l, true, "a file "+name+" to attach", err.Error())
	case !media:
		return mockclient.TextResource(uri, kind, string(data)), nil
	case what == "audio":
		return mockclient.Audio(kind, data), nil
	}
	block := mockclient.Image(kind, data)
	block["uri"] = uri
	return block, nil
}
