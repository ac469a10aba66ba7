package acpreport

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Habit is something that agents do in version 1 and that breaks in version 2.
type Habit struct {
	// Requirement of version 2 is broken by it, Does says what the agent does, and Instead
	// what version 2 has.
	Requirement, Does, Instead string
	is                         func(e transcript.Entry) bool
}

// Broken is a habit that an agent was seen to have.
type Broken struct {
	Habit
	Count int
	First string // scenario and entry
}

// AllHabits lists them, in the order of a conversation.
func AllHabits() []Habit {
	update := func(kinds ...string) func(transcript.Entry) bool {
		return func(e transcript.Entry) bool {
			u := acpframe.Update(e)
			return u != "" && strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+u+" ")
		}
	}
	asks := func(prefix string) func(transcript.Entry) bool {
		return func(e transcript.Entry) bool {
			return e.Kind == transcript.Request && strings.HasPrefix(e.Method, prefix)
		}
	}
	answers := func(method, path string) func(transcript.Entry) bool {
		return func(e transcript.Entry) bool {
			v := e.JSON().Path("result" + path)
			return e.Kind == transcript.Response && e.Method == method && v.Exists() && !v.IsNull() &&
				(v.Kind() != wire.Array || v.Len() > 0)
		}
	}
	return []Habit{
		{"V2-INIT-002", "answers initialize with agentCapabilities",
			"Say info with name and version, and capabilities, in which what there is is an object.",
			answers("initialize", ".agentCapabilities")},
		{"V2-INIT-004", "offers a login", "It is auth/login and auth/logout.", answers("initialize", ".authMethods")},
		{"V2-RPC-003", "has modes of its own", "A mode is a configuration option of the category mode.",
			answers("session/new", ".modes")},
		{"V2-SHAPE-001", "has options with an id", "An option has a configId, and a value its type.",
			answers("session/new", ".configOptions")},
		{"V2-RPC-003", "replays a session by session/load",
			"It is session/resume with replayFrom start; a state comes before its answer.", answers("session/load", "")},
		{"V2-PRM-001", "answers a prompt at the end of its turn",
			"Answer with a messageId when it becomes part of the conversation, show the message, and say running and idle.",
			answers("session/prompt", ".stopReason")},
		{"V2-UPD-001", "sends pieces of messages without the id of their message", "Each piece has a messageId.",
			func(e transcript.Entry) bool {
				return strings.HasSuffix(acpframe.Update(e), "_chunk") && !e.JSON().Path("params.update.messageId").Exists()
			}},
		{"V2-UPD-002", "begins tool calls with tool_call", "There is tool_call_update alone, which also begins one.",
			update("tool_call")},
		{"V2-UPD-002", "sends plans as plan", "Send plan_update with a planId.", update("plan")},
		{"V2-UPD-002", "tells its mode by current_mode_update", "Tell it by config_option_update.",
			update("current_mode_update")},
		{"V2-UPD-006", "shows diffs with their old and new text", "A diff is a list of changes to files.",
			func(e transcript.Entry) bool {
				return lists.Any(e.JSON().Path("params.update.content").Items(), func(c wire.Value) bool {
					return c.Get("type").Is("diff")
				})
			}},
		{"V2-PER-001", "asks for permission by the tool call alone",
			"The request has a title of its own, and the call is its subject.", asks("session/request_permission")},
		{"V2-RPC-004", "reads and writes files through the editor", "The agent does it itself.", asks("fs/")},
		{"V2-RPC-004", "runs commands in terminals of the editor",
			"The agent runs them, and shows them by terminal_update and terminal_output_chunk.", asks("terminal/")},
	}
}

// Seen adds what one transcript of version 1 shows to the habits of an agent.
func Seen(list []Broken, scenario string, t *transcript.Transcript) []Broken {
	if list == nil {
		list = append(list, lists.Map(AllHabits(), func(h Habit) Broken { return Broken{Habit: h} })...)
	}
	for e := range t.All() {
		if e.Source != transcript.Agent {
			continue
		}
		for i := range list {
			if h := &list[i]; h.is(e) {
				if h.Count++; h.Count == 1 {
					h.First = fmt.Sprintf("`%s` #%d", scenario, e.Seq)
				}
			}
		}
	}
	return list
}
