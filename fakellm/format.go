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

// formats returns all wire formats. Each has its own source file.
func formats() []format { return []format{chat{}, responses{}, anthropic{}, gemini{}} }

// Wires returns the names of all wire formats.
func Wires() []string {
	return lists.Map(formats(), format.name)
}

// format is the wire format of one API: how to read its requests and write its responses.
type format interface {
	name() string
	// parse reads the members of a body into the request.
	parse(r *request, v wire.Value) *problem
	// encoder returns an encoder for one response.
	encoder(r *request, a *answer) encoder
	// problem returns the body of an error response.
	problem(p *problem) []byte
	// key returns the API key that came with a request. ok is false if the key has a form that the API does not
	// accept.
	key(h http.Header, query string) (key string, ok bool)
	// endpoint returns the route of a POST to a path. path begins after the API's version, such as /v1. The bool is
	// false if the API has no such path.
	endpoint(path string) (route, bool)
	// unknown returns the error for a model that does not exist. model returns the description of one model, models
	// the list of all models, and tokens the response with a number of tokens.
	unknown(model string) *problem
	model(name string) object
	models(infos []any, names []string) object
	tokens(n int) object
	// manners returns the real API's rules for a conversation. refuses returns the reason why the API refuses a
	// message, or "" if the API accepts it. first and last are true for the first and the last message of a request.
	manners() manners
	refuses(message wire.Value, first, last bool) string
	// readEvent and readBody read a real provider's response, streamed and not streamed.
	readEvent(h *said, v wire.Value)
	readBody(h *said, v wire.Value)
}

// encoder writes one response, either piece by piece or as a whole. All methods append to b and return the extended
// slice.
type encoder interface {
	contentType() string
	open(b []byte) []byte
	start(b []byte, bl *block) []byte
	piece(b []byte, bl *block, s string) []byte
	end(b []byte, bl *block) []byte
	close(b []byte) []byte
	// fail appends the event that reports an error inside a stream.
	fail(b []byte, p *problem) []byte
	// event appends an event of the stream with this data, even if the data is invalid.
	event(b []byte, data string) []byte
	// whole appends the body of a response that is not streamed.
	whole(b []byte) []byte
}

// inOneEvent is an encoder that sends the complete response in the closing event and sends nothing before that.
type inOneEvent struct{ encoder }

func (inOneEvent) start(b []byte, _ *block) []byte           { return b }
func (inOneEvent) piece(b []byte, _ *block, _ string) []byte { return b }
func (inOneEvent) end(b []byte, _ *block) []byte             { return b }

// around caches the parts of an event before and after a piece of a block's content. An encoder renders these parts
// once for each block.
type around struct {
	block         *block
	before, after []byte
}

// hole is the placeholder for a piece. Encoded JSON never contains this byte.
var hole = json.RawMessage("\x00")

// piece appends an event with a piece of a block. whole renders the same event with the hole instead of the piece.
func (a *around) piece(b []byte, bl *block, s string, whole func() []byte) []byte {
	if a.block != bl {
		a.block = bl
		a.before, a.after, _ = bytes.Cut(whole(), hole)
	}
	return append(wire.AppendString(append(b, a.before...), s), a.after...)
}

// created is the creation time in every response, in Unix seconds.
const created = 1735689600 // 2025-01-01T00:00:00Z

const sse = "text/event-stream"

// errorKind returns the error's name: the one in the script, else the API's name for the status, else other.
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

// keyIn returns the API key in the header called name, or else the key in the Authorization header.
func keyIn(h http.Header, name string) (string, bool) {
	if k := h.Get(name); k != "" {
		return k, true
	}
	return bearer(h)
}

// bearer returns the key in an Authorization header, and "" if there is no such header. ok is false if the header is
// not "Bearer" and one key.
func bearer(h http.Header) (string, bool) {
	v := h.Get("Authorization")
	if v == "" {
		return "", true
	}
	scheme, key, _ := strings.Cut(v, " ")
	key = strings.TrimSpace(key)
	return key, strings.EqualFold(scheme, "Bearer") && key != "" && !strings.ContainsAny(key, " \t")
}

// joined returns the text of a message's content, which is either a string or a list of parts. It joins the texts of
// the parts.
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

// text returns the error's message, or the standard text for its status.
func (p *problem) text() string { return cmp.Or(p.message, http.StatusText(p.status)) }
