// Package translate rewrites recordings of one protocol in the other: turns of ACP version 1
// as runs of AG-UI, and back. docs/ag-ui.md has the table of what becomes what.
package translate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Said is a recording in the other protocol.
type Said struct {
	// Lines are its frames, or its events and inputs, one JSON object a line.
	Lines [][]byte
	// Left are sentences about what the other protocol cannot say.
	Left []string
}

type object = map[string]any

// marshaled is a frame as JSON, with < and > as they are.
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

// decoded is a value as encoding/json has it; nil if there is none.
func decoded(v wire.Value) (out any) {
	if v.Exists() {
		_ = json.Unmarshal(v.Raw(), &out) // it has been parsed
	}
	return out
}

// texts is the text of content blocks, or of one.
func texts(v wire.Value) (text string) {
	for block := range v.Items() {
		text += texts(block)
	}
	if v.Kind() == wire.Object {
		text += v.Get("text").Str() + texts(v.Get("content"))
	}
	return text
}
