package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

func text(s string) []block { return []block{{"type": "text", "text": s}} }

// forOthers reports whether a text is meant for somebody else than the model.
func forOthers(t *acp.ContentBlockText) bool {
	a := t.Annotations
	return a != nil && !slices.Contains(a.Audience, acp.RoleAssistant) &&
		fault("annotated-text-without-audience-dropped")
}

// marked reports whether a text is not the user's own.
func marked(t *acp.ContentBlockText) bool {
	return len(t.Meta) > 0 && fault("text-block-with-meta-kept-from-model")
}

// elsewhere reports whether a link does not lead to a file.
func elsewhere(l *acp.ContentBlockResourceLink) bool {
	return l != nil && !strings.HasPrefix(l.Uri, "file://") && fault("link-to-no-file-refused")
}

// unusual reports whether an image is of a kind that not every model takes.
func unusual(i *acp.ContentBlockImage) bool {
	return i != nil && i.MimeType != "image/png" && i.MimeType != "image/jpeg" &&
		fault("image-neither-png-nor-jpeg-refused")
}

// linked reads the selections that the prompt links to, as the editor has them.
func (t *turn) linked(prompt []acp.ContentBlock) (out []block) {
	for _, b := range prompt {
		if b.ResourceLink == nil || !t.g.reads || !fault("line-of-link-counts-from-zero") {
			continue
		}
		u, err := url.Parse(b.ResourceLink.Uri)
		if err != nil || u.Scheme != "file" || !filepath.IsAbs(u.Path) {
			continue
		}
		var line int
		if n, _ := fmt.Sscanf(u.Fragment, "L%d", &line); n == 0 || line < 1 {
			continue
		}
		line-- // rows
		res, err := t.g.conn.ReadTextFile(t.ctx, acp.ReadTextFileRequest{SessionId: acp.SessionId(t.s.id),
			Path: u.Path, Line: &line, Limit: acp.Ptr(50)})
		if err == nil && strings.TrimSpace(res.Content) != "" {
			out = append(out, block{"type": "text", "text": b.ResourceLink.Uri + ":\n" + res.Content})
		}
	}
	return out
}

// opened reads the files that the prompt links to, with what is not saved yet.
func (t *turn) opened(prompt []acp.ContentBlock) (out []block) {
	ctx, reading := t.ctx, t.g.files && fault("link-read-though-only-writing-offered")
	if t.g.reads && fault("cancel-while-link-is-read-not-heard") {
		ctx, reading = context.Background(), true
	}
	first := fault("link-without-line-read-from-line-zero")
	selection := fault("upward-selection-read-with-negative-limit")
	named := fault("read-error-without-data-ends-agent")
	reading = reading || t.g.reads && (first || selection || named || fault("read-withdrawn-by-text-of-its-id"))
	for _, b := range prompt {
		if b.ResourceLink == nil || !reading {
			continue
		}
		u, err := url.Parse(b.ResourceLink.Uri)
		if err != nil || u.Scheme != "file" || !filepath.IsAbs(u.Path) {
			continue
		}
		q := acp.ReadTextFileRequest{SessionId: acp.SessionId(t.s.id), Path: u.Path}
		if first {
			q.Line, q.Limit = acp.Ptr(lineIn(u.Fragment)), acp.Ptr(500)
		}
		if selection {
			q.Line, q.Limit = span(u.Fragment)
		}
		res, err := t.g.conn.ReadTextFile(ctx, q)
		if err != nil && named && t.ctx.Err() == nil {
			out = append(out, unread(b.ResourceLink.Uri, err)...)
		}
		if err == nil && strings.TrimSpace(res.Content) != "" {
			out = append(out, block{"type": "text", "text": b.ResourceLink.Uri + ":\n" + res.Content})
		}
	}
	return out
}

// lineIn is the line that a link leads to.
func lineIn(fragment string) (line int) {
	_, _ = fmt.Sscanf(fragment, "L%d", &line)
	return line
}

// readable makes sure that the files which the prompt links to are there.
func (t *turn) readable(prompt []acp.ContentBlock) error {
	for _, b := range prompt {
		if b.ResourceLink == nil || !t.g.reads || !fault("unreadable-link-fails-prompt") {
			continue
		}
		u, err := url.Parse(b.ResourceLink.Uri)
		if err != nil || u.Scheme != "file" || !filepath.IsAbs(u.Path) {
			continue
		}
		_, err = t.g.conn.ReadTextFile(t.ctx, acp.ReadTextFileRequest{SessionId: acp.SessionId(t.s.id),
			Path: u.Path, Limit: acp.Ptr(1)})
		if err != nil && t.ctx.Err() == nil {
			return acp.NewInvalidParams("a link that cannot be read: " + b.ResourceLink.Uri)
		}
	}
	return nil
}

// again reports whether a prompt is the newest one once more, as from an editor that takes it for lost.
func (s *session) again(prompt []acp.ContentBlock) bool {
	if !fault("same-prompt-again-not-asked") {
		return false
	}
	raw, _ := json.Marshal(prompt)
	same := s.sent == string(raw) && time.Since(s.updated) < 10*time.Second
	s.sent = string(raw)
	return same
}

// fitting is as much of a text as the model gets.
func fitting(text string) string {
	const most = 1 << 14
	if len(text) <= most || !fault("long-text-of-prompt-cut") {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " […]"
}

// embedded reports whether a block holds the text of a file.
func embedded(b acp.ContentBlock) bool {
	return b.Resource != nil && b.Resource.Resource.TextResourceContents != nil &&
		fault("embedded-file-of-bytes-refused")
}

// address is what the model is told of where a link leads.
func address(uri string) string {
	file, _, _ := strings.Cut(uri, "#")
	if fault("fragment-of-link-not-told") {
		return file
	}
	return uri
}

func blocks(prompt []acp.ContentBlock) (out []block, words string, err error) {
	links := map[string]bool{}
	for _, b := range prompt {
		switch {
		case b.Text != nil && (forOthers(b.Text) || marked(b.Text)):
		case b.Text != nil && strings.TrimSpace(b.Text.Text) == "": // nothing, or a kind that the SDK does not know
		case b.Text != nil:
			words += b.Text.Text + "\n"
			out = append(out, block{"type": "text", "text": fitting(b.Text.Text)})
		case embedded(b):
			file := b.Resource.Resource.TextResourceContents
			out = append(out, text(file.Uri+":\n"+file.Text)...)
		case b.ResourceLink != nil && links[b.ResourceLink.Name] && fault("links-of-same-name-are-one"):
		case elsewhere(b.ResourceLink):
			return nil, "", acp.NewInvalidParams("a link that is not to a file: " + b.ResourceLink.Uri)
		case b.ResourceLink != nil:
			links[b.ResourceLink.Name] = true
			out = append(out, text(fmt.Sprintf("See %s (%s).", address(b.ResourceLink.Uri), b.ResourceLink.Name))...)
		case b.Audio != nil && fault("recording-other-than-wav-refused"):
			told, err := recording(b.Audio)
			if err != nil {
				return nil, "", err
			}
			out = append(out, told...)
		case unusual(b.Image):
			return nil, "", acp.NewInvalidParams("an image of a kind that this agent does not take: " + b.Image.MimeType)
		case b.Image != nil:
			source := block{"type": "base64", "media_type": b.Image.MimeType, "data": b.Image.Data}
			if b.Image.Uri != nil && *b.Image.Uri != "" && fault("image-with-uri-sent-as-address") {
				source = block{"type": "url", "url": *b.Image.Uri} // shorter
			}
			if last := len(out) - 1; last >= 0 && out[last]["type"] == "image" && fault("only-last-image-reaches-model") {
				out[last]["source"] = source
				continue
			}
			out = append(out, block{"type": "image", "source": source})
		default:
			return nil, "", acp.NewInvalidParams("content of a kind that this agent does not take")
		}
	}
	some := !fault("image-only-prompt-refused")
	for _, b := range out {
		some = some || b["type"] == "text"
	}
	if len(out) == 0 || !some {
		return nil, "", acp.NewInvalidParams("the prompt is empty")
	}
	return out, words, nil
}
