package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// models has the open replies of the fake model server. A recording has no entries of that server, so no reply there
// counts as held.
type models struct {
	streams map[int]*stream // running model requests, by number
	latest  map[string]int  // number of the last conversation request of each session
	asked   map[string]int  // Seq of the last conversation request of each session
	heard   map[string]int  // Seq of each session's last request in any lane; key "" for unknown sessions
	failed  map[string]int  // Seq of each session's last failure
	hangs   map[string]int  // Seq of each session's last reply with an MCP call that the canary never answers
}

type stream struct {
	n       int
	session string
	asked   int // Seq of the model request
	gate    string
	held    int  // Seq at which the reply reached the gate that holds it, or 0
	left    int  // Seq at which the agent hung up while the gate held the reply, or 0
	text    bool // the reply has text
}

func (m *models) fold(ev *event) {
	n := ev.number()
	switch ev.Kind {
	case transcript.ModelRequest:
		m.heard[ev.Session] = ev.Seq
		if ev.converses() {
			if before := m.streams[m.latest[ev.Session]]; before != nil && before.left > 0 {
				delete(m.streams, before.n)
			}
			m.streams[n] = &stream{n: n, session: ev.Session, asked: ev.Seq}
			m.latest[ev.Session], m.asked[ev.Session] = n, ev.Seq
		}
	case transcript.ModelAnswer:
		if callsHang(ev.body.Get("steps")) {
			m.hangs[ev.Session] = ev.Seq
		}
	case transcript.Gate:
		if s := m.streams[n]; s != nil {
			s.gate, s.held = ev.body.Get("gate").Str(), ev.Seq
		}
	case transcript.GateReleased:
		gate := ev.body.Get("gate").Str()
		for _, s := range m.streams {
			if s.gate == gate && (n == 0 || n == s.n) && s.left == 0 {
				s.held = 0
			}
		}
	// A fault does not end a reply. If the fault is a slow, malformed or hanging reply, the stream stays open. After
	// any other fault, ModelDone or ModelAborted follows.
	case transcript.ModelFault:
		m.failed[ev.Session] = ev.Seq
	case transcript.ModelDone:
		delete(m.streams, n)
	case transcript.ModelAborted:
		if s := m.streams[n]; s != nil && s.held > 0 {
			s.left = ev.Seq
			return
		}
		delete(m.streams, n)
	}
}

// callsHang reports whether a step of a model reply is an MCP call that the canary never answers.
func callsHang(steps wire.Value) bool {
	for s := range steps.Items() {
		if text := s.Str(); strings.HasPrefix(text, `tool: "mcp"`) && strings.Contains(text, `"text": "`+canary.Hang+`"`) {
			return true
		}
	}
	return false
}

// told reports whether the model got a request of the session after the entry with Seq after. Requests of unknown
// sessions count too, because they may be for this session.
func (m *models) told(session string, after int) bool {
	return m.heard[session] > after || m.heard[""] > after
}

// heldFor returns the reply of the session's turn that a gate held at the entry at, or nil. After that entry, only the
// agent can have ended the reply, by hanging up. heldFor looks only at the latest reply of the conversation, because
// an agent may repeat a request and abandon the first. It ignores replies after another prompt joined the turn.
func (m *models) heldFor(s *session, t *turn, at int) *stream {
	held := m.streams[m.latest[s.id]]
	if s.id == "" || held == nil || held.asked < t.started || t.joined > 0 && held.asked > t.joined ||
		held.held == 0 || held.held >= at || held.left > 0 && held.left < at {
		return nil
	}
	return held
}

// failedIn returns the Seq at which the model last failed in a turn. It returns 0 if the model did not fail, or if the
// agent asked the model again after the failure. A request that came after another prompt joined the turn does not
// count as asking again.
func (m *models) failedIn(t *turn) int {
	failed, asked := m.failed[t.session.id], m.asked[t.session.id]
	if failed < t.started || asked > failed && (t.joined == 0 || asked < t.joined) {
		return 0
	}
	return failed
}

// number returns the number of the model request that an entry is about.
func (ev *event) number() int {
	n, _ := ev.body.Get("n").Int()
	return int(n)
}

// converses reports whether a model request continues a session's conversation: it is in the main lane, or has no lane.
// A request in a lane of a script or profile counts if it belongs to a prompt, offers tools, and has that prompt in the
// user's last message.
func (ev *event) converses() bool {
	lane := ev.body.Get("lane").Str()
	if lane == "" || lane == fakellm.LaneMain {
		return true
	}
	prompt, _ := ev.body.Get("prompt").Int()
	tools, _ := ev.body.Get("tools").Int()
	if prompt == 0 || tools == 0 || lane == fakellm.LaneAfter || ev.aside() {
		return false
	}
	a, ok := ev.askedOfModel()
	last := ""
	for _, p := range a.Conversation() {
		if p.Who == "user" {
			last = p.Text
		}
	}
	return ok && strings.Contains(bare(last), bare(ev.body.Get("user").Str()))
}

// aside reports whether a model request is a side job, such as a request for a title: it expects JSON of a schema, or
// it is outside the main lane and offers no tools.
func (ev *event) aside() bool {
	lane := ev.body.Get("lane")
	tools, counted := ev.body.Get("tools").Int()
	return lane.Is(fakellm.LaneSchema) || lane.Is(fakellm.LaneNoTools) ||
		lane.Exists() && !lane.Is(fakellm.LaneMain) && counted && tools == 0
}

// holds reports whether some gate delays a reply for which the agent still waits.
func (m *models) holds() bool {
	for _, s := range m.streams {
		if s.held > 0 && s.left == 0 {
			return true
		}
	}
	return false
}
