// Package translate translates recordings between two protocols: turns of ACP version 1 into runs of AG-UI, and back.
// docs/ag-ui.md has the table of translations.
package translate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Said is a recording translated to the other protocol.
type Said struct {
	// Lines are the messages, or the events and inputs, as one JSON object each.
	Lines [][]byte
	// Left lists, in sentences, the parts that the other protocol cannot express.
	Left []string
}

type object = map[string]any

// marshaled returns a message as JSON, without escapes for < and >.
func marshaled(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("translate: " + err.Error()) // it was made of JSON
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func (s *Said) leave(format string, args ...any) {
	s.Left = lists.With(s.Left, fmt.Sprintf(format, args...))
}

// decoded converts a value to the types of encoding/json; nil if the value is missing.
func decoded(v wire.Value) (out any) {
	if v.Exists() {
		_ = json.Unmarshal(v.Raw(), &out) // it has been parsed
	}
	return out
}

// texts returns the text of one or several content blocks.
func texts(v wire.Value) (text string) {
	for block := range v.Items() {
		text += texts(block)
	}
	if v.Kind() == wire.Object {
		text += v.Get("text").Str() + texts(v.Get("content"))
	}
	return text
}
