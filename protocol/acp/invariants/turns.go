package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// turn is the span from a prompt to its response or, in version 2, to the idle state that ends it.
type turn struct {
	request    *request
	session    *session
	concurrent bool // another turn of the session was open when it began
	amid       bool // the model spoke to that other turn after this one was asked for
	joined     int  // Seq of the first prompt of the session that came before its response; 0 is none
	started    int
	ended      int
	cancel     *act // the first session/cancel
	close      *act
	stop       string // its stop reason, "" after an error
	// heard is a request that was open, with the agent waiting for its answer, when the turn was cancelled. Its
	// answer came later: an agent that has read the answer has read the cancel. heardAt is the Seq of the answer.
	heard   *request
	heardAt int
	// disturbed: the editor did something that may end a turn without a cancel, such as another prompt, or loading or
	// deleting the session.
	disturbed bool
	// mixed: the editor requested a load during the turn, so nobody can tell the turn's own updates from replayed
	// ones.
	mixed    bool
	like     bool // another turn was open whose prompt begins alike, or one of the same session
	spoke    bool // had content of the agent
	acted    bool // the agent asked for something
	tools    []*tool
	messages [3]string // current message ids when it ended
	text     string    // what the user wrote, cut
	reply    ended     // the model's last one, once it is done

	// These are for version 2. answered is the Seq of the prompt's answer, failed says that it is an error, and
	// message is the message id in it. crossed: an earlier cancel was not settled when this turn was cancelled, so
	// the next idle state may belong to the earlier one.
	answered        int
	message         string
	failed, crossed bool
}

// status is the status of a tool call; later ones are greater.
type status uint8

const (
	unsaid status = iota // null or absent in an update
	pending
	inProgress
	completed
	failed
	calledOff // of version 2
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
	again     bool  // it had ended, and went on
	blamed    bool  // another rule has said that it did not end
	turn      *turn // in which it was first seen, nil outside any
	first     int
	seq       int      // of its latest entry
	terminals []string // ids embedded in its content
	asked     *request // the open permission request about it
	allowed   int      // Seq of the answer that allowed it
	denied    int      // Seq of the answer that forbade it
	denial    answer   // how
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

// alone reports whether only the prompt and a cancel decide how a turn goes.
func (t *turn) alone() bool { return !t.concurrent && !t.disturbed && t.close == nil }

// command reports whether the prompt is a slash command.
func (t *turn) command() bool { return strings.HasPrefix(t.text, "/") }

// turn returns the oldest open turn, or nil.
func (s *session) turn() *turn {
	if open := s.turns(); len(open) > 0 {
		return open[0]
	}
	return nil
}

// tool returns the tool call with an id, nil if it is unknown.
func (s *session) tool(id wire.Value) *tool {
	t := s.announced(id)
	if t == nil && s != nil && len(s.past) > 0 {
		t = s.past[id.Str()]
	}
	return t
}

// announced is tool without the calls from before a load, which a replay may announce again. It does not allocate.
func (s *session) announced(id wire.Value) *tool {
	if s == nil {
		return nil
	}
	if plain, ok := id.Plain(); ok {
		return s.tools[string(plain)]
	}
	return s.tools[id.Str()]
}

// note adds a tool call to the session. It may forget the oldest one.
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

// amid marks turns that joined another turn while that turn was surely open: the model still replies to a request
// that this other turn sent before.
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
