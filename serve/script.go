package serve

import (
	"regexp"
	"sync"

	"github.com/acp-test/acp-test/transcript"
)

// Script describes how the agent reacts to its editor. For an event without a handler, the agent has the default
// behaviour of its Protocol.
type Script struct {
	// Capabilities maps dotted paths of capabilities to the values that the agent advertises.
	Capabilities map[string]string
	Handlers     []Handler
}

// Handler is a block of acts that runs when an event occurs.
type Handler struct {
	Line int
	// Event is a method that the editor calls, or "connect" or "eof".
	Event string
	// Text is a pattern for the text of a prompt; nil matches all prompts.
	Text *regexp.Regexp
	// Nth limits the handler to the n-th such event, counted from 1; 0 means every event.
	Nth int
	Block
}

// Block is a list of acts. Waits is true if one of the acts waits, so that the script may deliberately leave the
// request unanswered.
type Block struct {
	Acts  []Act
	Waits bool
}

// Act is one compiled line of a handler.
type Act struct {
	Line int
	Name string
	Do   func(s *Run) error
}

// Named is the kind of the transcript note that gives a name to a request from the agent.
const Named transcript.Kind = "named"

// Unread is the kind of the transcript note for an editor that closed the agent's output before the agent wrote its
// last frame.
const Unread transcript.Kind = "unread"

// Shut is the kind of the transcript note for an agent that closed its output but keeps running.
const Shut transcript.Kind = "shut"

type namedNote struct {
	Name string `json:"name"`
	Seq  int    `json:"seq"`
}

// scripted is an Agent that runs a script.
type scripted struct {
	*Conn
	script *Script

	mu       sync.Mutex
	count    map[int]int // number of events so far, by the handler's line
	sessions int
	last     string            // session opened last
	work     map[string]string // directory by session
	names    map[string]int    // Seqs of named requests, by name
	ignores  map[string]bool
}

func newScripted(c *Conn, s *Script) *scripted {
	return &scripted{Conn: c, script: s, count: map[int]int{}, work: map[string]string{}, names: map[string]int{},
		ignores: map[string]bool{}}
}

// Stays implements Agent.
func (p *scripted) Stays(signal bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ignores[map[bool]string{true: "term", false: "eof"}[signal]]
}

// Connected implements Agent.
func (p *scripted) Connected(*Conn) { p.event("connect", transcript.Entry{}) }

// Ended implements Agent.
func (p *scripted) Ended() { p.event("eof", transcript.Entry{}) }

// event runs the handler for an event. It returns false if there is none.
func (p *scripted) event(name string, e transcript.Entry) bool {
	h := p.find(name, e)
	if h == nil {
		return false
	}
	s := &Run{scripted: p, ctx: p.ctx, request: e, session: e.Session, sink: sink{c: p.Conn}, told: &told{}}
	if s.session == "" {
		p.mu.Lock()
		s.session = p.last
		p.mu.Unlock()
	}
	s.cancelled = p.Cancelled(s.session)
	go s.play(&h.Block)
	return true
}

func (p *scripted) find(event string, e transcript.Entry) *Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, _ := p.Protocol.Prompt(e)
	var found *Handler
	for i := range p.script.Handlers {
		h := &p.script.Handlers[i]
		if h.Event != event || h.Text != nil && !h.Text.MatchString(text) {
			continue
		}
		p.count[h.Line]++
		if found == nil && (h.Nth == 0 || h.Nth == p.count[h.Line]) {
			found = h
		}
	}
	return found
}

// Received implements Agent.
func (p *scripted) Received(e transcript.Entry) {
	if e.Kind != transcript.Request && e.Kind != transcript.Notification {
		return
	}
	p.mu.Lock()
	if session, dir := p.Protocol.Opens(e, p.sessions+1); session != "" {
		if e.Session == "" {
			p.sessions++
		}
		e.Session, p.last, p.work[session] = session, session, dir
	}
	p.mu.Unlock()
	if p.event(e.Method, e) || e.Kind == transcript.Notification {
		return
	}
	for _, line := range p.Protocol.Plain(e, p.script.Capabilities) {
		p.Send(line)
	}
}
