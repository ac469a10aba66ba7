package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// turn is the span from a prompt to its response or, in version 2, to the idle state that ends it.
type turn struct {
	request    *request
	session    *session
	concurrent bool // another turn of the session was open when this turn began
	amid       bool // before this turn began, the model was already replying to the other turn, and had not finished
	joined     int  // Seq of the session's first prompt that came before this turn's response, or 0
	started    int
	ended      int
	cancel     *act // the first session/cancel
	close      *act
	stop       string // stop reason; "" after an error
	// heard is a request of the agent that was open when the turn was cancelled, and on whose answer the agent waited.
	// The editor answered it later, at the Seq heardAt. An agent that has read this answer has also read the cancel.
	heard   *request
	heardAt int
	// disturbed says that the editor did something that may end a turn without a cancel, such as sending another
	// prompt, or loading or deleting the session.
	disturbed bool
	// mixed says that the editor requested a load during the turn, so the turn's own updates cannot be told from
	// replayed ones.
	mixed    bool
	like     bool // another open turn has a prompt or text block that begins alike, or belongs to the same session
	spoke    bool // the agent sent content in the turn
	acted    bool // the agent sent a request in the turn
	tools    []*tool
	messages [3]string // message ids that were current when the turn ended
	text     string    // text of the prompt, cut
	heads    []string  // beginnings of the prompt's text blocks
	reply    ended     // the model's last reply, if it has ended

	// The remaining fields are for version 2. answered is the Seq of the response to the prompt, message is the
	// message id in that response, and failed says that the response is an error. crossed says that this turn was
	// cancelled while an earlier cancel was still open. The next idle state may then belong to the earlier cancel.
	answered        int
	message         string
	failed, crossed bool
}

// status is the status of a tool call. A later status has a greater value.
type status uint8

const (
	unsaid status = iota // the update has no status, or null
	pending
	inProgress
	completed
	failed
	calledOff // cancelled; only in version 2
	unknownStatus
)

func (s status) final() bool { return s == completed || s == failed || s == calledOff }

func (s status) String() string {
	return [...]string{"unsaid", "pending", "in_progress", "completed", "failed", "cancelled", "unknown"}[s]
}

// tool is one tool call of a session.
type tool struct {
	id        string
	by        announced
	status    status
	again     bool   // the call continued after it had ended
	odd       bool   // an update gave the call a status that the protocol lacks, which SHAPE reports
	replayed  bool   // a replay gave the call its status
	blamed    bool   // another rule has reported that the call did not end
	input     uint64 // latest input, as inputOf returns it
	turn      *turn  // turn in which the call was first seen, or nil
	first     int
	seq       int      // Seq of the latest entry about the call
	terminals []string // ids of the terminals in the content of the call
	asked     *request // open permission request about the call
	allowed   int      // Seq of the answer that allowed the call
	denied    int      // Seq of the answer that forbade the call
	denial    answer   // how the answer forbade the call
}

// announced is the way in which a tool call first became known.
type announced uint8

const (
	byUpdate announced = iota
	byPermission
	byCall
)

// terminal is a terminal of the editor.
type terminal struct {
	id       string
	session  *session
	turn     *turn
	created  int
	released int
	exited   bool
	killed   bool
}

// turns returns the open turns, the oldest first.
func (s *session) turns() []*turn {
	if s == nil {
		return nil
	}
	return s.open
}

// atWork reports whether a turn is open.
func (s *session) atWork() bool { return len(s.open) > 0 || s.busy() }

// alone reports whether the end of the turn can depend only on the turn's own prompt and on a cancel.
func (t *turn) alone() bool { return !t.concurrent && !t.disturbed && t.close == nil }

// command reports whether the prompt begins with a slash.
func (t *turn) command() bool { return strings.HasPrefix(t.text, "/") }

// turn returns the oldest open turn, or nil.
func (s *session) turn() *turn {
	if open := s.turns(); len(open) > 0 {
		return open[0]
	}
	return nil
}

// tool returns the tool call with the given id, or nil.
func (s *session) tool(id wire.Value) *tool {
	t := s.announced(id)
	if t == nil && s != nil && len(s.past) > 0 {
		t = s.past[id.Str()]
	}
	return t
}

// announced is like tool, but ignores calls from before a load, because a replay may announce those calls again. It
// does not allocate memory.
func (s *session) announced(id wire.Value) *tool {
	if s == nil {
		return nil
	}
	if plain, ok := id.Plain(); ok {
		return s.tools[string(plain)]
	}
	return s.tools[id.Str()]
}

// note adds a tool call to the session. If the session has too many, the oldest one is forgotten.
func (s *session) note(t *tool) {
	if old := s.tools[t.id]; old == nil {
		if len(s.order) >= rememberedTools {
			oldest := s.order[0]
			s.order, s.evicted = s.order[1:], true
			if s.tools[oldest.id] == oldest {
				delete(s.tools, oldest.id)
			}
		}
		s.order = append(s.order, t)
	}
	s.tools[t.id] = t
	if t.turn != nil && len(t.turn.tools) < rememberedTools {
		t.turn.tools = append(t.turn.tools, t)
	}
}

func (c *conn) note(t *terminal) {
	if len(c.termOrder) >= rememberedTerms {
		oldest := c.termOrder[0]
		c.termOrder = c.termOrder[1:]
		if c.terminals[oldest.id] == oldest {
			delete(c.terminals, oldest.id)
		}
	}
	c.termOrder = append(c.termOrder, t)
	c.terminals[t.id] = t
}

// amid sets t.amid for each turn t that began while another turn was surely open. The proof is that the model still
// replies to a request that the other turn sent before t began.
func (s *session) amid(asked int) {
	if s == nil || len(s.open) < 2 {
		return
	}
	for _, first := range s.open {
		for _, t := range s.open {
			t.amid = t.amid || t.started == first.joined && first.started < asked && asked < t.started
		}
	}
}
