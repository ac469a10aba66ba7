package refagent

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// promptMessage converts the blocks of a prompt to one user message. Text, links and embedded text become text;
// images and audio stay unchanged. If names is set, an embedded file is replaced by its path, provided that the file
// on disk has the same text.
func promptMessage(blocks []json.RawMessage, names bool) (ModelMessage, *rpcError) {
	var parts []Part
	for i, raw := range blocks {
		p, err := promptPart(raw, names)
		if err != nil {
			err.Message = fmt.Sprintf("prompt[%d]: %s", i, err.Message)
			return ModelMessage{}, err
		}
		parts = append(parts, p)
	}
	var texts []string
	for _, p := range parts {
		if p.Data != "" {
			return ModelMessage{Role: roleUser, Parts: parts}, nil
		}
		texts = append(texts, p.Text)
	}
	return ModelMessage{Role: roleUser, Text: strings.Join(texts, "\n\n")}, nil
}

func promptPart(raw json.RawMessage, names bool) (Part, *rpcError) {
	var b struct {
		Type, MimeType string
		Text, Data     *string
		URI, Name      *string
		Resource       *struct {
			URI        *string
			MimeType   string
			Text, Blob *string
		}
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return Part{}, badParams("the block is malformed: %s", plain(err))
	}
	switch {
	case b.Type == "text" && b.Text != nil:
		return Part{Text: *b.Text}, nil
	case (b.Type == "image" || b.Type == "audio") && b.Data != nil && b.MimeType != "":
		if _, err := base64.StdEncoding.DecodeString(*b.Data); err != nil {
			return Part{}, badParams("data is not base64")
		}
		if *b.Data == "" {
			return Part{}, badParams("data is empty")
		}
		return Part{Data: *b.Data, MimeType: b.MimeType}, nil
	case b.Type == "resource_link" && b.URI != nil && b.Name != nil:
		return Part{Text: fmt.Sprintf("[%s](%s)", *b.Name, *b.URI)}, nil
	case b.Type == "resource" && b.Resource != nil && b.Resource.URI != nil:
		if path := onDisk(*b.Resource.URI, b.Resource.Text); names && path != "" {
			return Part{Text: "The user named the file " + path + "."}, nil
		}
		return resourcePart(*b.Resource.URI, b.Resource.MimeType, b.Resource.Text, b.Resource.Blob)
	}
	return Part{}, badParams("no content block of type %q, or a field of it is missing", b.Type)
}

// onDisk returns the path in the URI of an embedded resource, if the file there has the resource's text. Otherwise it
// returns "".
func onDisk(uri string, text *string) string {
	path, ok := strings.CutPrefix(uri, "file://")
	if !ok || text == nil {
		return ""
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != *text {
		return ""
	}
	return path
}

// resourcePart converts an embedded resource for the model: text and images keep their type, other bytes become
// base64 text.
func resourcePart(uri, mimeType string, content, blob *string) (Part, *rpcError) {
	switch {
	case content != nil:
		return Part{Text: fmt.Sprintf("<resource uri=%q>\n%s\n</resource>", uri, *content)}, nil
	case blob == nil:
		return Part{}, badParams("the resource has neither text nor blob")
	}
	data, err := base64.StdEncoding.DecodeString(*blob)
	if err != nil {
		return Part{}, badParams("blob is not base64")
	}
	if strings.HasPrefix(mimeType, "image/") && *blob != "" {
		return Part{Data: *blob, MimeType: mimeType}, nil
	}
	if utf8.Valid(data) {
		return Part{Text: fmt.Sprintf("<resource uri=%q>\n%s\n</resource>", uri, data)}, nil
	}
	return Part{Text: fmt.Sprintf("<resource uri=%q encoding=\"base64\">\n%s\n</resource>", uri, *blob)}, nil
}

// plainText returns the first non-empty text in a prompt, which is used for titles and commands; "" if there is none.
func plainText(blocks []json.RawMessage) string {
	for _, raw := range blocks {
		var b struct{ Type, Text string }
		if json.Unmarshal(raw, &b) == nil && b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			return strings.TrimSpace(b.Text)
		}
	}
	return ""
}

// titleOf returns the first line of a prompt, shortened to 60 characters.
func titleOf(prompt string) string {
	line, _, _ := strings.Cut(prompt, "\n")
	if r := []rune(line); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return line
}
