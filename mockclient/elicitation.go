package mockclient

import (
	"fmt"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/form"
	"github.com/acp-test/acp-test/wire"
)

// Elicitation holds the editor's answers to elicitation/create. It is used only if the editor advertises the
// capability elicitation.form or elicitation.url. The first matching rule decides. If no rule matches, the answer is
// decline, with a Note. An Elicitation counts matches, so it must not be copied, and each connection needs its own.
type Elicitation struct {
	Rules []ElicitRule

	mu      sync.Mutex
	matched counts
}

// ElicitRule is one rule of an Elicitation. An empty condition matches
// everything.
type ElicitRule struct {
	Mode    string // "form" or "url"; "" matches both
	Message string // a glob, or a regular expression between slashes; "" matches all
	Nth     int    // n-th request that meets the other conditions, from 1; 0: all
	Answer  ElicitAnswer
}

// ElicitAnswer is the answer to an elicitation. At most one of Hold, Error, Result, Cancel, Accept and Decline should
// be set; otherwise the first of them in this order counts. If none is set, the answer is decline.
type ElicitAnswer struct {
	Hold   bool // leaves the request open for Editor.Answer
	Error  *RPCError
	Result any // any JSON, even invalid for ACP
	Cancel bool
	// Accept answers with the action accept. For a form, the answer has Content. If Content is nil, it has the form's
	// defaults and, for required fields without a default, the smallest valid values. For a url, the answer has no
	// content; the editor does not open the url.
	Accept  bool
	Decline bool

	Content map[string]any
	Delay   time.Duration
}

func (p *Elicitation) decide(mode, message string) (ElicitAnswer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.matched.first(len(p.Rules), func(i int) (bool, int, int) {
		r := p.Rules[i]
		return (r.Mode == "" || r.Mode == mode) && (r.Message == "" || titleMatches(r.Message, message)), r.Nth, 0
	})
	if found < 0 {
		return ElicitAnswer{Decline: true}, false
	}
	return p.Rules[found].Answer, true
}

type elicited struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitempty"`
}

// elicitation answers elicitation/create (ACP v1, Elicitation). It answers a mode that the editor did not advertise
// with error -32602.
func (e *Editor) elicitation(r *Request) {
	mode := r.Params.Get("mode")
	if (!mode.Is("form") && !mode.Is("url")) || !e.caps.On("elicitation."+mode.Str()) {
		r.Fail(codeInvalidParams, "the client did not advertise elicitation mode %q", wire.Clip(mode.Text(), 50))
		return
	}
	message := r.Params.Get("message")
	if message.Kind() != wire.String {
		r.Fail(codeInvalidParams, "message is a required string")
		return
	}
	schema := r.Params.Get("requestedSchema")
	if mode.Is("form") && schema.Kind() != wire.Object {
		r.Fail(codeInvalidParams, "requestedSchema is a required object")
		return
	}
	e.mu.Lock()
	policy := e.elicit
	e.mu.Unlock()
	answer, ruled := policy.decide(mode.Str(), message.Str())
	if !ruled {
		e.note(r.Entry.Session, Note{
			Code: "elicitation-default", Request: r.Entry.Seq, Text: "no rule for this elicitation; it was declined",
		})
	}
	act := e.elicitAct(r, mode.Str(), schema, answer)
	if act == nil {
		return
	}
	if answer.Delay <= 0 {
		act()
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over && !r.answered {
		r.timer = time.AfterFunc(answer.Delay, act)
	}
}

// elicitAct returns a function that sends the answer, or nil if the request must stay open.
func (e *Editor) elicitAct(r *Request, mode string, schema wire.Value, a ElicitAnswer) func() {
	switch {
	case a.Hold:
		return nil
	case a.Error != nil:
		return func() { r.respond(func() (any, *RPCError) { return nil, a.Error }) }
	case a.Result != nil:
		return func() { r.Reply(a.Result) }
	case a.Cancel:
		return func() { r.Reply(elicited{Action: "cancel"}) }
	case !a.Accept:
		return func() { r.Reply(elicited{Action: "decline"}) }
	case mode == "url":
		return func() { r.Reply(elicited{Action: "accept"}) }
	}
	content, problem := a.Content, ""
	if content == nil {
		content = form.Fill(schema)
		problem = "the editor could not make up values that fit the form"
	} else {
		problem = "the values that the test gives do not fit the form"
	}
	if problems := form.Check(schema, content); len(problems) > 0 {
		e.note(r.Entry.Session, Note{
			Code: "elicitation-content", Request: r.Entry.Seq, Inconclusive: true,
			Text: fmt.Sprintf("%s: %s", problem, problems[0]),
		})
	}
	return func() { r.Reply(elicited{"accept", content}) }
}
