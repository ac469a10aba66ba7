package mockclient

import "strings"

// Capabilities is the clientCapabilities object of initialize, free in form so
// that a test can also advertise what no client should.
type Capabilities map[string]any

// DefaultCapabilities returns those of the default editor: reading files, writing
// files, terminals.
func DefaultCapabilities() Capabilities {
	return Capabilities{
		"fs":       map[string]any{"readTextFile": true, "writeTextFile": true},
		"terminal": true,
	}
}

// Set sets a capability by its path, such as "elicitation.form". Nil removes it.
func (c Capabilities) Set(path string, value any) {
	at := map[string]any(c)
	for {
		key, rest, more := strings.Cut(path, ".")
		if !more {
			if value == nil {
				delete(at, key)
			} else {
				at[key] = value
			}
			return
		}
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at, path = next, rest
	}
}

// On reports whether a capability is advertised: true, or any object.
func (c Capabilities) On(path string) bool {
	var at any = map[string]any(c)
	for key := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return false
		}
		at = m[key]
	}
	switch v := at.(type) {
	case nil:
		return false
	case bool:
		return v
	default:
		return true
	}
}

// Clone copies the tree, so that the caller's later changes do not reach the
// copy.
func (c Capabilities) Clone() Capabilities {
	out := Capabilities{}
	for k, v := range c {
		if m, ok := v.(map[string]any); ok {
			v = map[string]any(Capabilities(m).Clone())
		}
		out[k] = v
	}
	return out
}

// gates are the client methods that need a capability (ACP v1, Initialization).
var gates = map[string]string{
	"fs/read_text_file":      "fs.readTextFile",
	"fs/write_text_file":     "fs.writeTextFile",
	"terminal/create":        "terminal",
	"terminal/output":        "terminal",
	"terminal/wait_for_exit": "terminal",
	"terminal/kill":          "terminal",
	"terminal/release":       "terminal",
	"elicitation/create":     "elicitation",
}
