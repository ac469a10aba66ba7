package mutation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Side is one end of a connection.
type Side int

// The sides of a connection. The client is an editor or a front end.
const (
	Client Side = iota
	Agent
)

// The arrows that begin a rule: they select the sender of a message.
const (
	clientSays = "-->"
	agentSays  = "<--"
)

func (s Side) arrow() string { return [...]string{clientSays, agentSays}[s] }

// Output is one action that the caller of a player must carry out: send a message or bytes, wait, or end the agent.
type Output struct {
	To      Side
	Message Message // nil if the output is Raw, Wait or Exit
	Raw     []byte  // bytes to write; for an unchanged Message, its original line
	// Origin is the value that Play got with the message. It is nil for a message that the mutation created.
	Origin any
	// Wait, if not nil, asks the caller to call Wake after Delay.
	Wait  *Wait
	Delay time.Duration
	Exit  bool // the agent must end
}

// Wait is a timer that a mutation has started.
type Wait struct {
	name string
	m    moment
}

// Player applies one mutation to one connection. Its outputs depend only on its inputs and on the time between them.
// Its methods must not be called concurrently.
type Player struct {
	rules   []rule
	hits    []int               // number of messages that each rule has matched
	notes   map[string]*note    // by slot, see ref.slot
	calls   [2]map[string]*call // open requests, by sender and id
	prompts map[string]any      // id of the open prompt, by session
	seen    []string            // sessions in the order in which they first appeared
	made    int                 // number of names that NEW has created
	again   []held              // messages to play again after the current one
	out     []Output
}

// note is a variable of a mutation: a value, or messages that are held back.
type note struct {
	value any
	at    time.Time
	held  []held
}

// held is a message that is held back.
type held struct {
	from    Side
	message Message
	origin  any
	line    []byte // nil if the message was changed
}

// call is a request that has no response yet.
type call struct {
	id      any
	method  string
	session string
	params  map[string]any
}

// moment is the state while the rules are applied to one message or one other event.
type moment struct {
	*Player
	event   string // "-->", "<--", start, end or timer, as at the beginning of a rule
	timer   string
	from    Side
	kind    string // request, notification, response, event, stray, array or malformed
	method  string // for a response: the method of its request
	session string
	message Message
	line    []byte
	params  map[string]any // params, result or error; for an event, the event
	update  map[string]any
	tag     string
	call    *call // for a response: the request that it answers
	begun   *call // for a request: its entry in calls
	origin  any

	body    map[string]any // object at which the rule's paths begin
	it      any            // value of IT: in each, in set, or the items of an array
	changed bool
	gone    bool // the message must not be passed on any more
}

// Player returns a player for one connection.
func (m *Mutation) Player() *Player {
	return &Player{rules: m.rules, hits: make([]int, len(m.rules)), notes: map[string]*note{}, prompts: map[string]any{},
		calls: [2]map[string]*call{{}, {}}}
}

// Play applies the rules to a line, which may be a message or not, and returns the outputs. If an output passes on
// this message, its Origin is the given origin.
func (p *Player) Play(from Side, line []byte, origin any) []Output {
	return p.play(from, Decode(line), line, origin)
}

// PlayMessage is like Play, but takes a decoded message. It may change the message.
func (p *Player) PlayMessage(from Side, m Message, origin any) []Output {
	return p.play(from, m, nil, origin)
}

// Begin applies the rules for the start of the connection and returns the outputs.
func (p *Player) Begin() []Output { return p.tell(&moment{Player: p, event: "start"}) }

// End applies the rules for the end of the connection and returns the outputs.
func (p *Player) End() []Output { return p.tell(&moment{Player: p, event: "end"}) }

// Wake applies the rules for a timer that has expired and returns the outputs.
func (p *Player) Wake(w *Wait) []Output {
	m := w.m
	m.event, m.timer, m.gone = "timer", w.name, true
	return p.tell(&m)
}

// Hits returns the number of messages that the site has matched; see Mutation.Nth.
func (p *Player) Hits() int { return p.hits[site(p.rules)] }

// Acted returns the number of messages to which the site's steps were applied.
func (p *Player) Acted() int {
	n := p.Hits()
	switch nth := p.rules[site(p.rules)].nth; {
	case nth == 0:
		return n
	case n < nth:
		return 0
	}
	return 1
}

func (p *Player) tell(m *moment) []Output {
	p.run(m)
	return p.flush()
}

func (p *Player) play(from Side, message Message, line []byte, origin any) []Output {
	p.take(held{from, message, origin, line})
	return p.flush()
}

// flush plays the messages that a replay step has queued. It returns all outputs since the last flush.
func (p *Player) flush() []Output {
	for len(p.again) > 0 {
		list := p.again
		p.again = nil
		for _, h := range list {
			p.take(h)
		}
	}
	out := p.out
	p.out = nil
	return out
}

// take applies the rules to one message. It passes the message on, unless a rule has dropped, held, answered or
// passed it.
func (p *Player) take(h held) {
	m := p.look(h)
	p.run(m)
	if !m.gone {
		m.pass()
	}
	if m.kind == "response" {
		maps.DeleteFunc(p.calls[other(m.from)], func(_ string, c *call) bool { return c == m.call })
		if m.method == "session/prompt" && idKey(p.prompts[m.session]) == idKey(m.call.id) {
			delete(p.prompts, m.session)
		}
	}
}

func other(s Side) Side { return 1 - s }

// run applies each rule that matches the current message.
func (p *Player) run(m *moment) {
	fitted := false
	gone := m.gone
	for i := range p.rules {
		r := &p.rules[i]
		if m.gone && !gone {
			return
		}
		if r.otherwise && fitted {
			continue
		}
		if fitted = r.fits(m); !fitted {
			continue
		}
		p.hits[i]++
		if r.nth != 0 && p.hits[i] != r.nth {
			fitted = false
			continue
		}
		for _, do := range r.do {
			do(m)
		}
	}
}

// look classifies a message. It records a request as open.
func (p *Player) look(h held) *moment {
	m := &moment{Player: p, event: h.from.arrow(), from: h.from, message: h.message, line: h.line, origin: h.origin}
	if h.message == nil {
		m.kind = "malformed"
		if items, ok := decodeValue(h.line).([]any); ok {
			m.kind, m.it = "array", items
		}
		return m
	}
	id, hasID := h.message["id"]
	method, calls := h.message["method"].(string)
	m.method, m.params = method, h.message.Object("params")
	m.session, _ = m.params["sessionId"].(string)
	if m.update, m.tag = h.message.Update(); m.update == nil {
		if tag, ok := h.message["type"].(string); ok && !calls && !hasID {
			m.update, m.tag, m.params = h.message, tag, h.message
		}
	}
	switch {
	case calls && hasID:
		m.kind = "request"
		m.begun = &call{id, method, m.session, m.params}
		p.calls[h.from][idKey(id)] = m.begun
	case calls:
		m.kind = "notification"
	case m.update != nil:
		m.kind = "event"
	default:
		p.lookAtAnswer(m, id)
	}
	if m.session != "" && !slices.Contains(p.seen, m.session) {
		p.seen = append(p.seen, m.session)
	}
	return m
}

func (p *Player) lookAtAnswer(m *moment, id any) {
	if m.params = m.message.Object("result"); m.params == nil {
		m.params = m.message.Object("error")
	}
	m.kind = "stray"
	if m.call = p.calls[other(m.from)][idKey(id)]; m.call != nil {
		m.kind, m.method, m.session = "response", m.call.method, m.call.session
		if m.session == "" {
			m.session, _ = m.params["sessionId"].(string)
		}
	}
}

// idKey returns an id of any type as a string, to be used as a key of a map.
func idKey(id any) string { return string(encode(id)) }

// pass passes the message on.
func (m *moment) pass() {
	if m.gone {
		return
	}
	m.gone = true
	m.let(m.asHeld())
	if m.kind == "request" && m.changed { // the response will have the new id
		m.calls[m.from][idKey(m.message["id"])] = m.begun
	}
}

// asHeld returns the current message in a form that can be passed on now or later.
func (m *moment) asHeld() held {
	h := held{m.from, m.message, m.origin, m.line}
	if m.changed && m.message != nil {
		h.line = nil
	}
	return h
}

// let passes on a message that was held back.
func (m *moment) let(h held) {
	m.emit(other(h.from), h.message, h.origin)
	m.out[len(m.out)-1].Raw = h.line
}

// emit adds the output of a message for one side.
func (m *moment) emit(to Side, message Message, origin any) {
	if id, asks := message["id"]; asks && to == Agent && message["method"] == "session/prompt" {
		session, _ := message.Object("params")["sessionId"].(string)
		if _, busy := m.prompts[session]; !busy {
			m.prompts[session] = id
		}
	}
	m.out = append(m.out, Output{To: to, Message: message, Origin: origin})
}

// note returns the note to which a reference refers, and creates it if it does not exist. It updates the note's time.
func (m *moment) note(at *ref) *note {
	slot := at.slot(m)
	n := m.notes[slot]
	if n == nil {
		n = &note{}
		m.notes[slot] = n
	}
	n.at = time.Now()
	return n
}

// special returns the values of a word with special values, such as SESSION or OPEN.
func (m *moment) special(word string) (all []any) {
	var v any
	switch word {
	case ".", "MESSAGE":
		v = map[string]any(m.message)
	case "SESSION":
		if v = m.session; m.session == "" {
			return nil
		}
	case "IT":
		v = m.it
	case "UPDATE":
		v = m.update
	case "SIZE":
		v = json.Number(strconv.Itoa(len(m.line)))
	case "NEW":
		m.made++
		v = fmt.Sprint("new", m.made)
	case "REQUEST", "REQUESTID":
		if m.call == nil {
			return nil
		}
		if v = m.call.params; word == "REQUESTID" {
			v = m.call.id
		}
	case "PROMPT":
		v = m.prompts[m.session]
	case "PROMPTS":
		v = json.Number(strconv.Itoa(len(m.prompts)))
	case "OPEN":
		for _, calls := range m.calls {
			for _, c := range calls {
				if c.session == m.session {
					all = append(all, c.method)
				}
			}
		}
		return all
	}
	if v == nil {
		return nil
	}
	return []any{v}
}

// number converts a value to a number. It returns 0 if the value is not a number.
func number(v any) float64 {
	n, _ := strconv.ParseFloat(plain(v), 64)
	return n
}
