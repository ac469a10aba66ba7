package invariants

import (
	"maps"
	"slices"
	"time"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// Limits of the world's memory. The rules do not judge what exceeds a limit.
const (
	rememberedSessions = 1 << 14
	rememberedRequests = 1 << 16
	rememberedTools    = 1 << 12
	rememberedTerms    = 1 << 12
)

// world is the state that all rules share, computed from the transcript so far.
type world struct {
	version *version
	conns   map[int]*conn
	latest  *conn // connection that the method conn returned last
	// lives is the number of finished turns that a replay must show, by session id, over all connections.
	lives  map[string]int
	models models
	// shown has the messages of version 2 sessions that began in this transcript. Its keys are the session id and the
	// message id. It covers all connections.
	shown map[string]map[string]message
	of    turnOfEntry
	marks bool // the agent has sent a replay_complete, so it ends replays with that update
}

// conn is one agent process and the connection to it.
type conn struct {
	n         int
	started   bool               // the log has the start of the agent's process
	initAsked int                // Seq of the first initialize, or 0
	initDone  int                // Seq of the successful response to initialize
	foreign   bool               // the agent chose another protocol version than that of the rules
	novel     bool               // a side advertised a capability that this program does not know
	caps      [2]map[string]bool // advertised capabilities of each side, by path
	methods   map[string]bool    // login methods by id; true for type terminal
	authed    bool               // authenticate succeeded, and no logout followed
	loggedOut int                // Seq of the response to a logout after which nobody has logged in, or 0
	demanded  bool               // session/new has failed because a login was missing

	open      map[int]*request // unanswered requests of both sides, by Seq
	ids       [2]map[wire.ID]*request
	sessions  map[string]*session
	latest    *session // session that the method session returned last
	terminals map[string]*terminal
	termOrder []*terminal
	lastAct   *act // the editor's latest frame that acts on a turn
	signalled int  // Seq of the latest signal to the agent
	closedIn  int  // Seq of the end of the agent's input
	exited    int  // Seq of the agent's exit

	// heard is the Seq of the latest request of the agent that the editor has answered.
	heard int
	// Times of the editor's last answer, of the end of the input, and of the agent's exit.
	answeredAt, closedAt, exitedAt time.Duration
	parting
}

// act is a frame of the editor that acts on a turn, with the end of the write of this frame.
type act struct {
	seq    int
	at     time.Duration
	ended  int // Seq at which the write ended
	failed bool
}

// request is one JSON-RPC request of either side.
type request struct {
	seq     int
	at      time.Duration
	by      rules.Side
	verb    verb
	method  string
	id      wire.ID
	conn    *conn
	session *session
	turn    *turn // turn that a prompt opens, or that the request belongs to
	first   *turn // turn of the earlier prompt that this prompt sends again
	tool    *tool // tool call of a permission request
	back    *act  // the $/cancel_request that names this request

	options  []permit // options of a permission request
	terminal string   // id of the terminal that the request uses
	limit    int64    // byte limit of a new terminal, or -1
	cwd      string   // cwd of a new session, or filter of a list request
	roots    []string // additional directories of a new session
	hadCwd   string   // cwd of the session before a load or resume
	hadRoots []string // its additional directories then
	cursor   string   // cursor of a list request
	mode     string   // mode to set, or mode of an elicitation
	option   string   // config option to set
	value    string   // value to set for the option
	asks     string   // id of an elicitation
	offered  int64    // version that initialize offers, or -1 if it is invalid
	late     bool     // a permission request whose work was cancelled; version 2 only
}

// permit is one option of a permission request.
type permit struct{ id, kind string }

// session is one ACP session on one connection.
type session struct {
	id      string
	conn    *conn
	first   int // Seq of the first frame that names the session
	created int // Seq of the response that created the session, or 0
	named   int // Seq of the first load or resume request for the session
	listed  bool
	// addressed says that the editor has sent a message about the session. resumed says that the session was resumed
	// without its history. evicted says that the world has forgotten some of the session's tool calls.
	addressed, resumed, evicted bool
	closed                      int // Seq of the close response, or 0 while the session is open
	deleted                     bool
	cwd                         string
	roots                       []string
	open                        []*turn  // turns without an answer, oldest first
	last                        *turn    // turn that ended last
	window                      *request // load or resume that is not answered
	restored                    *request // latest load or resume, until the next prompt
	restSeq                     int      // Seq of the response to restored
	tools                       map[string]*tool
	order                       []*tool
	past                        map[string]*tool // tool calls from before a load, kept while it runs or their turn is open
	messages                    [3]string        // current message ids of user, agent and thought
	shown                       int              // Seq of the latest piece of an agent message

	modes   *modeState
	options []option
	work    // only used in version 2
	lineage lineage
}

func newWorld(v *version) *world {
	return &world{version: v, conns: map[int]*conn{}, lives: map[string]int{},
		shown: map[string]map[string]message{},
		models: models{streams: map[int]*stream{}, latest: map[string]int{}, asked: map[string]int{}, hangs: map[string]int{},
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

// session returns the session with the given id. It creates the session if necessary, and returns nil if id is "" or
// if there are too many sessions.
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

// ready reports whether prompts may be sent to the session. In version 2 this is so even before the answer to a
// resume.
func (s *session) ready(v *version) bool {
	if v.states {
		return s.known() && s.closed == 0
	}
	return !s.deleted && (s.created > 0 || s.restSeq > 0)
}

// setAside moves the tool calls to s.past for the time of a load. A replay may announce them again, and recall brings
// them back if the load fails.
func (s *session) setAside() {
	s.recall()
	s.past, s.tools, s.order = s.tools, map[string]*tool{}, nil
}

// recall brings the tool calls in s.past back, after a failed load.
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

// forget drops the tool calls in s.past, after a successful load. It keeps those of open turns.
func (s *session) forget() {
	maps.DeleteFunc(s.past, func(_ string, t *tool) bool { return t.turn == nil || t.turn.ended > 0 })
	if len(s.open) == 0 {
		s.messages = [3]string{}
	}
}

// replaying reports whether a load of the session or of its root session is still unanswered.
func (s *session) replaying() bool {
	w := s.root().window
	return w != nil && w.verb == loadSession
}

// ask stores a request until it is answered.
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

// name returns the id of a session, or "" for nil.
func (s *session) name() string {
	if s == nil {
		return ""
	}
	return s.id
}
