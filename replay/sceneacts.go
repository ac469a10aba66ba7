package replay

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

func (s *scene) act(a *scenarios.AgentAct) error {
	words, o, err := s.words(a)
	if err != nil {
		return err
	}
	switch a.Name {
	case "text", "thought", "user":
		kind := map[string]string{"text": "agent_message_chunk", "thought": "agent_thought_chunk", "user": "user_message_chunk"}[a.Name]
		s.update(`{"sessionUpdate":"` + kind + `"` + member("messageId", o["id"]) + `,"content":{"type":"text","text":` + quoted(words[0]) + `}}`)
	case "large":
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 0 || n > 1<<30 {
			return fmt.Errorf("%q is no number of bytes", words[0])
		}
		s.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + strings.Repeat("é", n/2) + `"}}`)
	case "update":
		session := s.session
		if o["session"] != "" {
			session = o["session"]
		}
		s.sink.send(updateOf(session, words[0]))
	case "tool":
		s.update(`{"sessionUpdate":"tool_call","toolCallId":` + quoted(words[0]) + `,"title":` + quoted(words[1]) + member("kind", o["kind"]) + member("status", o["status"]) + `}`)
	case "tool-update":
		content := ""
		if o["text"] != "" {
			content = `,"content":[{"type":"content","content":{"type":"text","text":` + quoted(o["text"]) + `}}]`
		}
		s.update(`{"sessionUpdate":"tool_call_update","toolCallId":` + quoted(words[0]) + member("status", o["status"]) + member("title", o["title"]) + content + `}`)
	case "permission":
		options, err := permissionOptions(words[1:])
		if err != nil {
			return err
		}
		s.ask(a.As, "session/request_permission", `{"sessionId":`+quoted(s.session)+`,"toolCall":{"toolCallId":`+quoted(words[0])+member("title", o["title"])+`},"options":[`+options+`]}`, o["id"])
	case "request":
		s.ask(a.As, words[0], words[1], o["id"])
	case "notify":
		s.sink.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s,"params":%s}`, quoted(words[0]), words[1]))
	case "await":
		return s.await(words[0], o["within"])
	case "result":
		s.reply(resultOf(s.request.ID, words[0]))
	case "error":
		s.reply(errorOf(s.request.ID, words[0], words[1]))
	case "end":
		s.reply(resultOf(s.request.ID, `{"stopReason":`+quoted(words[0])+`}`))
	case "send":
		s.sink.send([]byte(words[0]))
	case "write":
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(words[0], `"`, `\"`) + `"`)
		if err != nil {
			return fmt.Errorf("%q has a bad escape", words[0])
		}
		s.sink.bytes([]byte(text))
	case "stderr":
		return s.stderr(words[0], o["bytes"])
	case "pause":
		d, err := time.ParseDuration(words[0])
		if err != nil {
			return err
		}
		select {
		case <-time.After(d):
		case <-s.ctx.Done():
			return exited{}
		}
	case "repeat":
		n, err := strconv.Atoi(words[0])
		if err != nil {
			return fmt.Errorf("%q is no number", words[0])
		}
		for i := range n {
			s.index = i + 1
			if err := s.acts(a.Body); err != nil {
				return err
			}
		}
	case "join":
		inner := *s
		inner.sink.join = &bytes.Buffer{}
		err := inner.acts(a.Body)
		s.answered = inner.answered
		inner.sink.flush()
		return err
	case "split":
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of bytes", words[0])
		}
		inner := *s
		inner.sink.split = n
		err = inner.acts(a.Body)
		s.answered = inner.answered
		return err
	case "go":
		inner := *s
		go inner.play(&scenarios.AgentHandler{Acts: a.Body})
	case "exit":
		code, err := strconv.Atoi(words[0])
		if err != nil {
			return err
		}
		s.c.exit <- code
		return exited{}
	case "die":
		s.c.Die()
		return exited{}
	case "close":
		s.c.close()
	case "fork":
		return s.c.Child()
	case "ignore":
		s.mu.Lock()
		s.ignores[words[0]] = true
		s.mu.Unlock()
	}
	return nil
}

func member(key, value string) string {
	if value == "" {
		return ""
	}
	return `,"` + key + `":` + quoted(value)
}

func permissionOptions(words []string) (string, error) {
	var out []string
	for _, w := range words {
		if w == "-" {
			continue
		}
		kind, id, ok := strings.Cut(w, ":")
		if !ok {
			return "", fmt.Errorf("%q is no option: KIND:ID is expected", w)
		}
		out = append(out, `{"optionId":`+quoted(id)+`,"name":`+quoted(strings.ReplaceAll(kind, "_", " "))+`,"kind":`+quoted(kind)+`}`)
	}
	return strings.Join(out, ","), nil
}

func (s *scene) update(update string) { s.sink.send(updateOf(s.session, update)) }

func (s *scene) reply(line []byte) {
	s.answered = true
	s.sink.send(line)
}

// ask sends a request and remembers it by its name.
func (s *scene) ask(name, method, params, id string) {
	if id == "" {
		id = s.c.newID()
	}
	e := s.sink.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`, id, quoted(method), params))
	s.mu.Lock()
	s.scripted.names[name] = e.Seq
	s.mu.Unlock()
	s.c.Log.Event(0, transcript.Note, named, s.session, namedNote{name, e.Seq})
}

// await waits for an answer, a cancel, or a frame with a method that comes from
// now on. A wait that ends without it is no mistake: the checks tell.
func (s *scene) await(what, within string) error {
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if within != "" {
		d, err := time.ParseDuration(within)
		if err != nil {
			return err
		}
		ctx, cancel = context.WithTimeout(ctx, d)
	}
	defer cancel()
	if what == "cancel" {
		select {
		case <-s.cancelled:
		case <-ctx.Done():
		}
		return nil
	}
	s.mu.Lock()
	seq, ok := s.scripted.names[what]
	s.mu.Unlock()
	if ok {
		s.c.answer(ctx, seq)
		return nil
	}
	from := s.c.Log.Len() + 1
	for {
		next := s.c.frame()
		for e := range s.c.Log.From(from) {
			if e.Source == transcript.Editor && e.Method == what {
				return nil
			}
			from = e.Seq + 1
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *scene) stderr(text, size string) error {
	n := len(text)
	if size != "" {
		var err error
		if n, err = strconv.Atoi(size); err != nil {
			return err
		}
	}
	line := text + "\n"
	for written := 0; written < n && s.ctx.Err() == nil; written += len(line) {
		if _, err := s.c.Err.Write([]byte(line)); err != nil {
			return nil // an editor that closed it
		}
	}
	return nil
}
