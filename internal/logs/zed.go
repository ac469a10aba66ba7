package logs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/acp-test/acp-test/wire"
)

// ofZed makes the frame again that a message of Zed's log of ACP messages stands for: of a
// request, a notification or a response the log has the direction, the id, the method and,
// as params, what it carries. ok is false for anything else.
func ofZed(v wire.Value) (from Side, raw []byte, ok bool) {
	from = claimOf(v.Get("_direction").Str()).side
	if from == Unknown {
		return Unknown, nil, false
	}
	member := func(name string, of wire.Value) string {
		if !of.Exists() || of.Kind() == wire.Null {
			return ""
		}
		return fmt.Sprintf(`,%q:%s`, name, of.Raw())
	}
	id, method, params := v.Get("id"), v.Get("method"), v.Get("params")
	if v.Get("_type").Str() != "notification" && !id.Exists() {
		return Unknown, nil, false
	}
	var text string
	switch v.Get("_type").Str() {
	case "request":
		text = `,"id":` + string(id.Raw()) + member("method", method) + member("params", params)
	case "notification":
		text = member("method", method) + member("params", params)
	case "response":
		text = `,"id":` + string(id.Raw())
		switch {
		case isError(params):
			text += member("error", params)
		case params.Kind() == wire.Null:
			text += `,"result":null`
		default:
			text += member("result", params)
		}
	default:
		return Unknown, nil, false
	}
	var line bytes.Buffer
	err := json.Compact(&line, []byte(`{"jsonrpc":"2.0"`+text+"}"))
	return from, line.Bytes(), err == nil
}

// isError tells the error of a response from its result, which no member of the log does.
func isError(v wire.Value) bool {
	_, code := v.Get("code").Int()
	return code && v.Get("message").Kind() == wire.String
}
