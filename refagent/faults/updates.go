package faults

import (
	"strings"

	"github.com/acp-test/acp-test/refagent"
)

func updateFaults() []Fault {
	return []Fault{
		fault("usage-null", "reports usage with null for what it does not know", changeOnly("usage_update", func(u object) {
			u["used"] = nil
		})).copies("agentclientprotocol/claude-agent-acp#375"),
		fault("usage-size-zero", "reports a context of size 0", changeOnly("usage_update", func(u object) {
			u["size"] = 0
		})),
		fault("usage-currency-wrong", "reports costs in a currency called $", changeOnly("usage_update", func(u object) {
			u["cost"] = object{"amount": 1, "currency": "$"}
		})),
		fault("plan-without-priority", "leaves the priority out of the entries of a plan",
			onPlan(func(e object) { delete(e, "priority") })),
		fault("plan-status-unknown", "gives the entries of a plan a status that does not exist",
			onPlan(func(e object) { e["status"] = "todo" })),
		fault("plan-as-changes", "sends only the newest entry of a plan that had several",
			changeUpdate(func(u object, tag string) {
				if list, ok := u["entries"].([]any); ok && tag == "plan" && len(list) > 2 {
					u["entries"] = list[len(list)-1:]
				}
			})),
		fault("message-ids-interleaved", "gives the pieces of one message two ids in turn", with(interleave)),
		fault("message-id-shared", "gives a thought and the answer after it the same message id",
			changeUpdate(func(u object, tag string) {
				if strings.HasPrefix(tag, "agent_") {
					u["messageId"] = "msg"
				}
			})),
		fault("chunk-without-content", "sends a piece of text without content",
			changeOnly("agent_message_chunk", func(u object) {
				delete(u, "content")
			})),
		fault("chunk-as-string", "sends the content of a piece of text as a string",
			changeUpdate(func(u object, tag string) {
				if _, s := textOf(u); tag == "agent_message_chunk" {
					u["content"] = s
				}
			})),
		fault("command-without-description", "lists commands without a description",
			changeUpdate(func(u object, _ string) {
				for c := range objects(u["availableCommands"], "") {
					delete(c, "description")
				}
			})),
	}
}

func onPlan(change func(entry object)) func() refagent.Hooks {
	return changeUpdate(func(u object, tag string) {
		if list, ok := u["entries"].([]any); ok && tag == "plan" {
			for _, e := range list {
				change(e.(object))
			}
		}
	})
}

func interleave(t *tap) {
	n := 0
	t.sending = func(f frame) {
		if u, tag := f.Update(); tag == "agent_message_chunk" {
			n++
			u["messageId"] = []string{"a", "b"}[n%2]
		}
	}
}
