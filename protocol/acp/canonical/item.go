package canonical

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// role determines how a message may move among the other messages of its section.
type role uint8

const (
	content  role = iota // what the agent says and asks, and its answers
	act                  // what the editor asks and says
	answer               // what the editor answers
	inserted             // what says that a prompt is part of the conversation, in version 2
	update               // a later update of a tool call
	state                // an update of how the session is
	free                 // declared free by the profile
	end                  // the exit of the process
)

// item is one line of the golden text: one message, or several chunks of one message.
type item struct {
	entry transcript.Entry
	lane  int // 0: the connection; from 1: its sessions
	role  role
	kind  string // of an update
	call  string // the tool call it is about
	open  bool   // update: the call had not ended before

	moves    bool   // of a tool call: it starts or ends it, so it shows whether the agent waited for an answer
	boundary bool   // content: an answer of the agent, which bounds state updates
	opening  bool   // act: it opens a session
	effect   string // content: the path written or the command started
	request  int    // answer: the item of its request; -1 if unknown
	prompt   int    // the answer to a prompt while another one was open: which it is, from 1

	joinKey string
	joined  []string   // the texts of the chunks that make this message
	text    string     // free: what it is sorted by
	cancels string     // of $/cancel_request: the method it cancels, as it is shown
	merged  wire.Value // of a tool call that is one line: what its updates came to

	order  int // answer: of its request; update: of its call
	before int // how many items must come first and have not
	after  []int
}

// reader turns the entries of connections into items, one connection after the other.
type reader struct {
	o        golden.Options
	mask     *golden.Mask
	survey   *survey
	until    int // Seq of the last answer to what was read
	lanes    map[string]int
	requests map[int]int // item of a request, by Seq
	called   map[link]called
	labels   map[int]map[string]string // names of the options, by Seq of the permission request
	calls    map[callKey]*call
	recent   map[callKey]*call // those whose messages are remembered
	speaking []int             // per lane: the message that goes on, or -1
	prompts  map[turns]prompts
	v2       bool
	begun    map[int]int // per lane: the prompt, from 1, that no running has followed
	items    []item
	learned  []learned // with the items
}

// turns identifies a session on one connection. The open prompts of each are counted separately, because a process that
// has ended answers none.
type turns struct {
	conn    int
	session string
}

// prompts holds the open prompts of one session, and their count.
type prompts struct {
	count int
	open  map[int]int // their numbers, by Seq
}

type link struct {
	conn int
	from transcript.Source
	id   wire.ID
}

// called is the data about a request that the reader never forgets.
type called struct{ method, session string }

type callKey struct{ session, id string }

// call is the data about one tool call.
type call struct {
	order int
	ended bool
	shown int // with MergeCalls: its item, from 1
	raws  [][]byte
}

func newReader(o golden.Options, s *survey) *reader {
	r := &reader{o: o, mask: golden.NewMask(o, "agentInfo", "clientInfo"), survey: s, until: s.stray,
		lanes: map[string]int{}, requests: map[int]int{},
		called: map[link]called{}, labels: map[int]map[string]string{}, calls: map[callKey]*call{},
		recent: map[callKey]*call{}, speaking: []int{-1}, prompts: map[turns]prompts{}, begun: map[int]int{}}
	for session := range s.sessions {
		r.mask.LearnInside(sessionID, session)
	}
	for id := range s.messages {
		r.mask.Learn(messageID, id)
	}
	return r
}

// shown reports whether an entry belongs in a golden: it is a message, or an event of the process after its start.
func shown(e transcript.Entry) bool {
	if e.Source == transcript.Process {
		return e.Kind == transcript.StdinClosed || e.Kind == transcript.Exited ||
			e.Kind == transcript.Signalled && !e.JSON().Get("server").Exists()
	}
	return e.Frame()
}

func creates(method string) bool { return method == "session/new" || method == "session/fork" }

func opens(method string) bool {
	return creates(method) || method == "session/load" || method == "session/resume"
}

// lane returns the number of a session's section, in the order of first use; 0 is the connection.
func (r *reader) lane(session string) int {
	if session == "" {
		return 0
	}
	n, ok := r.lanes[session]
	if !ok {
		n = len(r.lanes) + 1
		r.lanes[session] = n
		r.speaking = append(r.speaking, -1)
	}
	return n
}

// learn records a new id. The mask learns that id together with the items of the next part.
func (r *reader) learn(class golden.IDClass, id string) {
	if last := len(r.learned) - 1; id != "" && (last < 0 || r.learned[last] != learned{class, id}) {
		r.learned = append(r.learned, learned{class, id})
	}
}

// add reads an entry and reports whether the entry became an item of its own.
func (r *reader) add(e transcript.Entry) bool {
	v := e.JSON()
	if e.Kind == transcript.Request {
		r.until = max(r.until, r.survey.answered[e.Seq])
		e.Session = cmp.Or(r.survey.opened[e.Seq], e.Session)
	}
	cancels := ""
	if e.Method == "$/cancel_request" {
		if asked, ok := r.called[link{e.Conn, e.Source, wire.ID(v.Path("params.requestId").Raw())}]; ok {
			e.Session, cancels = cmp.Or(e.Session, asked.session), shortMethod(asked.method)
		}
	}
	it := item{entry: e.Detached(), cancels: cancels, request: -1, lane: r.lane(e.Session)}
	switch {
	case e.Source == transcript.Process:
		it.role = act
		if e.Kind == transcript.Exited {
			it.role = end
		}
	case e.Source == transcript.Editor:
		r.editor(&it, v)
	default:
		r.agent(&it, v)
		if it.among(r.o.Omit) {
			return false
		}
	}
	if e.Kind == transcript.Request {
		r.requests[e.Seq] = len(r.items)
		r.called[link{e.Conn, e.Source, e.ID}] = called{e.Method, e.Session}
	}
	if !r.o.Exact && (r.o.MergeCalls && r.merge(&it, v) || r.join(&it, v)) {
		return false
	}
	r.items = append(r.items, it)
	return true
}

func (r *reader) editor(it *item, v wire.Value) {
	it.role = act
	it.opening = opens(it.entry.Method) && it.entry.Kind == transcript.Request
	if it.entry.Method == "session/prompt" && it.entry.Kind == transcript.Request {
		r.begun[it.lane] = len(r.items) + 1
		p := r.prompts[turns{it.entry.Conn, it.entry.Session}]
		if p.open == nil {
			p.open = map[int]int{}
		}
		p.count++
		p.open[it.entry.Seq] = p.count
		r.prompts[turns{it.entry.Conn, it.entry.Session}] = p
	}
	if it.entry.Kind != transcript.Response {
		return
	}
	it.role = answer
	if at, ok := r.requests[it.entry.Ref]; ok {
		it.request, it.order = at, at
		it.call = r.items[at].call
	}
	r.learn(terminalID, v.Path("result.terminalId").Str())
}

func (r *reader) agent(it *item, v wire.Value) {
	e := it.entry
	params := v.Get("params")
	switch {
	case e.Kind == transcript.Response && r.v2 && e.Method == "session/prompt":
		if at, ok := r.requests[e.Ref]; ok {
			it.role, it.request, it.order = inserted, at, at
		}
	case e.Kind == transcript.Response:
		it.boundary = true
		if p := r.prompts[turns{e.Conn, e.Session}]; len(p.open) > 1 {
			it.prompt = p.open[e.Ref]
		}
		delete(r.prompts[turns{e.Conn, e.Session}].open, e.Ref)
		if e.Method == "session/list" {
			r.learn(cursor, v.Path("result.nextCursor").Str())
		}
	case e.Kind == transcript.Notification && e.Method == "session/update":
		r.update(it, v)
	case e.Method == "session/request_permission":
		r.labels[e.Seq] = optionLabels(params.Get("options"))
		r.tool(it, params.Get("toolCall"))
	case e.Method == "fs/write_text_file":
		it.effect = params.Get("path").Str()
	case e.Method == "terminal/create":
		it.effect = params.Get("command").Str()
	}
	if it.among(r.o.Unordered) {
		it.role = free
	}
}

// update sets in it the kind and subject of a session update.
func (r *reader) update(it *item, v wire.Value) {
	u := v.Path("params.update")
	it.kind = u.Get("sessionUpdate").Str()
	switch {
	case isState(it.kind) && it.lane != 0:
		it.role = state
	case it.kind == "tool_call" || it.kind == "tool_call_update":
		r.tool(it, u)
	case r.v2 && (it.kind == "state_update" || it.kind == "user_message"):
		r.begins(it, u)
	case isChunk(it.kind):
		r.learn(messageID, u.Get("messageId").Str())
	}
}

// begins records whether a state or a message of the user shows that the preceding prompt is part of the conversation.
func (r *reader) begins(it *item, u wire.Value) {
	it.boundary = u.Get("state").Is("idle")
	prompt := r.begun[it.lane]
	if prompt > 0 && r.items[prompt-1].entry.Conn != it.entry.Conn { // of a process that is gone
		delete(r.begun, it.lane)
		return
	}
	if prompt == 0 || it.boundary || it.kind == "state_update" && !u.Get("state").Is("running") {
		return
	}
	it.role, it.request, it.order = inserted, prompt-1, prompt-1
	if it.kind == "user_message" {
		delete(r.begun, it.lane)
	}
}

// below reports whether an item is shown just below its request.
func (it *item) below() bool { return it.role == answer || it.role == inserted }

// tool records what a frame says about a tool call. A tool_call, or the first permission request or update that names
// the call, announces it.
func (r *reader) tool(it *item, v wire.Value) {
	id := v.Get("toolCallId")
	if id.Kind() != wire.String {
		return
	}
	it.call = id.Str()
	key := callKey{it.entry.Session, it.call}
	c := r.calls[key]
	first := c == nil
	if first {
		r.learn(callID, it.call)
		c = &call{order: len(r.calls) + 1}
		r.calls[key] = c
	}
	c.raws = append(c.raws, it.entry.Raw)
	r.recent[key] = c
	it.order = c.order
	if !first && it.kind == "tool_call_update" && it.lane != 0 {
		it.role, it.open = update, !c.ended
	}
	status := v.Get("status")
	it.moves = status.Is("in_progress") || status.Is("completed") || status.Is("failed")
	if status.Is("completed") || status.Is("failed") {
		c.ended = true
	}
}

// optionLabels maps the ids of a permission request's options to labels: the kinds of the options. The second option of
// a kind is "allow_once#2".
func optionLabels(options wire.Value) map[string]string {
	labels, seen := map[string]string{}, map[string]int{}
	for o := range options.Items() {
		kind, id := o.Get("kind").Str(), o.Get("optionId").Str()
		if !golden.IsWord(kind) || o.Get("optionId").Kind() != wire.String || labels[id] != "" {
			continue
		}
		labels[id] = kind
		if seen[kind]++; seen[kind] > 1 {
			labels[id] += "#" + strconv.Itoa(seen[kind])
		}
	}
	return labels
}

// among reports whether the item is a notification whose kind or method matches a pattern.
func (it *item) among(patterns []string) bool {
	if it.entry.Kind != transcript.Notification {
		return false
	}
	name := it.kind
	name = cmp.Or(name, it.entry.Method)
	return slices.ContainsFunc(patterns, func(pattern string) bool { return glob.Path(pattern, name) })
}

// join adds a chunk to the current message, if the chunk continues that message, and reports whether it did.
func (r *reader) join(it *item, v wire.Value) bool {
	if it.role == free || it.role == content && isChunk(it.kind) {
		it.joinKey = joinKey(it, v)
	}
	if it.role == free {
		return it.joinKey != "" && r.joinFree(it, v)
	}
	at := r.speaking[it.lane]
	if it.joinKey != "" && at >= 0 && r.items[at].joinKey == it.joinKey && r.items[at].entry.Conn == it.entry.Conn {
		r.items[at].joined = append(r.items[at].joined, chunkText(v))
		return true
	}
	switch {
	case it.joinKey != "":
		it.joined = []string{chunkText(v)}
		r.speaking[it.lane] = len(r.items)
	case !ends(it):
	case it.lane == 0:
		for lane := range r.speaking {
			r.speaking[lane] = -1
		}
	default:
		r.speaking[it.lane], r.speaking[0] = -1, -1 // also a message that names no session
	}
	return false
}

// ends reports whether an item ends the preceding message: other content does, and so do the beginning and end of a
// turn. Answers and notifications of the editor do not.
func ends(it *item) bool {
	switch it.role {
	case content:
		return !it.boundary || it.kind != "" || it.entry.Method == "session/prompt" || opens(it.entry.Method)
	case update:
		return true
	case act:
		return it.entry.Method == "session/prompt" || it.opening
	}
	return false
}

// joinFree joins a chunk that the profile declares free with earlier free chunks of its turn.
func (r *reader) joinFree(it *item, v wire.Value) bool {
	for at := len(r.items) - 1; at >= 0; at-- {
		other := &r.items[at]
		if other.entry.Conn != it.entry.Conn || other.lane == it.lane && other.entry.Method == "session/prompt" {
			break
		}
		if other.lane == it.lane && other.joinKey == it.joinKey && other.role == free {
			other.joined = append(other.joined, chunkText(v))
			return true
		}
	}
	it.joined = []string{chunkText(v)}
	return false
}

func chunkText(v wire.Value) string { return v.Path("params.update.content.text").Str() }

// joinKey returns a key that is equal for chunks that differ only in their text. It returns "" for an item that is
// never joined.
func joinKey(it *item, v wire.Value) string {
	params := v.Get("params")
	u := params.Get("update")
	c := u.Get("content")
	if !isChunk(it.kind) || !c.Get("type").Is("text") || c.Get("text").Kind() != wire.String {
		return ""
	}
	id, members := u.Get("messageId"), 2
	if id.Exists() {
		members = 3
	}
	key := it.kind + "\n" + string(id.Raw())
	if v.Len() == 3 && params.Len() == 2 && c.Len() == 2 && u.Len() == members {
		return key
	}
	rest := ""
	for _, part := range []struct {
		v     wire.Value
		known []string
	}{{v, []string{"jsonrpc", "method", "params"}}, {params, []string{"sessionId", "update"}},
		{u, []string{"sessionUpdate", "content", "messageId"}}, {c, []string{"type", "text"}}} {
		l, o := golden.NewLine(golden.BlindMask()), golden.Open(part.v)
		for _, k := range part.known {
			o.Take(k)
		}
		l.Rest(o)
		rest += l.String() + "\n"
	}
	return key + strings.TrimRight(rest, "\n")
}
