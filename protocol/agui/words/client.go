package words

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/protocol/agui/fold"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// client is the front end that runs the script. It posts runs, and applies the events of the answers to its threads.
type client struct {
	agent *transport.Agent
	at    *endpoint.Endpoint

	mu      sync.Mutex
	threads map[string]*thread // by id
}

// thread is a conversation as the front end sees it.
type thread struct {
	fold.Thread
	run        int // Seq of the latest posted run
	interrupts []interrupt
}

// interrupt is an interrupt that the front end has not answered.
type interrupt struct{ id string }

func newClient() scenarios.Client { return &client{threads: map[string]*thread{}} }

func of(b *scenarios.Branch) *client { return b.Client().(*client) }

// Connect implements scenarios.Client.
func (c *client) Connect(a *transport.Agent, _ []string, _ string, _ bool) {
	first := c.agent == nil
	c.agent = a
	c.at, _ = a.Transport().(*endpoint.Endpoint)
	a.Receive(func(transcript.Entry) {})
	if first {
		// The transcript itself calls receive. So when a step has awaited an entry, that entry has already been
		// applied.
		a.Transcript().Observe(c.receive)
	}
}

// receive applies an entry of the agent to its thread.
func (c *client) receive(e transcript.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[e.Session]
	if t == nil || aguiframe.Event(e) == "" {
		return
	}
	v := e.JSON()
	_ = t.Apply(v) // if a patch fails, the rules report it
	if e.Method != "RUN_FINISHED" {
		return
	}
	t.interrupts = nil
	for i := range v.Path("outcome.interrupts").Items() {
		t.interrupts = append(t.interrupts, interrupt{i.Get("id").Str()})
	}
}

// change calls f with the thread that has the given id, while it holds the lock. It creates the thread if necessary.
func (c *client) change(id string, f func(t *thread)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.threads[id] == nil {
		c.threads[id] = &thread{}
	}
	f(c.threads[id])
}

// newID returns a new random UUID. Most front ends use UUIDs as ids.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Greet implements scenarios.Client. It waits until the agent listens.
func (c *client) Greet(ctx context.Context, b *scenarios.Branch, l *scenarios.Line) error {
	if l == nil {
		l = scenarios.Implied("the first run")
	}
	wait, cancel := b.Patience(ctx, start)
	defer cancel()
	err := c.at.Ready(wait, b.Transcript(), c.agent.Conn(), c.agent.HasProcess())
	switch {
	case err == nil:
		return b.Greeted()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	f := b.Failure(l, transcript.Outcome{Verdict: transcript.Unmeetable, Reason: err.Error()})
	f.Expected, f.Observed = []string{"an agent that can be reached"}, "none"
	f.Advice = b.StartAdvice(f)
	b.NotStarted(f)
	return &scenarios.Miss{Failure: f, Effect: true}
}

// start is the name of the wait until an agent has started.
const start = "start"

// Send implements scenarios.Client. It posts the bytes unchanged.
func (c *client) Send(raw []byte) (transcript.Entry, error) {
	return c.post(raw, endpoint.Post{})
}

func (c *client) post(body []byte, p endpoint.Post) (transcript.Entry, error) {
	e := c.agent.Append(body)
	p.Ref, p.Body = e.Seq, body
	return e, c.at.Do(p)
}

// Disconnect implements scenarios.Client.
func (*client) Disconnect() {}

// Settle implements scenarios.Client.
func (*client) Settle(context.Context) {}

// Advertises implements scenarios.Client. It returns false, because agents of AG-UI advertise no capabilities.
func (*client) Advertises(string) (has, known bool) { return false, false }

// AgentInfo implements scenarios.Client. It returns "", because no message of AG-UI names the agent.
func (*client) AgentInfo() (name, version string) { return "", "" }

// Ports implements scenarios.Client.
func (*client) Ports() ([]isolate.Port, error) { return nil, nil }

// Masks implements scenarios.Client.
func (*client) Masks() map[string]string { return nil }

// Close implements scenarios.Client.
func (*client) Close() error { return nil }

// input returns a RunAgentInput with the same members as the official client sends.
func (t *thread) input(threadID, runID string) map[string]any {
	kept := lists.Where(t.Messages, func(m fold.Message) bool { return m.Role() != "activity" })
	messages := append([]fold.Message{}, kept...)
	state := t.State
	if state == nil {
		state = json.RawMessage("{}")
	}
	return map[string]any{"threadId": threadID, "runId": runID, "messages": messages, "state": state,
		"tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{}}
}
