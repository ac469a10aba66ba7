package words

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/serve"
)

// agentDialect has the differences between the protocol versions in the messages of a scripted agent.
type agentDialect struct {
	tool  string // kind of the update that announces a call
	ids   bool   // each message has an id
	ask   func(g language.Given) string
	ended func(s *serve.Run, reason string) error
}

var v1Agent = agentDialect{tool: "tool_call", ask: askFirst, ended: func(s *serve.Run, reason string) error {
	s.Result(`{"stopReason":` + serve.Quote(reason) + `}`)
	return nil
}}

var v2Agent = agentDialect{tool: "tool_call_update", ids: true, ask: askV2, ended: endV2}

// agentAct returns a scenario command for handlers of a scripted agent. The command calls do.
func agentAct(name, args, summary string, do func(*serve.Run, language.Given) error) *scenarios.Command {
	return language.AgentAct[*scenarios.Branch](name, args, summary, do)
}

// agentActs returns the commands of a scripted agent. The commands that send a part of a turn first accept the prompt
// of the turn.
func agentActs(d agentDialect) (all []*scenarios.Command) {
	add := func(name, args, summary string, do func(s *serve.Run, g language.Given) error) {
		all = append(all, agentAct(name, args, summary, do))
	}
	say := func(kind string) func(*serve.Run, language.Given) error {
		return func(s *serve.Run, g language.Given) error {
			s.Begin()
			id := g.Options["id"]
			if id == "" && d.ids {
				id = s.Message(kind)
			}
			return notifyUpdate(s, "", `{"sessionUpdate":"`+kind+`"`+member("messageId",
				id)+`,"content":`+textContent(g.Words[0])+`}`)
		}
	}
	add("text", "'TEXT' [id=MESSAGE]", "a chunk of the agent's message", say("agent_message_chunk"))
	add("thought", "'TEXT' [id=MESSAGE]", "a chunk of the agent's thoughts", say("agent_thought_chunk"))
	add("user", "'TEXT' [id=MESSAGE]", "a chunk of the user's message, as in a replay", say("user_message_chunk"))
	add("large", "BYTES", "a chunk of text whose line is about BYTES long",
		func(s *serve.Run, g language.Given) error {
			g.Words[0] = strings.Repeat("é", g.Number(0)/2)
			return say("agent_message_chunk")(s, g)
		})
	add("update", "JSON [session=ID]", "any session/update", func(s *serve.Run, g language.Given) error {
		return notifyUpdate(s, g.Options["session"], g.Words[0])
	})
	add("tool", "ID TITLE [kind=] [status=]", "a new tool call: "+d.tool, func(s *serve.Run, g language.Given) error {
		s.Begin()
		s.Message("")
		return notifyUpdate(s, "",
			`{"sessionUpdate":"`+d.tool+`","toolCallId":`+serve.Quote(g.Words[0])+`,"title":`+serve.Quote(g.Words[1])+
				member("kind", g.Options["kind"])+member("status", g.Options["status"])+`}`)
	})
	add("tool-update", "ID [status=] [text=] [title=]", "a tool_call_update",
		func(s *serve.Run, g language.Given) error {
			s.Begin()
			s.Message("")
			content := ""
			if text := g.Options["text"]; text != "" {
				content = `,"content":[{"type":"content","content":` + textContent(text) + `}]`
			}
			return notifyUpdate(s, "", `{"sessionUpdate":"tool_call_update","toolCallId":`+serve.Quote(g.Words[0])+
				member("status", g.Options["status"])+member("title", g.Options["title"])+content+`}`)
		})
	add("permission", "ID KIND:OPTION… [title=] as NAME",
		"send session/request_permission, do not wait; - for no options", func(s *serve.Run, g language.Given) error {
			s.Begin()
			s.Request(g.Alias, "session/request_permission", `{"sessionId":`+serve.Quote(s.Session())+d.ask(g)+
				`,"options":[`+optionsOf(g.Words[1:])+`]}`, "")
			return nil
		})
	add("trouble", "lost|unavailable|expired|unanswered|cut|ended|restart|late|forms [at=METHOD] [times=N]",
		"make the network in front of the editor fail, at the next POST (with METHOD) or event",
		func(s *serve.Run, g language.Given) error {
			times, err := strconv.Atoi(cmp.Or(g.Options["times"], "1"))
			return cmp.Or(err, s.Trouble(g.Words[0], g.Options["at"], times))
		})
	add("end", "STOP", "end the turn with stop reason STOP", func(s *serve.Run, g language.Given) error {
		return d.ended(s, g.Words[0])
	})
	return all
}

// v2AgentActs returns the commands of a scripted agent of version 2.
func v2AgentActs() []*scenarios.Command {
	return append(agentActs(v2Agent),
		agentAct("insert", "", "acknowledge the prompt (the first act of its turn does so by itself)",
			func(s *serve.Run, _ language.Given) error {
				s.Begin()
				return nil
			}),
		agentAct("state", "STATE [stop=]", "a state_update", func(s *serve.Run, g language.Given) error {
			return notifyUpdate(s, "", `{"sessionUpdate":"state_update","state":`+serve.Quote(g.Words[0])+
				member("stopReason", g.Options["stop"])+`}`)
		}))
}

// endV2 ends a turn of version 2 by sending the idle state.
func endV2(s *serve.Run, reason string) error {
	s.Begin()
	s.End()
	return notifyUpdate(s, "", `{"sessionUpdate":"state_update","state":"idle","stopReason":`+serve.Quote(reason)+`}`)
}

func askFirst(g language.Given) string {
	return `,"toolCall":{"toolCallId":` + serve.Quote(g.Words[0]) + member("title", g.Options["title"]) + `}`
}

// askV2 returns the title and the subject of a permission request. Version 2 requires a title, so the title has a
// default.
func askV2(g language.Given) string {
	return `,"title":` + serve.Quote(cmp.Or(g.Options["title"], "Go on?")) +
		`,"subject":{"type":"tool_call","toolCall":{"toolCallId":` + serve.Quote(g.Words[0]) +
		member("title", g.Options["title"]) + `}}`
}

func optionsOf(words []string) string {
	var options []string
	for _, w := range words {
		if kind, id, ok := strings.Cut(w, ":"); ok {
			options = append(options, `{"optionId":`+serve.Quote(id)+`,"name":`+serve.Quote(strings.ReplaceAll(kind, "_", " "))+
				`,"kind":`+serve.Quote(kind)+`}`)
		}
	}
	return strings.Join(options, ",")
}

// notifyUpdate sends a session/update about a session. If session is "", the update is about the run's session.
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
