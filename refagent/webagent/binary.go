package webagent

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// BinaryType is the content type of the binary form.
const BinaryType = "application/vnd.ag-ui.event+proto"

// WantsBinary reports whether a client that sends an Accept header may get the binary form.
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

// layouts says which number each member of a message has, and behind it what it is, nothing for a text: v any value,
// o an object, n a number, b true or false, and the name of a message; a star is for a list.
var layouts = map[string]string{
	"STEP_STARTED": "stepName2 subagentRunId3", "STEP_FINISHED": "stepName2 subagentRunId3",
	"RUN_STARTED": "threadId2 runId3 parentRunId4 input5input protocolVersion6",
	"RUN_FINISHED": "threadId2 runId3 result4v outcome5 interrupts6*interrupt usage7*usage " +
		"pendingToolCallIds8*",
	"RUN_ERROR":                 "code2 message3 usage4*usage",
	"TEXT_MESSAGE_START":        "messageId2 role3 name4 subagentRunId5",
	"TEXT_MESSAGE_CONTENT":      "messageId2 delta3 subagentRunId4",
	"TEXT_MESSAGE_END":          "messageId2 subagentRunId3",
	"TEXT_MESSAGE_CHUNK":        "messageId2 role3 delta4 name5 subagentRunId6",
	"TOOL_CALL_START":           "toolCallId2 toolCallName3 parentMessageId4 subagentRunId5",
	"TOOL_CALL_ARGS":            "toolCallId2 delta3 subagentRunId4",
	"TOOL_CALL_END":             "toolCallId2 subagentRunId3",
	"TOOL_CALL_CHUNK":           "toolCallId2 toolCallName3 parentMessageId4 delta5 subagentRunId6",
	"TOOL_CALL_RESULT":          "subagentRunId2 messageId3 toolCallId4 content5 role6 contentParts7*part",
	"STATE_SNAPSHOT":            "snapshot2v subagentRunId3",
	"STATE_DELTA":               "delta2*patch subagentRunId3",
	"MESSAGES_SNAPSHOT":         "messages2*message",
	"ACTIVITY_SNAPSHOT":         "subagentRunId2 messageId3 activityType4 content5o replace6b",
	"ACTIVITY_DELTA":            "subagentRunId2 messageId3 activityType4 patch5*patch",
	"RAW":                       "event2v source3 subagentRunId4",
	"CUSTOM":                    "name2 value3v subagentRunId4",
	"SUBAGENT_STARTED":          "subagentRunId2 name3 description4 parentSubagentRunId5",
	"SUBAGENT_FINISHED":         "subagentRunId2 result3v outcome4 interruptIds5*",
	"SUBAGENT_ERROR":            "subagentRunId2 message3 code4",
	"REASONING_START":           "subagentRunId2 messageId3",
	"REASONING_END":             "subagentRunId2 messageId3",
	"REASONING_MESSAGE_START":   "subagentRunId2 messageId3 role4",
	"REASONING_MESSAGE_CONTENT": "subagentRunId2 messageId3 delta4",
	"REASONING_MESSAGE_END":     "subagentRunId2 messageId3",
	"REASONING_MESSAGE_CHUNK":   "subagentRunId2 messageId3 delta4",
	"REASONING_ENCRYPTED_VALUE": "subagentRunId2 subtype3 entityId4 encryptedValue5",

	"base": "type1n timestamp2n rawEvent3v metadata4o",
	"input": "threadId1 runId2 parentRunId3 state4v messages5*message tools6*tool context7*context forwardedProps8v " +
		"protocolVersion10",
	"message":   "id1 role2 content3 name4 toolCalls5*call toolCallId6 error7 contentParts8*part",
	"call":      "id1 type2 function3function",
	"function":  "name1 arguments2",
	"part":      "text1spoken",
	"spoken":    "text1",
	"tool":      "name1 description2 parameters3v",
	"context":   "description1 value2",
	"interrupt": "id1 reason2 message3 toolCallId4 responseSchema5v",
	"usage":     "provider1 model2 inputTokens3n outputTokens4n totalTokens5n",
	"patch":     "op1n path2 from3 value4v",
}

// arms are the types of events in the order of their numbers in the envelope, from 1; kinds are those of
// the enumeration, from 0.
var (
	kinds = append(slices.Clone(inBoth), "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR",
		"TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK")
	arms = append(slices.Clone(inBoth), "TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK", "SUBAGENT_STARTED",
		"SUBAGENT_FINISHED", "SUBAGENT_ERROR")
	inBoth = []string{"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TOOL_CALL_START",
		"TOOL_CALL_ARGS", "TOOL_CALL_END", "STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "RAW", "CUSTOM",
		"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED"}
	newer = []string{"TOOL_CALL_RESULT", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_START",
		"REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "REASONING_MESSAGE_CHUNK",
		"REASONING_END", "REASONING_ENCRYPTED_VALUE"}
)

// binaryOf is an event in the binary form, with its length; nil if the form has no such event.
func binaryOf(data []byte) []byte {
	var e map[string]any
	if err := json.Unmarshal(data, &e); err != nil {
		return nil
	}
	kind, _ := e["type"].(string)
	arm, enum := slices.Index(slices.Concat(arms, newer), kind), slices.Index(slices.Concat(kinds, newer), kind)
	if arm < 0 {
		return nil
	}
	e["type"] = float64(enum)
	if outcome, ok := e["outcome"].(map[string]any); ok {
		for _, name := range []string{"interrupts", "pendingToolCallIds", "interruptIds"} {
			e[name] = outcome[name]
		}
		e["outcome"] = outcome["type"]
	}
	body := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), packed("base", e))
	body = append(body, packed(kind, e)...)
	whole := protowire.AppendBytes(protowire.AppendTag(nil, protowire.Number(arm+1), protowire.BytesType), body)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(whole))), whole...)
}

// packed is a message.
func packed(layout string, m map[string]any) (b []byte) {
	if parts, ok := m["content"].([]any); ok {
		m["contentParts"] = parts
	}
	for member := range strings.FieldsSeq(layouts[layout]) {
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

// memberOf is one member of a message, nothing if it is not there.
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
		object, _ := v.(map[string]any) // which may be empty
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

// anyOf is a google.protobuf.Value.
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

// objectOf is a google.protobuf.Struct.
func objectOf(v map[string]any) (b []byte) {
	for key, value := range v {
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		entry = protowire.AppendBytes(protowire.AppendTag(entry, 2, protowire.BytesType), anyOf(value))
		b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), entry)
	}
	return b
}
