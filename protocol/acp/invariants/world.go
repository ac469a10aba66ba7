package invariants

import (
	"maps"
	"slices"
	"time"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// Bounds on what the world remembers. Whatever exceeds them is not judged.
const (
	rememberedSessions = 1 << 14
	rememberedRequests = 1 << 16
	rememberedTools    = 1 << 12
	rememberedTerms    = 1 << 12
)

// world is the state that the rules share: one fold of the transcript so far.
type world struct {
	version *version
	conns   map[int]*conn
	latest  *conn // the one last asked for
	// lives is a count by session id, over all connections.
	lives  map[string]int // finished turns that a replay must show
	models models
	// shown has, for version 2, the messages of sessions that this transcript has from their beginning, by session
	// and id, over all connections.
	shown map[string]map[string]message
	of    turnOfEntry
	marks bool // the agent ends replays with replay_complete: it knows that state of the specification
}

// conn is one agent process and the connection to it.
type conn struct {
	n         int
	started   bool               // the log has the start of the agent's process
	initAsked int                // Seq of the first initialize, 0 before it
	initDone  int                // Seq of its successful response
	foreign   bool               // the agent chose another version than that of the rules
	novel     bool               // a side advertised a capability that this program does not know
	caps      [2]map[string]bool // what either side advertised, by path
	methods   map[string]bool    // auth methods by id; true for type terminal
	authed    bool               // authenticate succeeded, and no logout since
	loggedOut bool
	demanded  bool // session/new has failed for want of authentication

	open      map[int]*request // unanswered requests of both sides, by Seq
	ids       [2]map[wire.ID]*request
	sessions  map[string]*session
	latest    *session // the one last asked for
	terminals map[string]*terminal
	termOrder []*terminal
	lastAct   *act // the editor's latest frame that acts on a turn
	signalled int  // Seq of the latest signal to the agent
	closedIn  int  // Seq of the end of the agent's input
	exited    int  // Seq of the agent's exit

	// heard is the Seq of the latest request of the agent that the editor has answered.
	heard int
	// These are the times when the editor last answered, when the input was closed, and when the agent exited.
	answeredAt, closedAt, exitedAt time.Duration
	parting
}

// act is a frame of the editor that acts on a turn, and when its write ended.
type act struct {
	seq    int
	at     time.Duration
	ended  int // Seq at which its write ended
	failed bool
}

// request is a request of either side, until its answer.
type request struct {
	seq     int
	at      time.Duration
	by      rules.Side
	verb    verb
	method  string
	id      wire.ID
	conn    *conn
	session *session
	turn    *turn // the turn it opens (prompt) or belongs to
	first   *turn // of a prompt: that of the one which it sends again
	tool    *tool // of a permission request
	back    *act  // $/cancel_request named it

	options  []permit // of a permission request
	terminal string   // the id of the terminal it is about
	limit    int64    // byte limit of a terminal, -1 for none
	cwd      string   // of a new session, or the filter of a list
	roots    []string // further directories of a new session
	cursor   string   // of a list
	mode     string   // the mode to set, or that of an elicitation
	option   string   // the config option to set
	value    string   // and to what
	asks     string   // the id of an elicitation
	offered  int64    // the version that initialize offers, -1 if it can be none
	late     bool     // a permission whose work was cancelled: of version 2
}

// permit is one option of a permission request.
type permit struct{ id, kind string }

// session is one ACP session on one connection.
type session struct {
	id      string
	conn    *conn
	first   int // Seq of the first frame that names it
	created int // Seq of the response that created it, 0 if it was not
	named   int // Seq of the load or resume request that named it first
	listed  bool
	// addressed: the editor has named the session. resumed: it was resumed without its history. evicted: it had more
	// tool calls than the world remembers.
	addressed, resumed, evicted bool
	closed                      int // Seq of the close response, 0 while it is open
	deleted                     bool
	cwd                         string
	roots                       []string
	open                        []*turn  // turns without an answer, oldest first
	last                        *turn    // the turn that ended last
	window                      *request // the load or resume that runs
	restored                    *request // the load or resume since which there was no prompt
	restSeq                     int      // Seq of its response
	tools                       map[string]*tool
	order                       []*tool
	past                        map[string]*tool // those of before the load that runs, or whose turn it broke into
	messages                    [3]string        // current message id of user, agent, thought
	shown                       int              // Seq of the latest piece of a message of the agent

	modes   *modeState
	options []option
	work    // of version 2
	lineage lineage
}

func newWorld(v *version) *world {
	return &world{version: v, conns: map[int]*conn{}, lives: map[string]int{},
		shown: map[string]map[string]message{},
		models: models{streams: map[int]*stream{}, latest: map[string]int{}, asked: map[string]int{},
			heard: map[string]int{}, failed: map[string]int{}}}
}

func (w *world) conn(n int) *conn {
	if w.latest != nil && w.latest.n == n {
		return w.latest
	}
	c := w.conns[n]
	if c == nil {
		c = &conn{
			n: n, open: map[int]*request{}, sessions: map[string]*session{}, terminals: map[string]*terminal{},
			ids: [2]map[wire.ID]*request{{}, {}},
		}
		w.conns[n] = c
	}
	w.latest = c
	return c
}

// session returns the session with an id, which it makes if necessary; nil if there are too many.
func (c *conn) session(id string) *session {
	if id == "" {
		return nil
	}
	if c.latest != nil && c.latest.id == id {
		return c.latest
	}
	s := c.sessions[id]
	if s == nil && len(c.sessions) < rememberedSessions {
		s = &session{id: id, conn: c, tools: map[string]*tool{}, work: work{said: map[string]message{},
			keys: map[string]*turn{}, items: map[itemID]*item{}, behind: map[itemID]bool{}}}
		c.sessions[id] = s
	}
	c.latest = s
	return s
}

// known reports whether the editor knows the session.
func (s *session) known() bool { return s.created > 0 || s.named > 0 || s.lineage.announced > 0 }

// ready reports whether the session is set up. In version 2 a resumed session is ready before the answer.
func (s *session) ready(v *version) bool {
	if v.states {
		return s.known() && s.closed == 0
	}
	return !s.deleted && (s.created > 0 || s.restSeq > 0)
}

// setAside keeps the tool calls apart during a load: a replay announces them again, or a refused load brings them
// back.
func (s *session) setAside() {
	s.recall()
	s.past, s.tools, s.order = s.tools, map[string]*tool{}, nil
}

// recall brings back the tool calls from before a refused load.
func (s *session) recall() {
	for id, t := range s.past {
		if s.tools[id] == nil {
			s.tools[id] = t
			s.order = append(s.order, t)
		}
	}
	slices.SortFunc(s.order, func(a, b *tool) int { return a.first - b.first })
	s.past = nil
}

// forget drops the tool calls from before a successful load, except those of open turns.
func (s *session) forget() {
	maps.DeleteFunc(s.past, func(_ string, t *tool) bool { return t.turn == nil || t.turn.ended > 0 })
	if len(s.open) == 0 {
		s.messages = [3]string{}
	}
}

// replaying reports whether a load of the session or of its root runs.
func (s *session) replaying() bool {
	w := s.root().window
	return w != nil && w.verb == loadSession
}

// ask remembers a request until it is answered.
func (c *conn) ask(r *request) {
	if len(c.open) >= rememberedRequests {
		return
	}
	c.open[r.seq] = r
	c.ids[r.by][r.id] = r
}

func (c *conn) settle(r *request) {
	delete(c.open, r.seq)
	if c.ids[r.by][r.id] == r {
		delete(c.ids[r.by], r.id)
	}
}

// has reports whether a side advertised a capability. Every side has the capability "".
func (c *conn) has(side rules.Side, path string) bool { return path == "" || c.caps[side][path] }

// ordered returns the connections, by number.
func (w *world) ordered() []*conn {
	return slices.SortedFunc(maps.Values(w.conns), func(a, b *conn) int { return a.n - b.n })
}

// pending returns the unanswered requests of a side, oldest first.
func (c *conn) pending(by rules.Side) []*request {
	var all []*request
	for _, r := range c.open {
		if r.by == by {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *request) int { return a.seq - b.seq })
	return all
}

// asks reports whether the agent has an unanswered request about a session.
func (c *conn) asks(s *session) bool {
	return slices.ContainsFunc(c.pending(rules.OfAgent), func(r *request) bool { return r.session == s })
}

// name returns the id of a session, "" for nil.
func (s *session) name() string {
	if s == nil {
		return ""
	}
	return s.id
}
