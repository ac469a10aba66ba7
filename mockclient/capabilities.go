package mockclient

import "strings"

// Capabilities is the clientCapabilities object of initialize. It may contain any members, so that a test can also
// advertise invalid capabilities.
type Capabilities map[string]any

// DefaultCapabilities returns the capabilities of the default editor: it can read files, write files and run
// terminals.
func DefaultCapabilities() Capabilities {
	return Capabilities{
		"fs":       map[string]any{"readTextFile": true, "writeTextFile": true},
		"terminal": true,
	}
}

// Set sets a capability by its path, such as "elicitation.form". A nil value removes the capability.
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

// On reports whether a capability is advertised, which means that its value is true or an object.
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

// Clone returns a deep copy, which later changes to c do not affect.
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

// gates maps the client methods that require a capability to that capability (ACP v1, Initialization).
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
