package mockclient

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/confined"
)

// Content is a content block of a prompt (ACP v1, ContentBlock). Text, Image and the following functions create
// blocks; any other JSON object is allowed too.
type Content map[string]any

// Text returns a text block.
func Text(text string) Content { return Content{"type": "text", "text": text} }

// Image returns an image block. data is the image file's content, such as a PNG.
func Image(mimeType string, data []byte) Content {
	return Content{"type": "image", "mimeType": mimeType, "data": base64.StdEncoding.EncodeToString(data)}
}

// Audio returns an audio block. data is the audio file's content, such as a WAV.
func Audio(mimeType string, data []byte) Content {
	return Content{"type": "audio", "mimeType": mimeType, "data": base64.StdEncoding.EncodeToString(data)}
}

// ResourceLink returns a link to a resource, which the agent may read by itself.
func ResourceLink(name, uri string) Content {
	return Content{"type": "resource_link", "name": name, "uri": uri}
}

// TextResource returns an embedded text; mimeType may be "".
func TextResource(uri, mimeType, text string) Content {
	return resource(uri, mimeType, "text", text)
}

// BlobResource returns an embedded binary file; mimeType may be "".
func BlobResource(uri, mimeType string, data []byte) Content {
	return resource(uri, mimeType, "blob", base64.StdEncoding.EncodeToString(data))
}

func resource(uri, mimeType, key, value string) Content {
	r := map[string]any{"uri": uri, key: value}
	if mimeType != "" {
		r["mimeType"] = mimeType
	}
	return Content{"type": "resource", "resource": r}
}

// Attach returns the block that an editor sends for a file: an image block, an audio block or an embedded resource if
// the agent supports such blocks, else a link. info says which blocks the agent supports; nil means none. kind
// selects the type of block: "image", "audio", "resource", "resource_link" or "text"; "" lets Attach choose. The file
// must be a regular file of at most 64 MiB. Attach follows symbolic links in the path.
func Attach(path, kind string, info *AgentInfo) (Content, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("attaching %q: %w", path, err)
	}
	data, err := confined.ReadNamed(context.Background(), absolute)
	if err != nil {
		return nil, fmt.Errorf("attaching %q: %w", path, err)
	}
	mimeType := mimeOf(path, data)
	if kind == "" {
		kind = kindFor(mimeType, info)
	}
	uri := FileURI(absolute)
	switch kind {
	case "text":
		if !utf8.Valid(data) {
			return nil, fmt.Errorf("attaching %q as text: it is not UTF-8", path)
		}
		return Text(string(data)), nil
	case "image":
		return Image(mimeType, data), nil
	case "audio":
		return Audio(mimeType, data), nil
	case "resource":
		if utf8.Valid(data) {
			return TextResource(uri, mimeType, string(data)), nil
		}
		return BlobResource(uri, mimeType, data), nil
	case "resource_link":
		link := ResourceLink(filepath.Base(path), uri)
		link["mimeType"], link["size"] = mimeType, len(data)
		return link, nil
	}
	return nil, fmt.Errorf("attaching %q: unknown kind of block %q: want text, image, audio, resource or resource_link",
		path, kind)
}

func kindFor(mimeType string, info *AgentInfo) string {
	const prompt = "agentCapabilities.promptCapabilities."
	switch family, _, _ := strings.Cut(mimeType, "/"); {
	case family == "image" && info.Has(prompt+"image"):
		return "image"
	case family == "audio" && info.Has(prompt+"audio"):
		return "audio"
	case info.Has(prompt + "embeddedContext"):
		return "resource"
	}
	return "resource_link"
}

// types maps file extensions to media types. Package mime is not used, because its types depend on the machine:
// audio/wav on one, audio/x-wav on another.
var types = map[string]string{
	".avif": "image/avif", ".bmp": "image/bmp", ".gif": "image/gif", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
	".png": "image/png", ".svg": "image/svg+xml", ".webp": "image/webp",
	".aac": "audio/aac", ".flac": "audio/flac", ".m4a": "audio/mp4", ".mp3": "audio/mpeg", ".ogg": "audio/ogg",
	".wav": "audio/wav",
	".css": "text/css", ".csv": "text/csv", ".htm": "text/html", ".html": "text/html", ".js": "text/javascript",
	".md": "text/markdown", ".mjs": "text/javascript", ".txt": "text/plain",
	".json": "application/json", ".pdf": "application/pdf", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml",
}

// sources maps extensions of source code to media types. Attach uses them in addition to types.
var sources = map[string]string{".go": "text/x-go", ".py": "text/x-python", ".ts": "text/typescript"}

// MediaType returns the media type of a file by its extension, or "" if the extension is unknown.
func MediaType(name string) string { return types[strings.ToLower(filepath.Ext(name))] }

func mimeOf(path string, data []byte) string {
	fallback := "application/octet-stream"
	if utf8.Valid(data) {
		fallback = "text/plain"
	}
	return cmp.Or(MediaType(path), sources[strings.ToLower(filepath.Ext(path))], fallback)
}

// FileURI returns the file:// URI of an absolute path.
func FileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// TraceContext returns a _meta object with a W3C trace context (ACP v1,
// Extensibility). It leaves out empty members.
func TraceContext(traceparent, tracestate, baggage string) map[string]any {
	meta := map[string]any{}
	for key, value := range map[string]string{"traceparent": traceparent, "tracestate": tracestate, "baggage": baggage} {
		if value != "" {
			meta[key] = value
		}
	}
	return meta
}
