package canonical

import (
	"encoding/json"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// merge adds an update of a tool call to the line of that call. It reports whether there was such a line. How an agent
// distributes the data among the updates may depend on chance, but the merged result does not.
func (r *reader) merge(it *item, v wire.Value) bool {
	u := v.Path("params.update")
	if it.entry.Kind != transcript.Notification || it.call == "" || u.Kind() != wire.Object {
		return false
	}
	c := r.calls[callKey{it.entry.Session, it.call}]
	if c.shown == 0 || r.items[c.shown-1].entry.Conn != it.entry.Conn {
		c.shown = len(r.items) + 1
		it.merged, _ = wire.Parse(u.Raw()) // the memory of u is reused
		if it.role == update {
			it.role = content
		}
		return false
	}
	first := &r.items[c.shown-1]
	if merged, err := wire.Parse(mergeUpdates(first.merged.Raw(), u.Raw())); err == nil {
		first.merged = merged
	}
	return true
}

// mergeUpdates merges the members of update b into a and keeps a's kind. A null changes nothing (ACP v1, Tool Calls,
// Updating). The members of _meta are added to those of a.
func mergeUpdates(a, b []byte) []byte {
	return mergeObjects(a, b, func(key string, old, value json.RawMessage) json.RawMessage {
		switch key {
		case "sessionUpdate":
			return old
		case "_meta":
			return mergeMeta(old, value)
		}
		return value
	})
}

func mergeMeta(a, b json.RawMessage) json.RawMessage {
	return mergeObjects(a, b, func(_ string, old, value json.RawMessage) json.RawMessage { return mergeMeta(old, value) })
}

// mergeObjects adds those members of b that are not null to a. For a member that a has too, both returns the value. If
// a or b is not an object, the result is b.
func mergeObjects(a, b []byte, both func(key string, old, value json.RawMessage) json.RawMessage) json.RawMessage {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x == nil || y == nil {
		return b
	}
	for key, value := range y {
		old, there := x[key]
		switch {
		case string(value) == "null":
		case there:
			x[key] = both(key, old, value)
		default:
			x[key] = value
		}
	}
	merged, err := json.Marshal(x)
	if err != nil {
		return b
	}
	return merged
}
