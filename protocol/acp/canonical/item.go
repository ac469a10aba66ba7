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
	act                  // requests and notifications of the editor
	answer               // answers of the editor
	inserted             // version 2: shows that the agent has accepted a prompt
	update               // a later update of a tool call
	state                // a session update about the state of the session
	free                 // an entry that the profile declares free
	end                  // exit of the process
)

// item is one line of the golden text: one message, or several chunks of one message.
type item struct {
	entry transcript.Entry
	lane  int // 0: the connection; from 1: its sessions
	role  role
	kind  string // kind of a session update
	call  string // tool call that the message is about
	open  bool   // update: the call had not ended before this update

	moves    bool   // the update starts or ends a tool call, so it shows whether the agent waited for an answer
	boundary bool   // an answer of the agent, or an idle state: it separates earlier state updates from later ones
	opening  bool   // act: a request that opens a session
	effect   string // content: path of the written file, or the started command
	request  int    // answer: index of the item of its request; -1 if unknown
	prompt   int    // answer to a prompt while several were open: number of the prompt, from 1; else 0

	joinKey string
	joined  []string   // texts of the chunks of which this message consists
	text    string     // free: text by which the item is sorted
	cancels string     // $/cancel_request: method of the cancelled request, as shown
	merged  wire.Value // a tool call that is shown in one line: its merged updates

	order  int // answer: order of its request; update: order of its call
	before int // number of items that must come before this one and have not come yet
	after  []int
}

// reader turns the entries of connections into items, one connection after the other.
type reader struct {
	o        golden.Options
	mask     *golden.Mask
	survey   *survey
	until    int // Seq of the last answer to the requests read so far
	lanes    map[string]int
	requests map[int]int // index of the item of each request, by Seq
	called   map[link]called
	labels   map[int]map[string]string // labels of the options, by Seq of the permission request
	calls    map[callKey]*call
	recent   map[callKey]*call // calls whose messages are still remembered
	speaking []int             // for each lane, the item of the unfinished message, or -1
	prompts  map[turns]prompts
	v2       bool
	begun    map[int]int // for each lane, the latest prompt, as index plus 1, without a running state after it
	items    []item
	learned  []learned // new ids in the items
}

// turns identifies a session on one connection. Open prompts are counted for each connection separately, because a
// process that has ended answers no more.
type turns struct {
	conn    int
	session string
}

// prompts has the number of prompts of one session so far, and the open ones.
type prompts struct {
	count int
	open  map[int]int // number of each open prompt, by Seq
}

type link struct {
	conn int
	from transcript.Source
	id   wire.ID
}

// called is the data about a request that the reader keeps until the end.
type called struct{ method, session string }

type callKey struct{ session, id string }

// call has the data about one tool call.
type call struct {
	order int
	ended bool
	shown int // with MergeCalls: index of its item plus 1
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

// shown reports whether an entry belongs in a golden text. It does if it is a frame, or an event of the process after
// its start.
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

// lane returns the number of a session's section. Sections are numbered from 1 in the order of first use; 0 stands for
// the connection.
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

// learn records a new id. The mask gets the id together with the items of the next part.
func (r *reader) learn(class golden.IDClass, id string) {
	if last := len(r.learned) - 1; id != "" && (last < 0 || r.learned[last] != learned{class, id}) {
		r.learned = append(r.learned, learned{class, id})
	}
}

// add reads an entry. It reports whether the entry became an item, instead of being joined with an earlier item or
// omitted.
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

// update sets it.kind for a session update, and the fields that depend on the kind.
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

// begins records whether a state, or a message of the user, shows that the agent has accepted the preceding prompt.
func (r *reader) begins(it *item, u wire.Value) {
	it.boundary = u.Get("state").Is("idle")
	prompt := r.begun[it.lane]
	if prompt > 0 && r.items[prompt-1].entry.Conn != it.entry.Conn { // the process of the prompt has ended
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

// below reports whether the item is shown directly under its request.
func (it *item) below() bool { return it.role == answer || it.role == inserted }

// tool records what a message says about a tool call. The call is announced by a tool_call, or by the first permission
// request or update that names it.
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

// optionLabels returns labels for the options of a permission request, by id. A label is the kind of the option. The
// second option of the same kind gets a number: "allow_once#2".
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

// among reports whether the item is a notification and a pattern matches its kind or method.
func (it *item) among(patterns []string) bool {
	if it.entry.Kind != transcript.Notification {
		return false
	}
	name := it.kind
	name = cmp.Or(name, it.entry.Method)
	return slices.ContainsFunc(patterns, func(pattern string) bool { return glob.Path(pattern, name) })
}

// join adds a chunk to the unfinished message, if the chunk continues that message. It reports whether it did.
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
		r.speaking[it.lane], r.speaking[0] = -1, -1 // a message that names no session ends too
	}
	return false
}

// ends reports whether the message before an item is complete. It is if the item is other content, or the beginning or
// the end of a turn. An answer or notification of the editor may come in the middle of a message.
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

// joinFree joins a chunk that the profile declares free with an earlier free chunk of the same turn. It reports
// whether there was one.
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
