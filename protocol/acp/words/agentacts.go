package words

import (
	"cmp"
	"strings"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/serve"
)

// agentActs are what a scripted agent can do.
func agentActs() (all []*scenarios.Command) {
	add := func(name, args, summary string, do func(s *serve.Run, g scenarios.Given) error) {
		all = append(all, scenarios.AgentAct(name, args, summary, do))
	}
	say := func(kind string) func(*serve.Run, scenarios.Given) error {
		return func(s *serve.Run, g scenarios.Given) error {
			return notifyUpdate(s, "", `{"sessionUpdate":"`+kind+`"`+member("messageId",
				g.Options["id"])+`,"content":`+textContent(g.Words[0])+`}`)
		}
	}
	add("text", "'TEXT' [id=MESSAGE]", "a chunk of the agent's message", say("agent_message_chunk"))
	add("thought", "'TEXT' [id=MESSAGE]", "a chunk of its thoughts", say("agent_thought_chunk"))
	add("user", "'TEXT' [id=MESSAGE]", "a chunk of the user's message, as in a replay", say("user_message_chunk"))
	add("large", "BYTES", "a chunk of text that makes a line of about so many bytes",
		func(s *serve.Run, g scenarios.Given) error {
			g.Words[0] = strings.Repeat("é", g.Number(0)/2)
			return say("agent_message_chunk")(s, g)
		})
	add("update", "JSON [session=ID]", "any session/update", func(s *serve.Run, g scenarios.Given) error {
		return notifyUpdate(s, g.Options["session"], g.Words[0])
	})
	add("tool", "ID TITLE [kind=] [status=]", "a tool_call", func(s *serve.Run, g scenarios.Given) error {
		return notifyUpdate(s, "",
			`{"sessionUpdate":"tool_call","toolCallId":`+serve.Quote(g.Words[0])+`,"title":`+serve.Quote(g.Words[1])+
				member("kind", g.Options["kind"])+member("status", g.Options["status"])+`}`)
	})
	add("tool-update", "ID [status=] [text=] [title=]", "a tool_call_update",
		func(s *serve.Run, g scenarios.Given) error {
			content := ""
			if text := g.Options["text"]; text != "" {
				content = `,"content":[{"type":"content","content":` + textContent(text) + `}]`
			}
			return notifyUpdate(s, "", `{"sessionUpdate":"tool_call_update","toolCallId":`+serve.Quote(g.Words[0])+
				member("status", g.Options["status"])+member("title", g.Options["title"])+content+`}`)
		})
	add("permission", "ID KIND:OPTION… [title=] as NAME",
		"a session/request_permission, without waiting; - for no options", askPermission)
	add("end", "STOP", "answer the prompt with a stop reason", func(s *serve.Run, g scenarios.Given) error {
		s.Result(`{"stopReason":` + serve.Quote(g.Words[0]) + `}`)
		return nil
	})
	return all
}

// askPermission asks for a permission.
func askPermission(s *serve.Run, g scenarios.Given) error {
	var options []string
	for _, w := range g.Words[1:] {
		if kind, id, ok := strings.Cut(w, ":"); ok {
			options = append(options, `{"optionId":`+serve.Quote(id)+`,"name":`+serve.Quote(strings.ReplaceAll(kind, "_", " "))+
				`,"kind":`+serve.Quote(kind)+`}`)
		}
	}
	s.Request(g.Alias, "session/request_permission", `{"sessionId":`+serve.Quote(s.Session())+`,"toolCall":{"toolCallId":`+
		serve.Quote(g.Words[0])+member("title", g.Options["title"])+`},"options":[`+strings.Join(options, ",")+`]}`, "")
	return nil
}

// notifyUpdate sends a session/update, of the session of the run if none is named.
func notifyUpdate(s *serve.Run, session, update string) error {
	s.Notify("session/update", `{"sessionId":`+serve.Quote(cmp.Or(session, s.Session()))+`,"update":`+update+`}`)
	return nil
}

func textContent(text string) string { return `{"type":"text","text":` + serve.Quote(text) + `}` }

func member(key, value string) string {
	if value == "" {
		return ""
	}
	return `,"` + key + `":` + serve.Quote(value)
}
