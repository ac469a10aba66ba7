package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ID is the id of a JSON-RPC message as JSON text, including its type: `7`,
// `"7"` or `null`. It is "" if there is none. Equal strings have equal IDs,
// even if they were escaped differently.
type ID string

// FrameKind is the kind of a frame.
type FrameKind uint8

// The kinds of frames. Malformed is any frame that is not exactly one of the others.
const (
	Malformed FrameKind = iota
	Request
	Notification
	Response
)

// String returns the name of the kind in lower case.
func (k FrameKind) String() string {
	return [...]string{"malformed", "request", "notification", "response"}[min(k, Response)]
}

// Frame is one message split into the parts of a JSON-RPC 2.0 message. A
// message of another protocol sets only the parts that it has. In a malformed
// frame, ID and Method are set if they could be read.
type Frame struct {
	Kind   FrameKind
	ID     ID
	Method string
	// Params, Result and Error are unchanged values of any kind. The protocol must
	// check their shape.
	Params, Result, Error Value
	// Extra is the key of a member that JSON-RPC does not define, or a missing
	// value.
	Extra Value
	// Problem explains why the frame is malformed. It is a sentence without a full
	// stop.
	Problem string
}

// Classify splits a JSON-RPC 2.0 message into its parts. A request has a method
// and an id. A notification has a method and no id. A response has an id, and
// either a result or an error. An id is a string, an integer or null (JSON-RPC
// 2.0, sections 4 and 5).
func Classify(v Value) Frame {
	if v.Kind() == Array {
		return Frame{Problem: "the line is a JSON array (a batch), but each message must be on its own line"}
	}
	if v.Kind() != Object {
		return Frame{Problem: fmt.Sprintf("the line is a JSON %s, but a JSON-RPC message must be an object", v.Kind())}
	}
	var f Frame
	var version, id, method Value
	for key, value := range v.Fields() {
		switch {
		case key.Is("jsonrpc"):
			version = value
		case key.Is("id"):
			id = value
		case key.Is("method"):
			method = value
		case key.Is("params"):
			f.Params = value
		case key.Is("result"):
			f.Result = value
		case key.Is("error"):
			f.Error = value
		default:
			f.Extra = key
		}
	}
	f.ID = idOf(id)
	f.Method = method.again()
	f.Kind, f.Problem = kindOf(f, version, id, method)
	return f
}

func kindOf(f Frame, version, id, method Value) (FrameKind, string) {
	switch {
	case !version.Exists():
		return Malformed, `the message has no "jsonrpc" member, which must be "2.0"`
	case !version.Is("2.0"):
		return Malformed, fmt.Sprintf(`"jsonrpc" is %s, and must be "2.0"`, excerpt(version.Raw()))
	case id.Exists() && f.ID == "":
		return Malformed, fmt.Sprintf("the id is %s, and must be a string, an integer or null", excerpt(id.Raw()))
	case method.Exists() && method.Kind() != String:
		return Malformed, fmt.Sprintf("the method is %s, and must be a string", excerpt(method.Raw()))
	case method.Exists() && (f.Result.Exists() || f.Error.Exists()):
		return Malformed, "the message has a method like a request, but also a result or an error like a response"
	case method.Exists() && id.Exists():
		return Request, ""
	case method.Exists():
		return Notification, ""
	}
	return responseOr(f, id)
}

// responseOr classifies a message without a method. It returns Response, or
// Malformed and the reason why the message is not a response.
func responseOr(f Frame, id Value) (FrameKind, string) {
	switch {
	case f.Result.Exists() && f.Error.IsNull():
		return Malformed, `the response has a result and also "error": null; a successful response has no error member at all`
	case f.Error.Exists() && f.Result.IsNull():
		return Malformed, `the response has an error and also "result": null; a failed response has no result member at all`
	case f.Result.Exists() && f.Error.Exists():
		return Malformed, "the response has both a result and an error, and must have exactly one"
	case f.Error.IsNull():
		return Malformed, `the response has "error": null and no result, so it neither succeeds nor fails`
	case !f.Result.Exists() && !f.Error.Exists():
		return Malformed, "the message has neither a method nor a result nor an error"
	case !id.Exists():
		return Malformed, "the response has no id, so the request that it answers is unknown"
	}
	return Response, ""
}

// idOf returns the id in a value, or "" if the value cannot be an id.
func idOf(v Value) ID {
	switch v.Kind() {
	case Null:
		return "null"
	case Number:
		if v.Whole() {
			return ID(v.Raw())
		}
	case String:
		if v.node().is(flagEscaped) {
			return ID(AppendString(nil, v.Str()))
		}
		return ID(v.Raw())
	}
	return ""
}

// ClassifyLine parses a line into d and classifies it. A line that is not JSON
// is a malformed frame, and d.Root() is then Missing. White space around the
// message is allowed, such as the carriage return of a Windows line end. The
// frame refers to the memory of d and line.
func ClassifyLine(d *Doc, line []byte) Frame {
	if err := d.Parse(line); err != nil {
		return Frame{Problem: WhyNotJSON(line, err)}
	}
	return Classify(d.Root())
}

// WhyNotJSON explains in one sentence why Parse rejected a line. err is the
// error of Parse.
func WhyNotJSON(line []byte, err error) string {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0:
		return "the line is empty"
	case bytes.HasPrefix(text, []byte("\uFEFF")):
		return "the line begins with a byte order mark, which JSON does not allow"
	case text[0] != '{' && text[0] != '[' && !utf8.Valid(text):
		return "the line is not text: it is not valid UTF-8"
	case looksLikeLog(text):
		return "the line is not JSON but other text; log lines belong on stderr: " + excerpt(text)
	}
	if syntax, ok := errors.AsType[*SyntaxError](err); ok && syntax.Offset >= len(bytes.TrimRight(line, " \t\r\n")) {
		return "the line is cut off: " + err.Error()
	}
	return "the line is not valid JSON: " + err.Error()
}

// looksLikeLog reports whether text cannot be intended as a message. Such a
// text begins neither like an object nor like an array of objects, arrays or
// strings.
func looksLikeLog(text []byte) bool {
	if text[0] == '{' {
		return false
	}
	if text[0] != '[' {
		return true
	}
	// "[INFO] started" and "[2026-01-01] …" are log lines, "[{…" is a batch.
	inner := bytes.TrimLeft(text[1:], " \t")
	return len(inner) > 0 && inner[0] != '{' && inner[0] != '[' && inner[0] != '"'
}

// excerpt returns the beginning of text in quotes, for a sentence.
func excerpt(text []byte) string {
	const limit = 60
	head, dots := text, ""
	if len(head) > limit {
		head, dots = head[:limit], "…"
		for len(head) > 0 && !utf8.RuneStart(text[len(head)]) {
			head = head[:len(head)-1]
		}
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return '·'
		}
		return r
	}, string(head)) + dots
}
