package schema

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// Enabled reports whether a capability is advertised. For a path that begins
// with "agentCapabilities" caps is the result of initialize, for one that
// begins with "clientCapabilities" its params. A capability is on if it is true
// or an object, even an empty one; null, false and absence at any level mean
// no. The empty path is always enabled.
func Enabled(caps wire.Value, path string) bool {
	if path == "" {
		return true
	}
	for path != "" {
		var step string
		step, path, _ = strings.Cut(path, ".")
		caps = caps.Get(step)
	}
	on, _ := caps.Bool()
	return on || caps.Kind() == wire.Object
}
