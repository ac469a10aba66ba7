package webagent

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// BinaryType is the content type of the binary encoding of events.
const BinaryType = "application/vnd.ag-ui.event+proto"

// WantsBinary reports whether a client's Accept header allows the binary encoding.
func WantsBinary(accept string) bool {
	best, yes := 0, false
	for one := range strings.SplitSeq(accept, ",") {
		kind, rest, _ := strings.Cut(strings.ToLower(one), ";")
		rank := 1 + slices.Index([]string{"*/*", "application/*", BinaryType}, strings.TrimSpace(kind))
		if rank <= best {
			continue
		}
		best, yes = rank, true
		if _, q, found := strings.Cut(rest, "q="); found {
			quality, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			yes = err != nil || quality > 0
		}
	}
	return yes
}

//go:embed binary.txt
var binaryTable string

// layout describes the encoding of an event type or of another message type. binary.txt documents it.
type layout struct {
	arm, kind int
	members   []string
}

var layouts = sync.OnceValue(func() map[string]layout {
	all := map[string]layout{}
	for line := range strings.Lines(binaryTable) {
		if f := strings.Fields(line); len(f) > 3 && f[0] != "#" {
			arm, _ := strconv.Atoi(f[0])
			kind, _ := strconv.Atoi(f[1])
			all[f[2]] = layout{arm, kind, f[3:]}
		}
	}
	return all
})

// binaryOf returns the binary encoding of an event, with its length in front. It returns nil if the encoding does not
// support the event's type.
func binaryOf(data []byte) []byte {
	var e map[string]any
	if err := json.Unmarshal(data, &e); err != nil {
		return nil
	}
	kind, _ := e["type"].(string)
	of := layouts()[kind]
	if of.arm == 0 {
		return nil
	}
	e["type"] = float64(of.kind)
	if outcome, ok := e["outcome"].(map[string]any); ok {
		for _, name := range []string{"interrupts", "pendingToolCallIds", "interruptIds"} {
			e[name] = outcome[name]
		}
		e["outcome"] = outcome["type"]
	}
	body := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), packed("base", e))
	body = append(body, packed(kind, e)...)
	whole := protowire.AppendBytes(protowire.AppendTag(nil, protowire.Number(of.arm), protowire.BytesType), body)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(whole))), whole...)
}

// packed returns the encoding of a message.
func packed(message string, m map[string]any) (b []byte) {
	if parts, ok := m["content"].([]any); ok {
		m["contentParts"] = parts
	}
	for _, member := range layouts()[message].members {
		at := strings.IndexAny(member, "123456789")
		name := member[:at]
		digits := at + 1
		for digits < len(member) && member[digits] >= '0' && member[digits] <= '9' {
			digits++
		}
		number, _ := strconv.Atoi(member[at:digits])
		of, list := strings.CutPrefix(member[digits:], "*")
		var values []any
		if v, there := m[name]; list {
			values, _ = v.([]any)
		} else if there {
			values = []any{v}
		}
		for _, v := range values {
			b = append(b, memberOf(protowire.Number(number), of, v)...)
		}
	}
	return b
}

// memberOf returns the encoding of one member of a message, or nothing if the member is missing.
func memberOf(n protowire.Number, of string, v any) []byte {
	tag := func(t protowire.Type) []byte { return protowire.AppendTag(nil, n, t) }
	switch of {
	case "":
		if text, ok := v.(string); ok {
			return protowire.AppendString(tag(protowire.BytesType), text)
		}
		return nil
	case "v":
		return protowire.AppendBytes(tag(protowire.BytesType), anyOf(v))
	case "o":
		object, _ := v.(map[string]any) // may be empty
		return protowire.AppendBytes(tag(protowire.BytesType), objectOf(object))
	case "b":
		return protowire.AppendVarint(tag(protowire.VarintType), protowire.EncodeBool(v == true))
	case "n":
		if op, ok := v.(string); ok {
			v = float64(slices.Index([]string{"add", "remove", "replace", "move", "copy", "test"}, op))
		}
		number, _ := v.(float64)
		return protowire.AppendVarint(tag(protowire.VarintType), uint64(int64(number)))
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if of == "part" {
		object = map[string]any{fmt.Sprint(object["type"]): object}
	}
	return protowire.AppendBytes(tag(protowire.BytesType), packed(of, object))
}

// anyOf returns the encoding of a google.protobuf.Value.
func anyOf(v any) []byte {
	tag := protowire.AppendTag
	switch v := v.(type) {
	case float64:
		return protowire.AppendFixed64(tag(nil, 2, protowire.Fixed64Type), math.Float64bits(v))
	case string:
		return protowire.AppendString(tag(nil, 3, protowire.BytesType), v)
	case bool:
		return protowire.AppendVarint(tag(nil, 4, protowire.VarintType), protowire.EncodeBool(v))
	case map[string]any:
		return protowire.AppendBytes(tag(nil, 5, protowire.BytesType), objectOf(v))
	case []any:
		var list []byte
		for _, one := range v {
			list = protowire.AppendBytes(tag(list, 1, protowire.BytesType), anyOf(one))
		}
		return protowire.AppendBytes(tag(nil, 6, protowire.BytesType), list)
	}
	return protowire.AppendVarint(tag(nil, 1, protowire.VarintType), 0)
}

// objectOf returns the encoding of a google.protobuf.Struct.
func objectOf(v map[string]any) (b []byte) {
	for key, value := range v {
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		entry = protowire.AppendBytes(protowire.AppendTag(entry, 2, protowire.BytesType), anyOf(value))
		b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), entry)
	}
	return b
}
