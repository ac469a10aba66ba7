// Package translate translates recordings between two protocols: turns of ACP version 1 into runs of AG-UI, and back.
// The file docs/ag-ui.md explains which message becomes which event.
package translate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Said is a recording that was translated to the other protocol.
type Said struct {
	// Lines has one JSON object per element: the messages of ACP, or the inputs and events of AG-UI.
	Lines [][]byte
	// Left has a sentence for each part that the other protocol cannot express.
	Left []string
}

type object = map[string]any

// marshaled returns a message as JSON, without escapes for < and >.
func marshaled(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("translate: " + err.Error()) // cannot happen: the value consists of JSON values
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func (s *Said) leave(format string, args ...any) {
	s.Left = lists.With(s.Left, fmt.Sprintf(format, args...))
}

// decoded converts a value to the types of encoding/json. It returns nil if the value is missing.
func decoded(v wire.Value) (out any) {
	if v.Exists() {
		_ = json.Unmarshal(v.Raw(), &out) // cannot fail: the value was parsed
	}
	return out
}

// texts returns the joined text of one content block or of a list of them.
func texts(v wire.Value) (text string) {
	for block := range v.Items() {
		text += texts(block)
	}
	if v.Kind() == wire.Object {
		text += v.Get("text").Str() + texts(v.Get("content"))
	}
	return text
}
