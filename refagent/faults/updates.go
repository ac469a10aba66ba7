package faults

import (
	"strings"

	"github.com/acp-test/acp-test/refagent"
)

func updateFaults() []Fault {
	return []Fault{
		{
			Name:    "usage-null",
			Summary: "reports usage with null for what it does not know",
			Copies:  "agentclientprotocol/claude-agent-acp#375",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "usage_update" {
					u["used"] = nil
				}
				return true
			}),
		},
		{
			Name:    "usage-size-zero",
			Summary: "reports a context of size 0",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "usage_update" {
					u["size"] = 0
				}
				return true
			}),
		},
		{
			Name:    "usage-currency-wrong",
			Summary: "reports costs in a currency called $",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "usage_update" {
					u["cost"] = object{"amount": 1, "currency": "$"}
				}
				return true
			}),
		},
		{
			Name:    "plan-without-priority",
			Summary: "leaves the priority out of the entries of a plan",
			Hooks:   onPlan(func(e object) { delete(e, "priority") }),
		},
		{
			Name:    "plan-status-unknown",
			Summary: "gives the entries of a plan a status that does not exist",
			Hooks:   onPlan(func(e object) { e["status"] = "todo" }),
		},
		{
			Name:    "plan-as-changes",
			Summary: "sends only the newest entry of a plan that had several",
			Hooks: onUpdate(func(u object, tag string) bool {
				if list, ok := u["entries"].([]any); ok && tag == "plan" && len(list) > 2 {
					u["entries"] = list[len(list)-1:]
				}
				return true
			}),
		},
		{
			Name:    "message-ids-interleaved",
			Summary: "gives the pieces of one message two ids in turn",
			Hooks:   with(interleave),
		},
		{
			Name:    "message-id-shared",
			Summary: "gives a thought and the answer after it the same message id",
			Hooks: onUpdate(func(u object, tag string) bool {
				if strings.HasPrefix(tag, "agent_") {
					u["messageId"] = "msg"
				}
				return true
			}),
		},
		{
			Name:    "chunk-without-content",
			Summary: "sends a piece of text without content",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "agent_message_chunk" {
					delete(u, "content")
				}
				return true
			}),
		},
		{
			Name:    "chunk-as-string",
			Summary: "sends the content of a piece of text as a string",
			Hooks: onUpdate(func(u object, tag string) bool {
				if _, s := textOf(u); tag == "agent_message_chunk" {
					u["content"] = s
				}
				return true
			}),
		},
		{
			Name:    "command-without-description",
			Summary: "lists commands without a description",
			Hooks: onUpdate(func(u object, _ string) bool {
				list, _ := u["availableCommands"].([]any)
				for _, c := range list {
					delete(c.(object), "description")
				}
				return true
			}),
		},
	}
}

func onPlan(change func(entry object)) func() refagent.Hooks {
	return onUpdate(func(u object, tag string) bool {
		if list, ok := u["entries"].([]any); ok && tag == "plan" {
			for _, e := range list {
				change(e.(object))
			}
		}
		return true
	})
}

func interleave(t *tap) {
	n := 0
	t.out = func(f frame) bool {
		if u, tag := f.Update(); tag == "agent_message_chunk" {
			n++
			u["messageId"] = []string{"a", "b"}[n%2]
		}
		return true
	}
}
