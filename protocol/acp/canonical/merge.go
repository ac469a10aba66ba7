package canonical

import (
	"encoding/json"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// merge adds an update of a tool call to the line that is there for the call,
// and reports whether there was one. Chance decides with some agents how much of
// a call each of its updates tells; what they come to is always the same.
func (r *reader) merge(it *item, v wire.Value) bool {
	u := v.Path("params.update")
	if it.entry.Kind != transcript.Notification || it.call == "" || u.Kind() != wire.Object {
		return false
	}
	c := r.calls[callKey{it.entry.Session, it.call}]
	if c.shown == 0 || r.items[c.shown-1].entry.Conn != it.entry.Conn {
		c.shown = len(r.items) + 1
		it.merged, _ = wire.Parse(u.Raw()) // u is not there for long
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

// mergeUpdates puts the members of update b into a, which keeps its kind. What is
// null changes nothing (ACP v1, Tool Calls, Updating); what is in _meta is added
// to what is there.
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

// mergeObjects puts the members of b that are not null into a; both says what
// becomes of those that a has, too. What is no object gives way to b.
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
