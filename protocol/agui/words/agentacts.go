package words

import (
	"encoding/json"
	"fmt"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/serve"
)

// agentActs returns the commands that a scripted endpoint can execute during a run. In their JSON, $SESSION stands for
// the id of the run's thread, and $ID for the id of the run.
func agentActs() (all []*scenarios.Command) {
	add := func(name, args, summary string, do func(s *serve.Run, g language.Given) error) {
		all = append(all, language.AgentAct[*scenarios.Branch](name, args, summary, do))
	}
	// boundary sends the event that begins or ends the run. The event has the ids of the run's input.
	boundary := func(s *serve.Run, kind, more string) error {
		return send(s, kind, more, "threadId", s.Session(), "runId", s.Handled().JSON().Get("runId").Str())
	}
	add("start", "[with=JSON]", "RUN_STARTED, with the ids of the input", func(s *serve.Run, g language.Given) error {
		return boundary(s, "RUN_STARTED", g.Options["with"])
	})
	add("finish", "[with=JSON]", "RUN_FINISHED, with the ids of the input", func(s *serve.Run, g language.Given) error {
		return boundary(s, "RUN_FINISHED", g.Options["with"])
	})
	add("text", "ID 'TEXT'", "a message of the assistant, in its three events",
		func(s *serve.Run, g language.Given) error {
			return first(send(s, "TEXT_MESSAGE_START", "", "messageId", g.Words[0], "role", "assistant"),
				send(s, "TEXT_MESSAGE_CONTENT", "", "messageId", g.Words[0], "delta", g.Words[1]),
				send(s, "TEXT_MESSAGE_END", "", "messageId", g.Words[0]))
		})
	add("call", "ID TOOL JSON", "a tool call with its arguments, in its three events",
		func(s *serve.Run, g language.Given) error {
			return first(send(s, "TOOL_CALL_START", "", "toolCallId", g.Words[0], "toolCallName", g.Words[1]),
				send(s, "TOOL_CALL_ARGS", "", "toolCallId", g.Words[0], "delta", g.Words[2]),
				send(s, "TOOL_CALL_END", "", "toolCallId", g.Words[0]))
		})
	add("event", "TYPE JSON", "the event TYPE with the members in JSON", func(s *serve.Run, g language.Given) error {
		return send(s, g.Words[0], g.Words[1])
	})
	add("status", "N [type=TYPE]", "begin the response with status N and media type TYPE",
		func(s *serve.Run, g language.Given) error {
			s.Web().Head(g.Number(0), g.Options["type"])
			return nil
		})
	return all
}

// send sends an event. Its members are those of the JSON object more, and members, which alternates names and values.
// If both have a member, the value in more counts.
func send(s *serve.Run, kind, more string, members ...any) error {
	event := map[string]any{}
	if more != "" {
		if err := json.Unmarshal([]byte(more), &event); err != nil {
			return fmt.Errorf("the members of an event must be a JSON object: %w", err)
		}
	}
	for i := 0; i < len(members); i += 2 {
		if name := members[i].(string); event[name] == nil {
			event[name] = members[i+1]
		}
	}
	event["type"] = kind
	raw, err := json.Marshal(event)
	if err == nil {
		s.Send(raw)
	}
	return err
}

// first returns the first of errs that is not nil.
func first(errs ...error) error {
	return lists.First(errs, func(err error) bool { return err != nil })
}
