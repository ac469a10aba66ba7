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

// formats returns all wire formats; each has its own file.
func formats() []format { return []format{chat{}, responses{}, anthropic{}, gemini{}} }

// Wires returns the names of all wire formats.
func Wires() []string {
	return lists.Map(formats(), format.name)
}

// format is the wire format of one API: its requests and its answers.
type format interface {
	name() string
	// parse fills the request from its body.
	parse(r *request, v wire.Value) *problem
	// encoder returns the encoder of one answer.
	encoder(r *request, a *answer) encoder
	// problem returns the body of an error answer.
	problem(p *problem) []byte
	// key returns the API key a request was sent with; ok is false if it was
	// sent in a form the API does not know.
	key(h http.Header, query string) (key string, ok bool)
	// endpoint returns the route of a POST to a path. The path begins after the
	// API's version. ok is false if the API has no such path.
	endpoint(path string) (route, bool)
	// unknown returns the error for a model that does not exist. model describes
	// one model, models lists them all, and tokens gives a number of tokens.
	unknown(model string) *problem
	model(name string) object
	models(infos []any, names []string) object
	tokens(n int) object
	// manners returns the real API's rules for a conversation. refuses returns
	// the reason why the API refuses a message, or "" if the API accepts it.
	// first and last say where in its request the message is.
	manners() manners
	refuses(message wire.Value, first, last bool) string
	// readEvent and readBody read a real provider's answer.
	readEvent(h *said, v wire.Value)
	readBody(h *said, v wire.Value)
}

// encoder writes one answer, piece by piece or whole. All methods append to b.
type encoder interface {
	contentType() string
	open(b []byte) []byte
	start(b []byte, bl *block) []byte
	piece(b []byte, bl *block, s string) []byte
	end(b []byte, bl *block) []byte
	close(b []byte) []byte
	// fail appends the event that reports an error inside a stream.
	fail(b []byte, p *problem) []byte
	// event appends data, valid or not, as an event of the stream.
	event(b []byte, data string) []byte
	// whole appends the body of an answer that is not streamed.
	whole(b []byte) []byte
}

// inOneEvent is an encoder that sends the whole answer in the closing event, and no event before it.
type inOneEvent struct{ encoder }

func (inOneEvent) start(b []byte, _ *block) []byte           { return b }
func (inOneEvent) piece(b []byte, _ *block, _ string) []byte { return b }
func (inOneEvent) end(b []byte, _ *block) []byte             { return b }

// around caches the parts of an event that surround a piece of a block's
// content. An encoder renders them once for each block.
type around struct {
	block         *block
	before, after []byte
}

// hole is the placeholder for a piece. JSON never contains this byte.
var hole = json.RawMessage("\x00")

// piece appends an event with a piece of a block. whole makes that event with the
// hole instead of the piece.
func (a *around) piece(b []byte, bl *block, s string, whole func() []byte) []byte {
	if a.block != bl {
		a.block = bl
		a.before, a.after, _ = bytes.Cut(whole(), hole)
	}
	return append(wire.AppendString(append(b, a.before...), s), a.after...)
}

// created is the creation time in every answer.
const created = 1735689600 // 2025-01-01T00:00:00Z

const sse = "text/event-stream"

// errorKind returns the error's name from the script, else the name for its
// status.
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

// keyIn returns the API key in the API's own header, else in the Authorization
// header.
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

// joined returns the text of a content that is a text or a list of parts with
// texts.
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

// text returns the message of an error.
func (p *problem) text() string { return cmp.Or(p.message, http.StatusText(p.status)) }
