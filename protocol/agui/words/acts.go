package words

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/protocol/agui/fold"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

const openIt = "open it with thread NAME, or quote the text"

// http removes the HTTP options from a line. It returns a function that returns a post with these options.
func http(l *scenarios.Line) func(b *scenarios.Branch) (endpoint.Post, error) {
	headers, opts := l.Headers(), l.Options("method", "type", "accept")
	return func(b *scenarios.Branch) (endpoint.Post, error) {
		p := endpoint.Post{Method: opts["method"].Raw(), Type: opts["type"].Raw(), Accept: opts["accept"].Raw(),
			Header: map[string]string{}, Patience: b.StepLimit() / 2}
		return p, b.Dress(p.Header, headers)
	}
}

func compileThread(l *scenarios.Line) scenarios.Step {
	id := l.Options("id")["id"]
	name := l.One(0, "a name for the thread")
	l.AtMost(1)
	if !script.IsName(name) || name == "any" {
		return l.Usage(l.Rest[0].Column, "%q cannot name a thread: use letters, digits and _", name)
	}
	l.DeclareSession(name)
	return func(ctx context.Context, b *scenarios.Branch) error {
		if err := b.Begin(ctx); err != nil {
			return err
		}
		given, err := b.Expand(id)
		if err != nil {
			return l.Fault(err)
		}
		b.Speak(opened(b, name, given))
		b.Did(l)
		return nil
	}
}

// opened begins a thread with the given id. If id is "", the thread gets a new id.
func opened(b *scenarios.Branch, name, id string) *scenarios.Session {
	s := b.NewSession(name, b.Work())
	if s.ID = id; id == "" {
		s.ID = newID()
	}
	of(b).change(s.ID, func(*thread) {})
	b.Opened(s)
	return s
}

// inSession returns a step that calls act with a thread, which it begins if necessary.
func inSession(l *scenarios.Line, name string,
	act func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error) scenarios.Step {
	return func(ctx context.Context, b *scenarios.Branch) error {
		s, err := need(ctx, b, l, name)
		if err != nil {
			return err
		}
		return act(ctx, b, s)
	}
}

// need returns the thread in which a line acts. If the line names none and no thread is open, need begins the thread
// main.
func need(ctx context.Context, b *scenarios.Branch, l *scenarios.Line, name string) (*scenarios.Session, error) {
	if err := b.Begin(ctx); err != nil {
		return nil, err
	}
	if name != "" && (name != "main" || b.Named(name) != nil) {
		s := b.Named(name)
		if s == nil {
			return nil, l.Fault(b.NotOpen(name))
		}
		b.Speak(s)
		return s, nil
	}
	if s := b.Session(); s != nil && name == "" {
		return s, nil
	}
	return opened(b, "main", ""), nil
}

// order has what a run line adds to the input of its run.
type order struct {
	text    string // text of the user, or "" for no new message
	state   json.RawMessage
	members map[string]any
	without []string
	post    endpoint.Post
}

// runs posts an input, which starts a run in a thread.
func (c *client) runs(b *scenarios.Branch, s *scenarios.Session, o *order) (transcript.Entry, error) {
	var input map[string]any
	c.change(s.ID, func(t *thread) {
		if o.state != nil {
			t.State = o.state
		}
		if o.text != "" {
			t.Messages = append(t.Messages, fold.Message{"id": newID(), "role": "user", "content": o.text})
		}
		input = t.input(s.ID, newID())
	})
	maps.Copy(input, o.members)
	for _, name := range o.without {
		delete(input, name)
	}
	body, err := json.Marshal(input)
	if err != nil {
		return transcript.Entry{}, err
	}
	e, err := c.post(body, o.post)
	if err == nil {
		c.change(s.ID, func(t *thread) { t.run = e.Seq })
		b.Prompted(s, e)
		b.Acted(s, e)
	}
	return e, err
}

func compileRun(l *scenarios.Line) scenarios.Step {
	web := http(l)
	opts := l.Options("state", "tools", "with", "without")
	name, _ := threadName(l)
	l.AtMost(1, openIt)
	var text script.Word
	index := 0
	if len(l.Rest) > 0 {
		if !l.Rest[0].Quoted && !strings.HasPrefix(l.Rest[0].Raw(), "@") {
			return l.Mistake(l.Rest[0].Column, openIt, "no thread %s is open", l.Rest[0].Raw())
		}
		text = l.Source(l.Rest[0])
		index = l.DeclarePrompt(name, text)
	}
	state, tools, with := jsonOf(l, opts["state"]), jsonOf(l, opts["tools"]), jsonOf(l, opts["with"])
	return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) (err error) {
		o := &order{members: map[string]any{}}
		if o.text, err = b.Expand(text); err != nil {
			return l.Fault(err)
		}
		if o.state, err = state(b); err != nil {
			return l.Fault(err)
		}
		front, err := tools(b)
		if err != nil {
			return l.Fault(err)
		}
		if front != nil {
			o.members["tools"] = front
		}
		if err := merge(b, with, o.members); err != nil {
			return l.Fault(err)
		}
		if w := opts["without"]; w.Exists() {
			o.without = strings.Split(w.Raw(), ",")
		}
		if o.post, err = web(b); err != nil {
			return l.Fault(err)
		}
		if o.text != "" && b.Model() != nil {
			b.Model().Begin(fakellm.Prompt{Session: s.ID, Name: s.Name, Index: index, Text: o.text})
		}
		b.CountResidents()
		return posted(b, l, s, o)
	})
}

// posted starts a run for a script line. If the line has a name, the name stands for the entry of the post.
func posted(b *scenarios.Branch, l *scenarios.Line, s *scenarios.Session, o *order) error {
	if _, err := b.Alive(l); err != nil {
		return err
	}
	e, err := of(b).runs(b, s, o)
	if err != nil {
		return b.Unsent(l, err)
	}
	b.Name(l.Alias, e)
	return nil
}

// jsonOf returns a function that returns a word as JSON, with its variables expanded. The function returns nil if the
// word is missing.
func jsonOf(l *scenarios.Line, w script.Word) func(b *scenarios.Branch) (json.RawMessage, error) {
	if w.Exists() {
		w = l.Source(w)
	}
	if text, ok := w.Literal(); w.Exists() && ok && !json.Valid([]byte(text)) {
		l.Usage(w.Column, "%s is not valid JSON", text)
	}
	return func(b *scenarios.Branch) (json.RawMessage, error) {
		if !w.Exists() {
			return nil, nil
		}
		text, err := b.Expand(w)
		if err == nil && !json.Valid([]byte(text)) {
			err = fmt.Errorf("%s is not valid JSON", text)
		}
		return json.RawMessage(text), err
	}
}

// merge adds the members of the JSON object that with returns to a map.
func merge(b *scenarios.Branch, with func(*scenarios.Branch) (json.RawMessage, error), into map[string]any) error {
	raw, err := with(b)
	if raw == nil || err != nil {
		return err
	}
	var more map[string]json.RawMessage
	if err := json.Unmarshal(raw, &more); err != nil {
		return fmt.Errorf("with= must be a JSON object: %w", err)
	}
	for key, value := range more {
		into[key] = value
	}
	return nil
}

func compileToolResult(l *scenarios.Line) scenarios.Step {
	name := l.TakeSession(2, openIt)
	call := l.Need(0, "a tool call")
	text := l.Source(l.Need(1, "the result"))
	l.AtMost(2)
	return inSession(l, name, func(_ context.Context, b *scenarios.Branch, s *scenarios.Session) error {
		content, err := b.Expand(text)
		if err != nil {
			return l.Fault(err)
		}
		id, err := b.Expand(call)
		if err != nil {
			return l.Fault(err)
		}
		of(b).change(s.ID, func(t *thread) {
			if n, err := strconv.Atoi(id); err == nil {
				open := t.Unanswered()
				if id = ""; n >= 1 && n <= len(open) {
					id = open[n-1]
				}
			}
			if id != "" {
				t.Messages = append(t.Messages, fold.Message{"id": newID(), "role": "tool", "toolCallId": id, "content": content})
			}
		})
		if id == "" {
			return b.NoSituation(l, "a tool call without a result", "none")
		}
		b.Did(l)
		return nil
	})
}

func compileResume(l *scenarios.Line) scenarios.Step {
	opts := l.Options("payload", "of", "id", "with")
	payload, with := jsonOf(l, opts["payload"]), jsonOf(l, opts["with"])
	name, _ := threadName(l)
	choice := ""
	if !opts["payload"].Exists() {
		choice = l.Choice(0, "answer", "approve", "reject", "cancelled")
		l.AtMost(1)
	} else {
		l.AtMost(0)
	}
	var only []int
	if w := opts["of"]; w.Exists() {
		for n := range strings.SplitSeq(w.Raw(), ",") {
			only = append(only, l.Int(script.Text(n), 1, "of= must be a list of numbers from 1"))
		}
	}
	return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error {
		given, err := payload(b)
		if err != nil {
			return l.Fault(err)
		}
		other, err := b.Expand(opts["id"])
		if err != nil {
			return l.Fault(err)
		}
		entries := []any{}
		of(b).change(s.ID, func(t *thread) {
			for i, x := range t.interrupts {
				if other == "" && (only == nil || slices.Contains(only, i+1)) {
					entries = append(entries, answerTo(x.id, choice, given))
				}
			}
		})
		if other != "" {
			entries = append(entries, answerTo(other, choice, given))
		}
		if len(entries) == 0 {
			return b.NoSituation(l, "an interrupt that waits for an answer", "none")
		}
		o := &order{members: map[string]any{"resume": entries}, post: endpoint.Post{Patience: b.StepLimit() / 2}}
		if err := merge(b, with, o.members); err != nil {
			return l.Fault(err)
		}
		return posted(b, l, s, o)
	})
}

func answerTo(id, choice string, payload json.RawMessage) map[string]any {
	switch choice {
	case "cancelled":
		return map[string]any{"interruptId": id, "status": "cancelled"}
	case "":
		return map[string]any{"interruptId": id, "status": "resolved", "payload": payload}
	}
	return map[string]any{"interruptId": id, "status": "resolved",
		"payload": map[string]any{"approved": choice == "approve"}}
}

func compileHangUp(l *scenarios.Line) scenarios.Step {
	name := l.TakeSession(0, openIt)
	l.AtMost(0)
	return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error {
		run := 0
		of(b).change(s.ID, func(t *thread) { run = t.run })
		if run == 0 || !of(b).at.HangUp(run) {
			return b.NoSituation(l, "an open run", "none")
		}
		b.Did(l)
		return nil
	})
}

func compilePost(l *scenarios.Line) scenarios.Step {
	web := http(l)
	source := l.Source(l.Need(0, "the text to post"))
	l.AtMost(1, "quote the text")
	return func(ctx context.Context, b *scenarios.Branch) error {
		if err := b.Begin(ctx); err != nil {
			return err
		}
		if _, err := b.Alive(l); err != nil {
			return err
		}
		text, err := b.Expand(source)
		if err != nil {
			return l.Fault(err)
		}
		p, err := web(b)
		if err != nil {
			return l.Fault(err)
		}
		e, err := of(b).post([]byte(text), p)
		if err != nil {
			return b.Unsent(l, err)
		}
		b.Excuse(e.Seq)
		b.ExcuseAll()
		b.Acted(b.Session(), e)
		b.Name(l.Alias, e)
		return nil
	}
}
