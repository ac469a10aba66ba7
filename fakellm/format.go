package fakellm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// formats are all wire formats, each in a file of its own.
func formats() []format { return []format{chat{}, responses{}, anthropic{}, gemini{}} }

// Wires are the names of all wire formats.
func Wires() []string {
	return lists.Map(formats(), format.name)
}

// format is one API: how it asks, and how it is answered.
type format interface {
	name() string
	// parse fills the request from its body.
	parse(r *request, v wire.Value) *problem
	// encoder makes what writes one answer.
	encoder(r *request, a *answer) encoder
	// problem is the body of an error answer.
	problem(p *problem) []byte
	// key returns the API key a request was sent with; ok is false if it was
	// sent in a form the API does not know.
	key(h http.Header, query string) (key string, ok bool)
	// endpoint is what a POST to a path asks for, which begins behind the version
	// of the API; false if the path is none of the API's.
	endpoint(path string) (route, bool)
	// unknown is the problem of a model that does not exist; model says what a
	// model is, models what all are, and tokens how many there are.
	unknown(model string) *problem
	model(name string) object
	models(infos []any, names []string) object
	tokens(n int) object
	// manners are the rules of the real API for a conversation. refuses returns why that API
	// refuses a message, which may be the first or the last of its request; "" if it takes it.
	manners() manners
	refuses(message wire.Value, first, last bool) string
	// readEvent and readBody read what a real provider answered.
	readEvent(h *said, v wire.Value)
	readBody(h *said, v wire.Value)
}

// encoder writes one answer, piece by piece or whole. All append to b.
type encoder interface {
	contentType() string
	open(b []byte) []byte
	start(b []byte, bl *block) []byte
	piece(b []byte, bl *block, s string) []byte
	end(b []byte, bl *block) []byte
	close(b []byte) []byte
	// fail is the event that reports an error inside a stream.
	fail(b []byte, p *problem) []byte
	// event wraps data that may be anything the way the stream does.
	event(b []byte, data string) []byte
	// whole is the body of an answer that is not streamed.
	whole(b []byte) []byte
}

// inOneEvent is an encoder of an answer that stands whole in the event that closes it: nothing comes before.
type inOneEvent struct{ encoder }

func (inOneEvent) start(b []byte, _ *block) []byte           { return b }
func (inOneEvent) piece(b []byte, _ *block, _ string) []byte { return b }
func (inOneEvent) end(b []byte, _ *block) []byte             { return b }

// around holds the bytes of an event that surround a piece of a block. An encoder makes them once for each block.
type around struct {
	block         *block
	before, after []byte
}

// hole stands for a piece. No JSON has this byte.
var hole = json.RawMessage("\x00")

// piece appends an event with a piece of a block. whole makes the event with a hole in the place of the piece.
func (a *around) piece(b []byte, bl *block, s string, whole func() []byte) []byte {
	if a.block != bl {
		a.block = bl
		a.before, a.after, _ = bytes.Cut(whole(), hole)
	}
	return append(wire.AppendString(append(b, a.before...), s), a.after...)
}

// created is the time every answer was made.
const created = 1735689600 // 2025-01-01T00:00:00Z

const sse = "text/event-stream"

// errorKind names an error by its status where the script names none.
func errorKind(p *problem, names map[int]string, other string) string {
	if p.kind != "" {
		return p.kind
	}
	if n, ok := names[p.status]; ok {
		return n
	}
	if p.status >= 500 {
		return names[500]
	}
	return other
}

// keyIn reads the header that has the key in an API, else an Authorization header.
func keyIn(h http.Header, name string) (string, bool) {
	if k := h.Get(name); k != "" {
		return k, true
	}
	return bearer(h)
}

// bearer reads an Authorization header.
func bearer(h http.Header) (string, bool) {
	v := h.Get("Authorization")
	if v == "" {
		return "", true
	}
	scheme, key, _ := strings.Cut(v, " ")
	key = strings.TrimSpace(key)
	return key, strings.EqualFold(scheme, "Bearer") && key != "" && !strings.ContainsAny(key, " \t")
}

// joined reads a content that is a text or a list of parts with texts.
func joined(v wire.Value) string {
	if v.Kind() == wire.String {
		return v.Str()
	}
	var texts []string
	for part := range v.Items() {
		for _, key := range []string{"text", "refusal", "output"} {
			if t := part.Get(key); t.Kind() == wire.String {
				texts = append(texts, t.Str())
				break
			}
		}
	}
	return strings.Join(texts, "\n")
}

// text is the message of an error.
func (p *problem) text() string { return cmp.Or(p.message, http.StatusText(p.status)) }
