package scenarios

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
)

// given are the arguments of an act, with the variables replaced.
type given struct {
	words   []string
	options map[string]string
	as      string
	body    *serve.Block
}

func (g given) number(i int) int {
	n, _ := strconv.Atoi(g.words[i]) // it was checked
	return n
}

// agentActs are the commands of a handler. Their usage says which arguments they
// take: JSON, N, BYTES, CODE and D, and words joined by |, are checked.
func agentActs() []*Command {
	var all []*Command
	add := func(name, args, summary string, do func(s *serve.Scene, g given) error) {
		c := &Command{Name: name, Group: "agent-acts", Args: args, Summary: summary, Act: func(l *Line) (func(*serve.Scene) error, error) {
			return l.act(strings.Fields(args), do)
		}}
		c.Captures = strings.HasSuffix(args, namedArgs)
		if rest, ok := strings.CutSuffix(args, "{ }"); ok {
			c.Args, c.Blocks = strings.TrimSpace(rest), 1
		}
		all = append(all, c)
	}
	say := func(kind string) func(*serve.Scene, given) error {
		return func(s *serve.Scene, g given) error {
			return update(s, "", `{"sessionUpdate":"`+kind+`"`+member("messageId", g.options["id"])+`,"content":`+textContent(g.words[0])+`}`)
		}
	}
	add("text", "'TEXT' [id=MESSAGE]", "a chunk of the agent's message", say("agent_message_chunk"))
	add("thought", "'TEXT' [id=MESSAGE]", "a chunk of its thoughts", say("agent_thought_chunk"))
	add("user", "'TEXT' [id=MESSAGE]", "a chunk of the user's message, as in a replay", say("user_message_chunk"))
	add("large", "BYTES", "a chunk of text that makes a line of about so many bytes", func(s *serve.Scene, g given) error {
		g.words[0] = strings.Repeat("é", g.number(0)/2)
		return say("agent_message_chunk")(s, g)
	})
	add("update", "JSON [session=ID]", "any session/update", func(s *serve.Scene, g given) error {
		return update(s, g.options["session"], g.words[0])
	})
	add("tool", "ID TITLE [kind=] [status=]", "a tool_call", func(s *serve.Scene, g given) error {
		return update(s, "", `{"sessionUpdate":"tool_call","toolCallId":`+serve.Quote(g.words[0])+`,"title":`+serve.Quote(g.words[1])+
			member("kind", g.options["kind"])+member("status", g.options["status"])+`}`)
	})
	add("tool-update", "ID [status=] [text=] [title=]", "a tool_call_update", func(s *serve.Scene, g given) error {
		content := ""
		if text := g.options["text"]; text != "" {
			content = `,"content":[{"type":"content","content":` + textContent(text) + `}]`
		}
		return update(s, "", `{"sessionUpdate":"tool_call_update","toolCallId":`+serve.Quote(g.words[0])+
			member("status", g.options["status"])+member("title", g.options["title"])+content+`}`)
	})
	add("permission", "ID KIND:OPTION… [title=] as NAME", "a session/request_permission, without waiting; - for no options", askPermission)
	add("request", "METHOD JSON [id=JSON] as NAME", "any request to the editor, without waiting", func(s *serve.Scene, g given) error {
		s.Request(g.as, g.words[0], g.words[1], g.options["id"])
		return nil
	})
	add("notify", "METHOD JSON", "any notification", func(s *serve.Scene, g given) error {
		s.Notify(g.words[0], g.words[1])
		return nil
	})
	add("await", "NAME|cancel|METHOD [within=D]", "wait for the answer to a request, for session/cancel, or for a frame of the editor", func(s *serve.Scene, g given) error {
		within, _ := time.ParseDuration(g.options["within"]) // without one: for ever
		s.Await(g.words[0], within)
		return nil
	})
	add("result", "JSON", "answer the request that is being handled", func(s *serve.Scene, g given) error {
		s.Result(g.words[0])
		return nil
	})
	add("error", "CODE 'MESSAGE'", "answer it with an error", func(s *serve.Scene, g given) error {
		s.Error(g.words[0], g.words[1])
		return nil
	})
	add("end", "STOP", "answer the prompt with a stop reason", func(s *serve.Scene, g given) error {
		s.Result(`{"stopReason":` + serve.Quote(g.words[0]) + `}`)
		return nil
	})
	add("send", "'LINE'", "a line as it is", func(s *serve.Scene, g given) error {
		s.Send([]byte(g.words[0]))
		return nil
	})
	add("write", "'BYTES'", "bytes as they are, with the escapes of Go, and no newline", func(s *serve.Scene, g given) error {
		text, err := unescape(g.words[0])
		s.Write([]byte(text))
		return err
	})
	add("stderr", "'TEXT' [bytes=N]", "write to stderr, so often that it makes N bytes", func(s *serve.Scene, g given) error {
		n, err := strconv.Atoi(g.options["bytes"])
		if err != nil {
			n = len(g.words[0])
		}
		s.Stderr(g.words[0], n)
		return nil
	})
	add("pause", "D", "let time pass", func(s *serve.Scene, g given) error {
		d, err := time.ParseDuration(g.words[0])
		if err != nil {
			return err
		}
		return s.Pause(d)
	})
	add("repeat", "N { }", "do it N times; $I counts from 1", func(s *serve.Scene, g given) error { return s.Repeat(g.number(0), g.body) })
	add("join", "{ }", "write all of it with one call", func(s *serve.Scene, g given) error { return s.Join(g.body) })
	add("split", "N { }", "write it in pieces of N bytes", func(s *serve.Scene, g given) error { return s.Split(g.number(0), g.body) })
	add("go", "{ }", "do it beside what follows", func(s *serve.Scene, g given) error {
		s.Beside(g.body)
		return nil
	})
	add("exit", "CODE", "exit", func(s *serve.Scene, g given) error { return s.Exit(g.number(0)) })
	add("die", "", "end by SIGKILL", func(s *serve.Scene, _ given) error { return s.Die() })
	add("close", "", "close the output and live on", func(s *serve.Scene, _ given) error {
		s.Close()
		return nil
	})
	add("fork", "", "start a child that outlives its parent", func(s *serve.Scene, _ given) error { return s.Fork() })
	add("ignore", "eof|term", "do not end at the end of the input, or on SIGTERM", func(s *serve.Scene, g given) error {
		s.Ignore(g.words[0])
		return nil
	})
	return all
}

// act compiles an act by its usage.
func (l *Line) act(usage []string, do func(*serve.Scene, given) error) (func(*serve.Scene) error, error) {
	var kinds, keys []string
	checks := map[string]string{}
	most := 0
	for _, u := range usage {
		key, kind, option := strings.Cut(strings.Trim(u, "[]"), "=")
		switch {
		case option:
			keys, checks[key] = append(keys, key), kind
		case u == "as" && l.Alias == "":
			return nil, l.Usage(l.End()+1, "%s needs a name: as NAME", l.Name.Raw())
		case u == "as":
		case strings.HasSuffix(u, "…"):
			most += 1000
			kinds = append(kinds, u)
		case u != "NAME" && !strings.ContainsAny(u, "{}"):
			most++
			kinds = append(kinds, u)
		}
	}
	options, m := l.Options(keys...)
	if m != nil {
		return nil, m
	}
	for i, kind := range kinds {
		w, m := l.Need(i, kind)
		if m == nil {
			m = l.fits(w, kind)
		}
		if m != nil {
			return nil, m
		}
	}
	for key, w := range options {
		if m := l.fits(w, checks[key]); m != nil {
			return nil, m
		}
	}
	if m := l.AtMost(most); m != nil {
		return nil, m
	}
	var body *serve.Block
	if len(l.Blocks) > 0 {
		body = l.p.acts(l.Blocks[0])
	}
	return func(s *serve.Scene) error {
		g := given{options: map[string]string{}, as: l.Alias, body: body}
		for i, w := range l.Rest {
			text, err := l.expandAct(s, w, kinds[min(i, len(kinds)-1)])
			if err != nil {
				return err
			}
			g.words = append(g.words, text)
		}
		for key, w := range options {
			var err error
			if g.options[key], err = l.expandAct(s, w, checks[key]); err != nil {
				return err
			}
		}
		return do(s, g)
	}, nil
}

// expandAct replaces the variables of a word, and checks what comes of it.
func (l *Line) expandAct(s *serve.Scene, w script.Word, kind string) (string, error) {
	text, err := s.Expand(w)
	if err == nil && strings.Contains(w.Raw(), "$") && kind != "JSON" {
		if problem := misfit(text, kind); problem != "" {
			err = fmt.Errorf("%s", problem)
		}
	}
	return text, err
}

// fits checks a word that is known before the run.
func (l *Line) fits(w script.Word, kind string) *Mistake {
	text, ok := w.Literal()
	if !ok || strings.Contains(text, "$") {
		return nil
	}
	if problem := misfit(text, kind); problem != "" {
		return l.Usage(w.Column, "%s", problem)
	}
	return nil
}

// misfit says why a text is not of a kind, as the usage of an act names it.
func misfit(text, kind string) string {
	switch kind {
	case "JSON":
		if !json.Valid([]byte(text)) {
			return fmt.Sprintf("%s is no JSON", text)
		}
	case "N", "BYTES", "CODE":
		n, err := strconv.Atoi(text)
		if err != nil || n > 1<<30 || n < 0 && kind != "CODE" {
			return fmt.Sprintf("%q is no number", text)
		}
	case "'BYTES'":
		if _, err := unescape(text); err != nil {
			return err.Error()
		}
	case "D":
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return fmt.Sprintf("%q is no duration", text)
		}
	case "KIND:OPTION…":
		if text != "-" && !strings.Contains(text, ":") {
			return fmt.Sprintf("%q is no option: KIND:ID is expected", text)
		}
	default:
		if choices := strings.Split(kind, "|"); len(choices) > 1 && kind == strings.ToLower(kind) && !slices.Contains(choices, text) {
			return fmt.Sprintf("%q is none of %s", text, kind)
		}
	}
	return ""
}

// unescape replaces the escapes of Go in a text.
func unescape(text string) (string, error) {
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		err = fmt.Errorf("%q has a bad escape", text)
	}
	return out, err
}

// askPermission asks for a permission.
func askPermission(s *serve.Scene, g given) error {
	var options []string
	for _, w := range g.words[1:] {
		if kind, id, ok := strings.Cut(w, ":"); ok {
			options = append(options, `{"optionId":`+serve.Quote(id)+`,"name":`+serve.Quote(strings.ReplaceAll(kind, "_", " "))+
				`,"kind":`+serve.Quote(kind)+`}`)
		}
	}
	s.Request(g.as, "session/request_permission", `{"sessionId":`+serve.Quote(s.Session())+`,"toolCall":{"toolCallId":`+
		serve.Quote(g.words[0])+member("title", g.options["title"])+`},"options":[`+strings.Join(options, ",")+`]}`, "")
	return nil
}

// update sends a session/update, of the scene's session if none is named.
func update(s *serve.Scene, session, update string) error {
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
