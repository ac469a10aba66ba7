package mockclient

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// The following functions return conditions on a transcript about an agent's behaviour. They are gomega matchers and
// can be combined with Before, After, AllOf and other functions:
//
//	Expect(t).To(ToolCallUpdated("in_progress").After(PermissionRequested()))

func fromAgent(what string, match func(transcript.Entry) bool) transcript.Expectation {
	return transcript.First(what, func(f transcript.Entry) bool {
		return f.Source == transcript.Agent && match(f)
	})
}

// Updated matches a session/update of a kind, such as "plan"; "" matches every kind.
func Updated(kind string) transcript.Expectation {
	what := "a session/update"
	if kind != "" {
		what = "an update " + kind
	}
	return fromAgent(what, func(f transcript.Entry) bool {
		u := acpframe.Update(f)
		return u != "" && (kind == "" || u == kind)
	})
}

// MessageSaid matches an agent_message_chunk that contains a text; "" matches every chunk. It does not find a text
// that is split between chunks; for that, see History.
func MessageSaid(text string) transcript.Expectation {
	what := "an agent message"
	if text != "" {
		what = fmt.Sprintf("an agent message with %q", text)
	}
	return fromAgent(what, func(f transcript.Entry) bool {
		return acpframe.Update(f) == "agent_message_chunk" && contains(f.JSON().Path("params.update.content.text"), text)
	})
}

// ToolCalled matches the announcement of a tool call of a kind, such as "edit"; "" matches every kind. A call without
// a kind counts as kind other.
func ToolCalled(kind string) transcript.Expectation {
	return fromAgent(trimmed("a tool call", kind), func(f transcript.Entry) bool {
		if acpframe.Update(f) != "tool_call" {
			return false
		}
		k := f.JSON().Path("params.update.kind")
		return kind == "" || k.Is(kind) || kind == "other" && !k.Exists()
	})
}

// ToolCallUpdated matches when a tool call gets a status, either in its announcement or in an update. "" matches
// every update.
func ToolCallUpdated(status string) transcript.Expectation {
	return fromAgent(trimmed("a tool call", status), func(f transcript.Entry) bool {
		u := acpframe.Update(f)
		if u != "tool_call_update" && (u != "tool_call" || status == "") {
			return false
		}
		s := f.JSON().Path("params.update.status")
		return status == "" || s.Is(status) || status == "pending" && u == "tool_call" && !s.Exists()
	})
}

// PermissionRequested matches a session/request_permission from the agent.
func PermissionRequested() transcript.Expectation { return Requested("session/request_permission") }

// Requested matches a request from the agent with the given method.
func Requested(method string) transcript.Expectation {
	return fromAgent("the agent's "+method, func(f transcript.Entry) bool {
		return f.Kind == transcript.Request && f.Method == method
	})
}

// PermissionAnswered matches the editor's response to a permission request with an outcome ("selected", "cancelled");
// "" matches every outcome.
func PermissionAnswered(outcome string) transcript.Expectation {
	return transcript.First(trimmed("an answered permission", outcome), func(f transcript.Entry) bool {
		return f.Source == transcript.Editor && f.Kind == transcript.Response && f.Method == "session/request_permission" &&
			(outcome == "" || f.JSON().Path("result.outcome.outcome").Is(outcome))
	})
}

// Answered matches the agent's response to this request, whether a result or an error.
func (c *Call) Answered() transcript.Expectation {
	return fromAgent("the answer to "+c.Entry.Method, func(f transcript.Entry) bool {
		return f.Kind == transcript.Response && f.Ref == c.Entry.Seq && f.Ref != 0
	})
}

// AgentExited matches the end of an agent.
func AgentExited() transcript.Expectation {
	return transcript.First("the agent's exit", func(f transcript.Entry) bool { return f.Kind == transcript.Exited })
}

func trimmed(what, which string) string {
	if which == "" {
		return what
	}
	return what + " " + which
}

func contains(v wire.Value, text string) bool {
	if text == "" {
		return v.Exists()
	}
	return v.Kind() == wire.String && strings.Contains(v.Str(), text)
}
