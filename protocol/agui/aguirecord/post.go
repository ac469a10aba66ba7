package aguirecord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/agui/fold"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// thread is a thread of the recording, from the front end's point of view.
type thread struct {
	fold.Thread
	name       string
	interrupts []string
	begun      bool // a line of the scenario has named the thread
}

// heard applies an event to the thread.
func (t *thread) heard(v wire.Value) {
	_ = t.Apply(v) // if a patch fails, the rules report it
	if v.Get("type").Is("RUN_FINISHED") {
		t.interrupts = nil
		for i := range v.Path("outcome.interrupts").Items() {
			t.interrupts = append(t.interrupts, i.Get("id").Str())
		}
	}
}

// word returns the name of the thread for a script line, and option the option with that name for a pattern. If there
// is only one thread, both return the zero Word.
func (t *thread) word(c *converter) script.Word {
	if len(c.threads) < 2 {
		return script.Word{}
	}
	return script.Text(t.name)
}

func (t *thread) option(c *converter) script.Word {
	if len(c.threads) < 2 {
		return script.Word{}
	}
	return script.Option("session", t.name)
}

// post is one HTTP post of a front end.
type post struct {
	seq    int
	name   string // name in the scenario
	thread *thread
	raw    []byte // body of the post
	file   string // name of the file for a large body that is not an input, or ""
	text   string // text of the user, or "" if there is none
	lines  []*script.Line
	run    *script.Line // the last line of the post, without the name of the thread

	open   bool
	beside bool     // another post to the thread was open at the same time
	gone   int      // Seq at which the front end hung up, or 0
	unseen []string // types of the events since the last await line
}

// shortPost is the maximum length of a body in a line of a scenario, in bytes. Larger bodies are put into a file.
const shortPost = 2000

// post returns the post that an entry records.
func (c *converter) post(e transcript.Entry) *post {
	p := &post{seq: e.Seq, raw: bytes.Clone(e.Raw)}
	v := e.JSON()
	var messages []fold.Message
	id := v.Get("threadId")
	if id.Kind() != wire.String || v.Get("runId").Kind() != wire.String ||
		json.Unmarshal(v.Get("messages").Raw(), &messages) != nil || messages == nil {
		if len(p.raw) > shortPost {
			p.file = fmt.Sprintf("post-%d.json", e.Seq)
		}
		return p
	}
	p.thread = c.threads[id.Str()]
	if p.thread == nil {
		p.thread = &thread{name: "main"}
		if n := len(c.threads); n > 0 {
			p.thread.name = fmt.Sprintf("t%d", n+1)
		}
		c.threads[id.Str()] = p.thread
	}
	p.input(c, v, messages)
	p.thread.Messages = messages
	if state := v.Get("state"); state.Exists() {
		p.thread.State = bytes.Clone(state.Raw())
	}
	return p
}

// input makes the lines for a post whose body is a RunAgentInput.
func (p *post) input(c *converter, v wire.Value, messages []fold.Message) {
	in := object(v)
	with := others(in)
	if !p.said(messages) {
		with["messages"], p.lines = in["messages"], nil
	}
	resumed := p.resume(c, in["resume"])
	var options []script.Word
	if s := v.Get("state"); s.Exists() && !sameJSON(s.Raw(), p.thread.State) {
		options = append(options, script.Option("state", script.Quote(string(s.Raw()))))
	}
	if tools, _ := in["tools"].([]any); len(tools) > 0 {
		options = append(options, script.Option("tools", quoted(tools)))
	}
	if len(with) > 0 {
		options = append(options, script.Option("with", quoted(with)))
	}
	if resumed != nil {
		p.run = script.New("resume %s %s", resumed, withoutOf(options))
		return
	}
	if p.text != "" {
		options = append([]script.Word{script.Quote(p.text)}, options...)
	}
	p.run = script.New("run %s", options)
}

// said adds lines for the messages that the post adds to its thread: tool results, and the user's text at the end. It
// returns false if a line cannot express the messages, because the post adds or changes others.
func (p *post) said(messages []fold.Message) bool {
	fresh, known := p.fresh(messages)
	for i, m := range fresh {
		n := slices.Index(p.thread.Unanswered(), fmt.Sprint(m["toolCallId"]))
		user := m.Role() == "user" && i == len(fresh)-1
		switch content, isText := m["content"].(string); {
		case known && m.Role() == "tool" && n >= 0 && isText && m["error"] == nil:
			p.lines = append(p.lines, script.New("tool-result %s %s", n+1, script.Quote(content)))
			p.thread.Messages = append(p.thread.Messages, m)
		case user && isText && content != "":
			p.text = content
		case user:
			p.text, known = textOf(m), false
		default:
			known = false
		}
	}
	return known
}

// others returns the members of an input for which scripts have no words. It omits context and forwardedProps if they
// are empty, as usual.
func others(in map[string]any) map[string]any {
	out := maps.Clone(in)
	for _, key := range []string{"threadId", "runId", "messages", "state", "tools", "resume"} {
		delete(out, key)
	}
	if list, ok := in["context"].([]any); ok && len(list) == 0 {
		delete(out, "context")
	}
	if members, ok := in["forwardedProps"].(map[string]any); ok && len(members) == 0 {
		delete(out, "forwardedProps")
	}
	return out
}

// textOf returns the text of a message whose content is a list of parts.
func textOf(m fold.Message) (text string) {
	parts, _ := m["content"].([]any)
	for _, part := range parts {
		if part, ok := part.(map[string]any); ok && part["type"] == "text" {
			piece, _ := part["text"].(string)
			text += piece
		}
	}
	return text
}

// withoutOf returns only the option with=, because a resume line accepts no other of the options.
func withoutOf(options []script.Word) []script.Word {
	return slices.DeleteFunc(slices.Clone(options), func(w script.Word) bool {
		key, _, _, _ := w.Cut("=")
		return key != "with"
	})
}

// fresh returns the messages that the front end has added to the thread. If the front end changed earlier messages,
// known is false, and only the last message is returned.
func (p *post) fresh(messages []fold.Message) (fresh []fold.Message, known bool) {
	have := lists.Where(p.thread.Messages, func(m fold.Message) bool { return m.Role() != "activity" })
	if len(messages) < len(have) || !reflect.DeepEqual(plain(messages[:len(have)]), plain(have)) {
		return messages[max(len(messages)-1, 0):], false
	}
	return messages[len(have):], true
}

// plain returns a value as encoding/json decodes it. It returns nil for an empty list or null.
func plain(v any) (out any) {
	raw, _ := json.Marshal(v) // cannot fail: the value was read from JSON
	_ = json.Unmarshal(raw, &out)
	if list, _ := out.([]any); out == nil || list != nil && len(list) == 0 {
		return nil
	}
	return out
}

func sameJSON(a, b []byte) bool {
	if b == nil {
		b = []byte("{}")
	}
	return reflect.DeepEqual(plain(json.RawMessage(a)), plain(json.RawMessage(b)))
}

// resume returns the words of a resume line for the post's answers to interrupts. It returns nil if there are no
// answers.
func (p *post) resume(c *converter, v any) []script.Word {
	entries, _ := v.([]any)
	if len(entries) == 0 {
		return nil
	}
	var words []script.Word
	var of []string
	for i, e := range entries {
		entry, _ := e.(map[string]any)
		id, _ := entry["interruptId"].(string)
		n := slices.Index(p.thread.interrupts, id)
		answer := script.Option("payload", quoted(entry["payload"]))
		switch {
		case entry["status"] == "cancelled":
			answer = script.Text("cancelled")
		case reflect.DeepEqual(entry["payload"], map[string]any{"approved": true}):
			answer = script.Text("approve")
		case reflect.DeepEqual(entry["payload"], map[string]any{"approved": false}):
			answer = script.Text("reject")
		}
		switch {
		case i == 0:
			words = []script.Word{answer}
			if n < 0 {
				return append(words, script.Option("id", script.Quote(id)))
			}
		case words[0].String() != answer.String() || n < 0:
			c.leave("an answer that differs from another in the same post: a resume line has one answer")
			continue
		}
		of = append(of, fmt.Sprint(n+1))
	}
	if len(of) < len(p.thread.interrupts) {
		words = append(words, script.Option("of", script.Text(strings.Join(of, ","))))
	}
	return words
}

// write adds the lines of the post to the scenario.
func (p *post) write(c *converter) {
	if p.thread == nil {
		raw := script.Quote(string(p.raw))
		if p.file != "" {
			raw = script.Text("@" + p.file)
		}
		c.line("post %s", raw).As = script.Text(p.name)
		return
	}
	if !p.thread.begun && len(c.threads) > 1 {
		c.line("thread %s", p.thread.name)
	}
	p.thread.begun = true
	for _, l := range p.lines {
		c.line("%s %s %s", l.Name, p.thread.word(c), l.Words)
	}
	l := c.line("%s %s %s", p.run.Name, p.thread.word(c), p.run.Words)
	l.As = script.Text(p.name)
}
