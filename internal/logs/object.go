package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// value reads the messages in a JSON value, which is a message, or an object, list or string that contains messages.
// It reports whether it found any.
func (r *reader) value(v wire.Value, p place) (found bool) {
	if p.depth > maxDepth {
		return false
	}
	switch v.Kind() {
	case wire.Array:
		for item := range v.Items() {
			found = r.value(item, p) || found
		}
	case wire.Object:
		if from, raw, ok := ofZed(v); ok {
			m, err := wire.Parse(raw)
			if err != nil || !r.Message(m) {
				return false
			}
			p.claim = claim{family: named, side: from}
			r.add(m, p, false)
			return true
		}
		switch {
		case r.Message(v):
			r.add(v, p, false)
			return true
		case r.around(v, p):
			return true
		case r.Bare != nil && r.Bare(v):
			p = surroundings(v, p)
			r.add(v, p, true)
			return true
		}
	case wire.String:
		if s := v.Str(); strings.Contains(s, "{") {
			p.depth++
			return r.text(s, p)
		}
	}
	return found
}

// around reads the messages in the members of an object. Other members of the object may give the time and the
// sender.
func (r *reader) around(v wire.Value, p place) (found bool) {
	p = surroundings(v, p)
	p.depth++
	for key, m := range v.Members() {
		at := p
		if said := claimOf(key); said.side != Unknown && (m.Kind() == wire.Object || at.claim.side == Unknown) {
			at.claim = said
		}
		found = r.value(m, at) || found
	}
	return found
}

// Names of members that describe a message in the same object: its sender, its receiver, hints at its sender, and its
// time. Each list begins with the most reliable name.
var (
	senders   = []string{"_direction", "dir", "direction", "from", "sender", "source", "src", "side", "origin"}
	receivers = []string{"to", "target", "dest", "destination", "receiver", "dst"}
	hints     = []string{"event", "type", "kind", "channel", "stream", "name", "label", "category", "tag", "logger", "op",
		"msg", "message", "level"}
	clocks = []string{"t", "ts", "timestamp", "@timestamp", "time", "at", "date", "datetime", "created", "created_at",
		"createdAt", "startedDateTime", "__REALTIME_TIMESTAMP"}
)

// surroundings reads the time, the process and the sender of messages from the object that contains them.
func surroundings(v wire.Value, p place) place {
	for _, key := range clocks {
		if ms, ok := instant(v.Get(key)); ok {
			p.at, p.timed = ms, true
			break
		}
	}
	if n, ok := v.Get("proc").Int(); ok && n > 0 {
		p.process = int(n) - 1
	}
	for _, list := range []struct {
		keys  []string
		other bool
	}{{senders, false}, {receivers, true}, {hints, false}} {
		for _, key := range list.keys {
			m := v.Get(key)
			if m.Kind() != wire.String || strings.Contains(m.Str(), "{") {
				continue
			}
			if c := claimOf(m.Str()); c.side != Unknown {
				if list.other {
					c.side = -c.side
				}
				p.claim = c
				return p
			}
		}
	}
	return p
}

// compact returns a JSON value on one line. It returns raw unchanged if raw is invalid.
func compact(raw []byte) string {
	if bytes.IndexByte(raw, '\n') < 0 {
		return string(raw)
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// ofZed converts an entry of Zed's log of ACP messages to the JSON-RPC frame. Such an entry has the direction, the
// id, the method and, as params, the content of a request, notification or response. ok is false for any other
// object.
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

// isError reports whether the content of a response is an error. Zed's log does not tell errors from results, so
// isError looks at the content's members.
func isError(v wire.Value) bool {
	_, code := v.Get("code").Int()
	return code && v.Get("message").Kind() == wire.String
}
