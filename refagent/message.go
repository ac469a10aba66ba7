package refagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"unicode/utf8"
)

// Error codes in the agent's responses. JSON-RPC and ACP define all of them except codeModelFailed, which is in the
// range for implementations.
const (
	codeParse           = -32700
	codeInvalidRequest  = -32600 // also: request before initialize, second prompt in a busy session
	codeMethodNotFound  = -32601
	codeInvalidParams   = -32602
	codeInternal        = -32603
	codeAuthRequired    = -32000
	codeUnknownSession  = -32002
	codeModelFailed     = -32050 // the model was unreachable, refused or broke off
	codeRequestCanceled = -32800
)

// rpcError is the error object of a response.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func fault(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func badParams(format string, args ...any) *rpcError {
	return fault(codeInvalidParams, format, args...)
}

// object is a JSON object without a more specific type.
type object = map[string]any

// incoming is one parsed message from the editor.
type incoming struct {
	id     json.RawMessage // nil for a notification
	method string          // "" for a response
	params json.RawMessage
	result json.RawMessage
	err    *rpcError // error in a response
}

// parseLine parses one line from the editor. If it returns an error, the agent must send this error as the response,
// with the id in the message, or with id null if the message has no valid id.
func parseLine(line []byte) (incoming, *rpcError) {
	var m incoming
	if !utf8.Valid(line) {
		return m, fault(codeParse, "the line is not valid UTF-8")
	}
	if !json.Valid(line) {
		return m, fault(codeParse, "the line is not valid JSON")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil || members == nil {
		return m, fault(codeInvalidRequest, "a message has to be one JSON object")
	}
	id, hasID := members["id"]
	if hasID {
		if id[0] != '"' && string(id) != "null" && !integer().Match(id) {
			return m, fault(codeInvalidRequest, "id has to be an integer, a string or null")
		}
		m.id = id
	}
	var version string
	if json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0" {
		return m, fault(codeInvalidRequest, `jsonrpc has to be "2.0"`)
	}
	m.params = members["params"]
	if raw, ok := members["method"]; ok {
		if json.Unmarshal(raw, &m.method) != nil || m.method == "" {
			return m, fault(codeInvalidRequest, "method has to be a non-empty string")
		}
		return m, nil
	}
	result, hasResult := members["result"]
	failure, hasError := members["error"]
	if !hasID || hasResult == hasError {
		return m, fault(codeInvalidRequest, "the message is neither a request, a notification nor a response")
	}
	m.result = result
	if hasError {
		m.err = &rpcError{}
		if json.Unmarshal(failure, m.err) != nil {
			m.err = fault(codeInternal, "the error of the response is malformed")
		}
	}
	return m, nil
}

var integer = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?\d+$`) })

// idKey returns an id in a form that can be compared: 7 and "7" differ, but "7" and "\u0037" are equal.
func idKey(id json.RawMessage) string {
	var s string
	if len(id) > 0 && id[0] == '"' && json.Unmarshal(id, &s) == nil {
		return "s" + s
	}
	return "n" + string(id)
}

type outRequest struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"` // nil for a notification
	Method  string          `json:"method"`
	Params  any             `json:"params,omitempty"`
}

type outResponse struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// encode renders v on one line that ends in a newline. It does not escape characters of HTML, so that text is sent
// unchanged.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Cannot happen: the agent sends only its own types, and JSON can encode them.
		panic("refagent: encoding an own message: " + err.Error())
	}
	return b.Bytes()
}

// decodeParams decodes params into v. It returns an error if params is neither missing nor an object.
func decodeParams(params json.RawMessage, v any) *rpcError {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if params[0] != '{' {
		return badParams("params have to be an object")
	}
	if err := json.Unmarshal(params, v); err != nil {
		return badParams("params are malformed: %s", plain(err))
	}
	return nil
}

// member returns a required string member of params. It returns an error if the member is missing or not a string.
func member(params json.RawMessage, name string) (string, *rpcError) {
	var all map[string]json.RawMessage
	if err := decodeParams(params, &all); err != nil {
		return "", err
	}
	var value *string
	if raw, has := all[name]; has {
		if err := json.Unmarshal(raw, &value); err != nil {
			return "", badParams("params are malformed: %s%s", name, plain(err))
		}
	}
	if value == nil {
		return "", badParams("%s is missing", name)
	}
	return *value, nil
}

// plain returns the text of a decoding error without Go type names.
func plain(err error) string {
	if t, ok := err.(*json.UnmarshalTypeError); ok {
		return fmt.Sprintf("%s cannot be a %s", t.Field, t.Value)
	}
	return err.Error()
}
