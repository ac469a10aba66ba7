package serve

import (
	"regexp"
	"sync"

	"github.com/acp-test/acp-test/transcript"
)

// Script says how the agent reacts to its editor. For events without a handler, the agent does what its Protocol says.
type Script struct {
	// Capabilities are values that the agent advertises, by their dotted path.
	Capabilities map[string]string
	Handlers     []Handler
}

// Handler is the block that runs at one event.
type Handler struct {
	Line int
	// Event is a method of the editor, or "connect" or "eof".
	Event string
	// Text must match the text of a prompt; nil matches all.
	Text *regexp.Regexp
	// Nth limits the handler to the n-th such event, from 1; 0 is every one.
	Nth int
	Block
}

// Block is a list of acts. Waits says that one of them waits, so that the request may stay unanswered on purpose.
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

// Named is the kind of the note that gives a request of the agent its name.
const Named transcript.Kind = "named"

// Unread is the kind of the note that the editor had closed the agent's output before the last frame was written.
const Unread transcript.Kind = "unread"

// Shut is the kind of the note that the agent closed its output but keeps running.
const Shut transcript.Kind = "shut"

type namedNote struct {
	Name string `json:"name"`
	Seq  int    `json:"seq"`
}

// scripted plays a script.
type scripted struct {
	*Conn
	script *Script

	mu       sync.Mutex
	count    map[int]int // events per handler, by its line
	sessions int
	last     string            // the newest session
	work     map[string]string // directory by session
	names    map[string]int    // Seq of named requests
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

// event runs the handler for an event, and reports whether there is one.
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
