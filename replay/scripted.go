package replay

import (
	"fmt"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Script is an agent-side scenario to be played.
type Script struct {
	*scenarios.AgentScript
}

// named is the kind of the note that gives a request of the agent its name.
const named transcript.Kind = "named"

type namedNote struct {
	Name string `json:"name"`
	Seq  int    `json:"seq"`
}

// scripted plays a script.
type scripted struct {
	c      *conn
	script *Script

	mu       sync.Mutex
	count    map[int]int // events per handler, by its line
	sessions int
	last     string            // the newest session
	work     map[string]string // cwd by session
	names    map[string]int    // Seq of named requests
	ignores  map[string]bool
}

func newScripted(c *conn) *scripted {
	return &scripted{c: c, script: c.Script, count: map[int]int{}, work: map[string]string{}, names: map[string]int{}, ignores: map[string]bool{}}
}

func (p *scripted) stays(signal bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if signal {
		return p.ignores["term"]
	}
	return p.ignores["eof"]
}

func (p *scripted) connected() { p.event("connect", transcript.Entry{}) }
func (p *scripted) ended()     { p.event("eof", transcript.Entry{}) }

// event runs the handler for an event, if there is one.
func (p *scripted) event(name string, e transcript.Entry) bool {
	h := p.find(name, e)
	if h == nil {
		return false
	}
	s := &scene{scripted: p, request: e, session: e.Session, sink: sink{c: p.c}, ctx: p.c.ctx}
	if s.session == "" {
		p.mu.Lock()
		s.session = p.last
		p.mu.Unlock()
	}
	s.cancelled = p.c.cancelOf(s.session)
	go s.play(h)
	return true
}

func (p *scripted) find(event string, e transcript.Entry) *scenarios.AgentHandler {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *scenarios.AgentHandler
	for i := range p.script.Handlers {
		h := &p.script.Handlers[i]
		if h.Event != event || h.Text != nil && !h.Text.MatchString(promptText(e)) {
			continue
		}
		p.count[h.Line]++
		if found == nil && (h.Nth == 0 || h.Nth == p.count[h.Line]) {
			found = h
		}
	}
	return found
}

func (p *scripted) received(e transcript.Entry) {
	if e.Kind != transcript.Request && e.Kind != transcript.Notification {
		return
	}
	v := e.JSON().Get("params")
	p.mu.Lock()
	switch e.Method {
	case "session/new":
		p.sessions++
		p.last = fmt.Sprintf("session-%d", p.sessions)
		p.work[p.last] = v.Get("cwd").Str()
	case "session/load", "session/resume":
		p.last = e.Session
		p.work[p.last] = v.Get("cwd").Str()
	}
	if e.Method == "session/new" {
		e.Session = p.last
	}
	p.mu.Unlock()
	if p.event(e.Method, e) || e.Kind == transcript.Notification {
		return
	}
	if e.Method == "session/prompt" {
		sink{c: p.c}.send(updateOf(e.Session, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}`))
	}
	sink{c: p.c}.send(p.plain(e))
}

// plain is the answer of a plain agent.
func (p *scripted) plain(e transcript.Entry) []byte {
	switch e.Method {
	case "initialize":
		return resultOf(e.ID, p.initialized())
	case "session/new":
		return resultOf(e.ID, `{"sessionId":`+quoted(e.Session)+`}`)
	case "session/prompt":
		return resultOf(e.ID, `{"stopReason":"end_turn"}`)
	case "session/list":
		return resultOf(e.ID, `{"sessions":[]}`)
	case "authenticate", "logout", "session/load", "session/resume", "session/close", "session/delete", "session/set_mode":
		return resultOf(e.ID, `{}`)
	}
	return errorOf(e.ID, "-32601", "method not found: "+e.Method)
}

func (p *scripted) initialized() string {
	root := map[string]any{}
	for path, value := range p.script.Capabilities {
		at := root
		keys := strings.Split(path, ".")
		for _, k := range keys[:len(keys)-1] {
			next, ok := at[k].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[k] = next
			}
			at = next
		}
		at[keys[len(keys)-1]] = raw(value)
	}
	text, err := marshal(map[string]any{"protocolVersion": 1, "agentCapabilities": root, "agentInfo": map[string]any{"name": "acp-test-scripted", "version": "1"}, "authMethods": []any{}})
	if err != nil {
		return `{"protocolVersion":1}`
	}
	return string(text)
}

// raw is a value of a script as JSON: itself if it is JSON, else a string.
func raw(value string) any {
	if v, err := wire.Parse([]byte(value)); err == nil {
		return rawJSON(v.Raw())
	}
	return value
}
