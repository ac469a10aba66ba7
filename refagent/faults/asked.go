package faults

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/refagent"
)

// The faults in this file change the requests to the model.

func sinceLastUser(_ string, list messages) messages {
	for i := len(list) - 1; i > 0; i-- {
		if list[i].Role == "user" {
			return list[i:]
		}
	}
	return list
}

// firstParts keeps only the first part of each prompt.
func firstParts(_ string, list messages) messages {
	for i := range list {
		if len(list[i].Parts) > 1 {
			list[i].Parts = list[i].Parts[:1]
		}
	}
	return list
}

// withoutRejections removes the results of tool calls that the user rejected.
func withoutRejections(_ string, list messages) messages {
	return slices.DeleteFunc(list, func(m refagent.ModelMessage) bool {
		return m.Role == "tool" && strings.Contains(m.Text, "rejected")
	})
}

// emptyRejections sets the results of tool calls that the user rejected to "".
func emptyRejections(_ string, list messages) messages {
	for i, m := range list {
		if m.Role == "tool" && strings.Contains(m.Text, "rejected") {
			list[i].Text = ""
		}
	}
	return list
}

// systemAsUser sends the editor's system prompt to the model as a user message.
func systemAsUser(_ string, list messages) messages {
	if list[0].Role == "system" {
		list[0].Role = "user"
	}
	return list
}

// systemOnce sends the editor's system prompt to the model only in the first turn.
func systemOnce(_ string, list messages) messages {
	if list[0].Role == "system" && len(sinceLastUser("", list)) < len(list)-1 {
		return list[1:]
	}
	return list
}

// keepSystem uses, for all requests with the same key, the system prompt of the first of these requests. key computes
// the key from the session.
func keepSystem(key func(session string) string) func() hooks {
	return func() hooks {
		var first memory[refagent.ModelMessage]
		return hooks{Request: func(session string, list messages) messages {
			kept := first.get(key(session))
			if list[0].Role != "system" {
				if kept.Role == "" {
					return list
				}
				return append(messages{kept}, list...)
			}
			if kept.Role == "" {
				first.set(key(session), list[0])
				return list
			}
			list[0] = kept
			return list
		}}
	}
}

func hideResults(_ string, list messages) messages {
	for i := range list {
		if list[i].Role == "tool" {
			list[i].Text = "done"
		}
	}
	return list
}

func shareHistory() hooks {
	var said memory[messages]
	return hooks{Request: func(session string, list messages) messages {
		var all messages
		said.with(func(of map[string]messages) {
			for s, other := range of {
				if s != session {
					all = append(all, other...)
				}
			}
			of[session] = list
		})
		return append(all, list...)
	}}
}

// rememberRefusals leaves prompts that the model refused in the context of later requests.
func rememberRefusals() hooks {
	var said, refused memory[messages]
	return hooks{
		Request: func(session string, list messages) messages {
			said.set(session, slices.Clone(list))
			return slices.Concat(refused.get(session), list)
		},
		Stop: func(session, reason string, err error) (string, error) {
			if reason == "refusal" {
				refused.set(session, append(said.get(session), refagent.ModelMessage{Role: "assistant", Text: "No."}))
			}
			return reason, err
		},
	}
}
