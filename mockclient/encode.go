package mockclient

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/acp-test/acp-test/wire"
)

// RPCError is the error object of a JSON-RPC response.
type RPCError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Error codes this editor answers with (JSON-RPC 2.0, and the ACP v1 schema's
// ErrorCode).
const (
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeCancelled      = -32800
	codeNotFound       = -32002
)

// encode renders v as one line of JSON. A []byte or json.RawMessage is JSON
// already. Nil is no JSON at all.
func encode(v any) ([]byte, error) {
	var raw []byte
	switch v := v.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		raw = v
	case []byte:
		raw = v
	case wire.Value:
		raw = v.Raw()
	default:
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false) // what a person wrote should be found by grep
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
		return bytes.TrimRight(buf.Bytes(), "\n"), nil
	}
	if len(raw) == 0 {
		return nil, errors.New("no JSON given")
	}
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw, nil
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// message renders a request (id not empty) or a notification.
func message(id wire.ID, method string, params []byte) []byte {
	b := append(make([]byte, 0, len(params)+len(method)+64), `{"jsonrpc":"2.0",`...)
	if id != "" {
		b = append(append(append(b, `"id":`...), id...), ',')
	}
	b = wire.AppendString(append(b, `"method":`...), method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// response renders an answer: result, or the error if there is one.
func response(id wire.ID, result any, rpcErr *RPCError) ([]byte, error) {
	id = cmp.Or(id, "null")
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	body, err := encode(result)
	if rpcErr != nil {
		b = append(b, `,"error":`...)
		body, err = encode(rpcErr)
	} else {
		b = append(b, `,"result":`...)
	}
	if err != nil {
		return nil, err
	}
	if body == nil {
		body = []byte("null")
	}
	return append(append(b, body...), '}'), nil
}

type empty struct{}
