package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
)

// Mode is how strictly a replay follows the recorded order.
type Mode string

const (
	// Ordered keeps the recorded order within each session. An act waits for all frames that had arrived in its session
	// before the recorded act.
	Ordered Mode = "ordered"
	// Strict keeps the recorded order of all frames in all sessions.
	Strict Mode = "strict"
	// Lenient keeps only the order that an act depends on. An act waits for the response whose ids it uses, for the
	// request that it answers, and until its turn has begun to show something.
	Lenient Mode = "lenient"
)

// act is one action of the recorded editor.
type act struct {
	entry transcript.Entry
	// lane is the session of the act; "" means the connection.
	lane string
	// answers is the Seq of the agent's request that the act answers, or 0.
	answers int
	// behind lists later requests with the same topic that the agent sent before the editor answered this one.
	behind []*asked
	// needs is how many frames of each key must arrive before the act.
	needs map[string]int
	// pause is the time between the act and the entry before it.
	pause time.Duration

	// beside is the kind of the act if it sends no frame, else "". The object of such an act is in the field what.
	beside beside
	what   string

	altered bool // Confine has changed the frame
	done    bool
	ready   time.Time // when the act could have been done, apart from its pause
	skipped string    // why the act was not done; "" if it was
}

// score is one connection of a recording, prepared for playing: the editor's acts, the frames that each act waited
// for, and everything that the agent did.
type score struct {
	acts     []*act
	requests []*asked            // the agent's requests
	items    map[string][]string // turnKey -> ids of the items that the agent opened
	total    map[string]int
	conn     int
}

// asked is a request of the recorded agent, and its answer.
type asked struct {
	entry  transcript.Entry
	about  string
	turn   string // turnKey of the turn of the request; "" outside of a turn
	answer *act   // nil if the editor never answered
	live   int    // Seq of the corresponding live request; 0 if none has come yet
}

// tally counts an agent's frames by key. A recording and its replay have the same keys, because keys use recorded ids
// and Seqs.
type tally struct {
	protocol Protocol
	// queues means that another frame than the response to a prompt may end its turn. A prompt that is sent during a
	// turn then waits for the end of that turn.
	queues  bool
	running map[string]int   // session -> Seq of the prompt of its current turn
	waiting map[string][]int // session -> prompts that wait for the end of that turn

	counts  map[string]int
	turns   map[string]int    // session -> number of its prompts so far
	loads   map[string]int    // session -> number of its loads so far
	phases  map[string]string // session -> its current phase
	latest  map[string]string // session -> the latest kind of content in its phase
	over    map[string]bool   // turnKeys of ended turns, and keys of failed loads
	loading map[int]string    // Seq of a recorded load -> its session
	prompt  map[int]string    // Seq of a recorded prompt -> its turnKey
	items   map[string]bool   // session and id of each item that the agent opened
}

func newTally(p Protocol) *tally {
	_, queues := p.(transcript.Completer)
	return &tally{protocol: p, queues: queues, running: map[string]int{}, waiting: map[string][]int{},
		counts: map[string]int{}, items: map[string]bool{}, turns: map[string]int{}, loads: map[string]int{},
		phases:  map[string]string{},
		loading: map[int]string{},
		latest:  map[string]string{}, over: map[string]bool{}, prompt: map[int]string{}}
}

// enter starts a phase of a session: a turn, the time after that turn, or a load.
func (t *tally) enter(session, phase string) {
	t.phases[session], t.latest[session] = phase, ""
}

func (t *tally) turnKey(session string) string {
	return fmt.Sprintf("turn %d of %s", t.turns[session], session)
}

// current returns the key of the current or latest turn of a session, or "" before the first.
func (t *tally) current(session string) string {
	if t.turns[session] == 0 {
		return ""
	}
	return t.turnKey(session)
}

// sent counts a recorded request of the editor.
func (t *tally) sent(session string, e transcript.Entry) {
	_, prompt := t.protocol.Prompt(e)
	if prompt && t.queues && t.running[session] > 0 {
		t.waiting[session] = append(t.waiting[session], e.Seq)
	} else if prompt {
		t.begin(session, e.Seq)
	} else if t.protocol.Facts(e).Loads {
		t.loads[session]++
		t.loading[e.Seq] = session
		t.enter(session, t.loadKey(session))
	}
}

func (t *tally) loadKey(session string) string {
	return fmt.Sprintf("load %d of %s", t.loads[session], session)
}

// begin starts the turn of the recorded prompt seq.
func (t *tally) begin(session string, seq int) {
	t.turns[session]++
	t.prompt[seq], t.running[session] = t.turnKey(session), seq
	t.enter(session, t.turnKey(session))
}

// opens returns the id of the item that a frame opens in a session. It returns "" if the frame opens none, or an item
// that is already known.
func (t *tally) opens(session string, e transcript.Entry) string {
	item := t.protocol.Facts(e).Item
	key := session + " " + item
	if item == "" || t.items[key] {
		return ""
	}
	t.items[key] = true
	return item
}

// strayKey is the key of responses that belong to no request.
const strayKey = "a response to no request"

// responseKey returns the key of the response to the recorded request seq.
func responseKey(seq int) string { return fmt.Sprintf("the response to #%d", seq) }

// endKey returns the key of a frame that completes the recorded request seq and is not its response.
func endKey(seq int) string { return fmt.Sprintf("the end of #%d", seq) }

// answered counts the response to the recorded request seq. The response ends the request's turn, unless the protocol
// ends turns with another frame.
func (t *tally) answered(seq int, e transcript.Entry) {
	t.counts[responseKey(seq)]++
	if session, ok := t.loading[seq]; ok && e.JSON().Get("error").Exists() {
		t.refused(session)
	}
	if !t.queues || e.JSON().Get("error").Exists() {
		t.end(seq)
	}
}

// refused records that the load of a session failed. If a turn is running in the session, later frames belong to that
// turn again.
func (t *tally) refused(session string) {
	t.over[t.loadKey(session)] = true
	if t.running[session] > 0 && t.phases[session] == t.loadKey(session) {
		t.enter(session, t.turnKey(session))
	}
}

// completed counts a frame that completes the recorded request seq and is not its response.
func (t *tally) completed(seq int) {
	t.counts[endKey(seq)]++
	t.end(seq)
}

// end ends the turn of the recorded request seq, if the request is a prompt. A waiting prompt that was answered
// during the turn was part of it.
func (t *tally) end(seq int) {
	for session, list := range t.waiting {
		t.waiting[session] = slices.DeleteFunc(list, func(n int) bool { return n == seq })
	}
	turn := t.prompt[seq]
	if turn == "" {
		return
	}
	t.over[turn] = true
	for session, phase := range t.phases {
		if phase == turn {
			t.enter(session, "the time after "+turn)
		}
		if t.running[session] != seq {
			continue
		}
		t.running[session] = 0
		rest := slices.DeleteFunc(t.waiting[session], func(n int) bool { return t.counts[responseKey(n)] > 0 })
		if t.waiting[session] = rest; len(rest) > 0 {
			t.waiting[session] = rest[1:]
			t.begin(session, rest[0])
		}
	}
}

// came counts a request or notification of the agent in a session. A streamed text counts twice: once per chunk, and
// once as a message, because the agent may split a message anywhere.
func (t *tally) came(session string, e transcript.Entry) {
	t.counts[t.key(session, e)]++
	if f := t.protocol.Facts(e); f.Shows != "" && !f.State {
		if t.latest[session] != f.Shows && f.Chunk {
			t.counts[t.messageKey(session, f)]++
		}
		t.latest[session] = f.Shows
	}
}

// messageKey returns the key of the message to which a chunk belongs.
func (t *tally) messageKey(session string, f Facts) string {
	return f.Message + " in " + t.phases[session]
}

func (t *tally) key(session string, e transcript.Entry) string {
	f := t.protocol.Facts(e)
	what := cmp.Or(f.What, e.Method)
	if f.State {
		return what + " of " + session // it may fall into any turn
	}
	return what + " in " + t.phases[session]
}

// newScore prepares one connection of a recording for playing.
func newScore(p Protocol, t *transcript.Transcript, gates []fakellm.RecordedGate, conn int, mode Mode) *score {
	r := &scoring{score: &score{conn: conn, items: map[string][]string{}}, protocol: p, gates: gates, mode: mode,
		count: newTally(p), open: map[int]*asked{}, state: map[string]bool{}, chunk: map[string]bool{},
		owner: map[string]string{}}
	quiet := besides(t, gates)
	at := 0 // the connection of the latest frame
	for e := range t.All() {
		if e.Frame() || e.Source == transcript.Process {
			at = e.Conn
		}
		for _, a := range quiet[e.Seq] {
			if at == conn {
				a.entry = e
				r.add(a)
			}
		}
		if e.Conn != conn || !e.Frame() {
			continue
		}
		if e.Source == transcript.Agent {
			r.agent(e)
		} else if e.Source == transcript.Editor {
			r.editor(e)
		}
		r.before = e.At
	}
	r.total = maps.Clone(r.count.counts)
	maps.DeleteFunc(r.total, func(key string, _ int) bool { return r.chunk[key] }) // chunks may be split anywhere
	return r.score
}

// scoring is a score that is being made while its recording is read.
type scoring struct {
	*score
	protocol Protocol
	gates    []fakellm.RecordedGate
	mode     Mode
	count    *tally
	open     map[int]*asked
	state    map[string]bool   // keys of state updates
	chunk    map[string]bool   // keys of chunks
	owner    map[string]string // key -> the session of its frames
	before   time.Duration     // time of the previous frame
}

// add adds an act to the score and determines the frames that the act waits for.
func (r *scoring) add(a *act) {
	a.needs, a.pause = map[string]int{}, a.entry.At-r.before
	a.wait(r.mode, r.count, r.owner, r.state, r.chunk)
	a.reach(r.gates)
	r.acts = append(r.acts, a)
}

// agent counts a frame of the agent, as the frame's kind requires.
func (r *scoring) agent(e transcript.Entry) {
	switch {
	case e.Kind == transcript.Response && e.Ref > 0:
		r.count.answered(e.Ref, e)
		r.owner[responseKey(e.Ref)] = r.protocol.Facts(e).Lane
		return
	case e.Kind == transcript.Response:
		r.count.counts[strayKey]++
		return
	case completes(e):
		r.count.completed(e.Ref)
		r.owner[endKey(e.Ref)] = e.Session
		return
	case e.Kind == transcript.Malformed:
		return
	}
	key := r.count.key(e.Session, e)
	r.count.came(e.Session, e)
	r.owner[key] = e.Session
	f := r.protocol.Facts(e)
	r.state[key] = f.State
	if f.Chunk {
		r.chunk[key] = true
		r.owner[r.count.messageKey(e.Session, f)] = e.Session
	}
	if item := r.count.opens(e.Session, e); item != "" {
		turn := r.count.turnKey(e.Session)
		r.items[turn] = append(r.items[turn], item)
	}
	if e.Kind == transcript.Request {
		a := &asked{entry: e, about: r.protocol.About(e), turn: r.count.current(e.Session)}
		r.open[e.Seq] = a
		r.requests = append(r.requests, a)
	}
}

// editor adds the act of sending a frame of the editor.
func (r *scoring) editor(e transcript.Entry) {
	a := &act{entry: e, lane: r.protocol.Facts(e).Lane}
	if q := r.open[e.Ref]; q != nil && e.Kind == transcript.Response && e.Ref > 0 {
		a.answers, a.behind = e.Ref, r.alike(q)
		q.answer = cmp.Or(q.answer, a)
	}
	r.add(a)
	if e.Kind == transcript.Request {
		r.count.sent(e.Session, e)
	}
}

// alike returns the requests read so far that came after q and have the same topic.
func (s *score) alike(q *asked) (alike []*asked) {
	return lists.Where(s.requests, func(other *asked) bool {
		return other.about == q.about && q.about != "" && other.entry.Seq > q.entry.Seq
	})
}

// wait sets the frames that the act waits for.
func (a *act) wait(mode Mode, count *tally, owner map[string]string, state, chunk map[string]bool) {
	phase := " in " + count.phases[a.lane]
	cancels := a.beside != "" || count.protocol.Cancels(a.entry)
	if a.beside == kill || a.beside == closeStdin {
		mode = Strict
	}
	for key, n := range count.counts {
		response := isEndKey(key)
		mine := owner[key] == a.lane || owner[key] == "" || a.lane == "" && mode == Ordered
		now := strings.HasSuffix(key, phase) || a.lane == ""
		switch {
		case mode == Strict:
		case !mine:
			continue
		case response:
		case a.answers > 0 && owner[key] != "": // its request is unanswered: that is enough
			continue
		case !now || state[key]:
			continue
		case mode == Lenient:
			if !cancels {
				continue
			}
			n = 1
		case chunk[key] && !cancels:
			continue
		}
		a.needs[key] = n
	}
}

// reach makes the act wait until the model is at the gates where it waited in the recording.
func (a *act) reach(gates []fakellm.RecordedGate) {
	for _, g := range gates {
		mine := g.Session == a.lane || g.Session == "" || a.lane == ""
		if mine && g.Holds(a.entry.Seq) {
			a.needs[held(g)] = 1
		}
	}
}

// isEndKey reports whether a key is that of a response to an editor's request, or of another frame that completes
// such a request.
func isEndKey(key string) bool {
	return strings.HasPrefix(key, "the response to ") || strings.HasPrefix(key, "the end of ")
}

// completes reports whether a frame completes a request but is not its response.
func completes(e transcript.Entry) bool { return e.Kind == transcript.Notification && e.Ref > 0 }
