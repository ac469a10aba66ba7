package refagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"unicode/utf8"
)

// Error codes of the agent's answers. Those below -32600 are defined by JSON-RPC
// and ACP; codeModelFailed lies in the range that ACP leaves to implementations.
const (
	codeParse           = -32700
	codeInvalidRequest  = -32600 // also: before initialize, and a second prompt in a busy session
	codeMethodNotFound  = -32601
	codeInvalidParams   = -32602
	codeInternal        = -32603
	codeAuthRequired    = -32000
	codeUnknownSession  = -32002
	codeModelFailed     = -32050 // the model could not be reached, refused the request or broke off
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

// incoming is one classified message of the editor.
type incoming struct {
	id     json.RawMessage // nil for a notification
	method string          // "" for a response
	params json.RawMessage
	result json.RawMessage
	err    *rpcError // of a response
}

// parseLine classifies one line. The returned error must be answered with id
// null, or with the id if the line has a usable one.
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

// idKey returns an id in a comparable form: 7 and "7" differ, "7" and "\u0037" do
// not.
func idKey(id json.RawMessage) string {
	var s string
	if len(id) > 0 && id[0] == '"' && json.Unmarshal(id, &s) == nil {
		return "s" + s
	}
	return "n" + string(id)
}

type outRequest struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"` // nil: a notification
	Method  string          `json:"method"`
	Params  any             `json:"params,omitempty"`
}

type outResponse struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// encode renders v on one line that ends in a newline. It does not escape HTML,
// so that text is sent as the model wrote it.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Impossible: the agent sends only its own types, which JSON can encode.
		panic("refagent: encoding an own message: " + err.Error())
	}
	return b.Bytes()
}

// decodeParams decodes params into v. If present, params must be an object.
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

// member returns a required string member of params.
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

// plain shortens a decoding error to one line without the Go type names.
func plain(err error) string {
	if t, ok := err.(*json.UnmarshalTypeError); ok {
		return fmt.Sprintf("%s cannot be a %s", t.Field, t.Value)
	}
	return err.Error()
}
