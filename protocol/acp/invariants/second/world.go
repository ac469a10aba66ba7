package second

import (
	"slices"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// most bounds what is remembered of each kind. What lies beyond is not judged.
const most = 1 << 14

// world is everything the rules share: one fold of the transcript so far.
type world struct {
	conns map[int]*conn
	order []*session
	// lived are the messages of sessions that this transcript has from their beginning, by
	// session and id, over all connections.
	lived map[string]map[string]message
}

func newWorld() *world { return &world{conns: map[int]*conn{}, lived: map[string]map[string]message{}} }

// conn is one process of the agent and the connection to it.
type conn struct {
	n        int
	asked    int               // Seq of the first initialize
	early    int               // Seq of a request of the client before that
	version  int64             // that was negotiated; 0 before
	elicits  bool              // the client advertised elicitation
	methods  map[string]string // to log in: their types, by id
	offers   map[string]bool   // what the agent advertised of sessions, by path
	open     map[int]*request
	ids      map[wire.ID]int  // open requests of the agent
	shared   map[wire.ID]bool // ids that two open requests of the agent had
	heard    int              // Seq of the latest request of the agent that was answered
	gone     int              // Seq of the end of the agent, or of its input
	sessions map[string]*session
}

// unanswered are the requests of the agent that are open, the oldest first.
func (c *conn) unanswered() (open []*request) {
	for _, r := range c.open {
		if !r.ofClient {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, func(a, b *request) int { return a.seq - b.seq })
	return open
}

// foreign reports whether another version than 2 was negotiated, or is by this.
func (c *conn) foreign(ev *event) bool {
	if ev.answers("initialize") {
		chosen, ok := ev.result.Get("protocolVersion").Int()
		return ok && chosen != 2
	}
	return c.version != 0 && c.version != 2
}

// request is one request of either side, until it is answered.
type request struct {
	seq      int
	at       time.Duration
	id       wire.ID
	ofClient bool
	method   string
	session  *session
	prompt   *prompt
	// Of initialize: the version asked for, -1 if it can be none, and what was advertised.
	version           int64
	terminal, elicits bool
	options           []string // of a permission: the ids on offer
	late              bool     // of a permission: its work was cancelled
	back              int      // Seq of what took it back
}

// session is one session on one connection.
type session struct {
	id     string
	conn   int
	first  int // Seq of the first that names it
	opened int // Seq of what opened it, 0 if nothing did
	asked  bool
	closed int // Seq of the answer to its close
	whole  bool

	state     string // "": not told yet
	stateSeq  int
	active    bool // it was busy since the last idle state
	cancel    int  // Seq of the cancel that is not settled
	cancelled int  // Seq of the latest idle state with cancelled
	prompts   []*prompt
	messages  map[string]*message
	lived     map[string]map[string]message // of all sessions
	tools     map[string]*item
	terminals map[string]*item
	reported  bool // background work was reported
	listed    map[string]bool
	resume    *replay
}

// name is the id of a session, "" of none.
func (s *session) name() string {
	if s == nil {
		return ""
	}
	return s.id
}

// prompt is one prompt of a session.
type prompt struct {
	seq, answered int
	id            string // of the message
	failed, ended bool
	cancelled     int  // Seq of a cancel that came before its answer
	crossed       bool // an earlier cancel was not settled then: the next idle state may be due to that
	beside        bool // it came while the session was at work, and may be refused for that
}

// message is a message of a session: live if it was shown outside of a replay.
type message struct {
	first      int
	live, user bool
}

// item is a tool call or a terminal.
type item struct {
	first, ended int
	turn         int  // how many prompts the session had
	announced    bool // it is known by more than its id
	offered      bool // an update said that it can be cancelled
	cancellable  bool // the latest that said anything of it did
}

// replay is a resume that is not answered.
type replay struct {
	seq      int
	history  bool
	busy     bool // work ran in it: what it shows may be live
	told     bool // a state came in it
	state    int  // Seq of the latest one that did not end the work that ran
	messages []string
}
