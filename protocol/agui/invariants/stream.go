package invariants

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/protocol/agui/fold"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// phase is the progress of a run.
type phase int

const (
	idle phase = iota // no event has come yet
	active
	finished
	failed
)

// family is a kind of item that events open, continue and close.
type family int

const (
	text family = iota
	tool
	thought // a reasoning message
	span    // a span of reasoning
	families
)

// called has the names of the families for messages to users. prefixes has the prefixes of their event types.
var (
	called   = [families]string{"message", "tool call", "reasoning message", "reasoning span"}
	prefixes = [families]string{"TEXT_MESSAGE_", "TOOL_CALL_", "REASONING_MESSAGE_", "REASONING_"}
)

// verb says what an event does to an item.
type verb int

const (
	other verb = iota
	opens
	continues
	closes
	chunks
)

// means returns the family and the verb of an event type. The verb is other for types that are not about items.
func means(kind string) (family, verb) {
	for f, prefix := range prefixes {
		rest, ok := strings.CutPrefix(kind, prefix)
		if !ok {
			continue
		}
		switch rest {
		case "START":
			return family(f), opens
		case "CONTENT", "ARGS":
			return family(f), continues
		case "END":
			return family(f), closes
		case "CHUNK":
			return family(f), chunks
		}
	}
	return 0, other
}

type key struct {
	family family
	id     string
}

// item is a message, a tool call or a reasoning span.
type item struct {
	open, chunked bool
	at            int // Seq of the event that opened the item last
	owner         string
	role, name    string // for a tool call: its parentMessageId and toolCallName
	text          strings.Builder
}

// begun returns the Seq of the event that opened an item, as a list for a finding. It returns nil if i is nil.
func (i *item) begun() []int {
	if i == nil {
		return nil
	}
	return []int{i.at}
}

// thread is the state that all streams of a thread share.
type thread struct {
	opened map[string]int // Seq of the first opening of each item, by id
	called int            // Seq of the model's last reply that has a tool call
	latest *stream
	left   bool // an earlier run did not end, so it may still send model requests
}

// stream is the answer to one post.
type stream struct {
	ref     int
	input   wire.Value
	session string
	thread  *thread
	others  map[string]*thread

	binary  bool   // the answer is in the binary form
	refused int    // Seq of the last response in text form although the request accepts the binary form
	accept  string // Accept header of that request
	phase   phase
	events  int
	ended   int // Seq of the last RUN_FINISHED or RUN_ERROR
	runs    int
	runID   string
	version string // as declared in the last RUN_STARTED

	items  map[key]*item
	lanes  map[family]map[string]string // by family and owner, id of the open item that is sent in chunks
	steps  map[[2]string]int            // Seq of the start of each open step, by owner and name
	agents map[string]*agent

	calls   []string       // ids of the run's tool calls, in order
	results map[string]int // Seq of each tool result, by id of the call
	answers map[string]int // Seq of each tool result, by id of its message
	told    map[string]int // Seq of the model request that has the result of a call, by id of the call
	state   json.RawMessage
	widgets map[string]json.RawMessage // content of each activity, by id
	last    float64                    // latest timestamp

	useful, raw int // bytes of events without raw data, and bytes of raw data

	heard hearing.Turn // the model's text, compared with the text of the stream
	given []byte       // arguments of the model's calls, joined
	asked bool         // the first model request of the run has come
	reply lastReply    // the model's last reply
}

// lastReply describes the end of the model's last reply in a run.
type lastReply struct {
	n      int64 // number of the model request
	said   strings.Builder
	failed int // Seq at which the reply failed or broke off, or 0
	how    string
}

// agent is one run of a subagent.
type agent struct{ announced, over, suspended bool }

func newStream(ref int, input wire.Value, session string, t *thread) *stream {
	s := &stream{ref: ref, input: input, session: session, thread: t, widgets: map[string]json.RawMessage{},
		told: map[string]int{}}
	if state := input.Get("state"); state.Exists() && !state.IsNull() {
		s.state = state.Raw()
	}
	s.reset()
	return s
}

// reset clears the state that belongs to one run.
func (s *stream) reset() {
	s.items, s.lanes, s.steps = map[key]*item{}, map[family]map[string]string{}, map[[2]string]int{}
	s.agents, s.calls, s.results, s.answers = map[string]*agent{}, nil, map[string]int{}, map[string]int{}
}

// modern reports whether the stream declares a version. If so, the rules for versions from 1.0 on apply.
func (s *stream) modern() bool { return s.version != "" }

// over reports whether the last run has ended.
func (s *stream) over() bool { return s.phase == finished || s.phase == failed }

// openItems returns the open items, in the order in which they were opened.
func (s *stream) openItems() (keys []key) {
	for k, i := range s.items {
		if i.open {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return s.items[a].at - s.items[b].at })
	return keys
}

// chunk returns the id of the item that an event in chunk form opens or continues. first says that it opens the item.
// ambiguous says that the event has no id although several items are open.
func (s *stream) chunk(ev *event) (id string, first, ambiguous bool) {
	lanes := s.lanes[ev.family]
	if ev.id != "" {
		return ev.id, lanes[ev.owner] != ev.id, false
	}
	if id := lanes[ev.owner]; id != "" {
		return id, false, false
	}
	if ev.owner != "" || len(lanes) == 0 {
		return "", true, false
	}
	for _, only := range lanes {
		id = only
	}
	return id, false, len(lanes) > 1
}

// closeChunks closes those open items in chunks that the event ends.
func (s *stream) closeChunks(ev *event) {
	switch {
	case ev.kind == "" || ev.kind == "RAW" || strings.HasPrefix(ev.kind, "ACTIVITY_"),
		ev.kind == "REASONING_ENCRYPTED_VALUE", ev.kind == "SUBAGENT_STARTED":
		return
	case strings.HasPrefix(ev.kind, "RUN_") || ev.kind == "MESSAGES_SNAPSHOT":
		for owned := range s.lanes {
			s.endLanes(owned, func(string) bool { return true }, "")
		}
		return
	}
	for owned := range s.lanes {
		goesOn := ev.verb == chunks && owned == ev.family
		if goesOn && ev.id == "" {
			continue // the chunk continues the open item
		}
		keep := ""
		if goesOn {
			keep = ev.id
		}
		s.endLanes(owned, func(owner string) bool { return owner == ev.owner }, keep)
	}
}

// endLanes closes the open items in chunks of one family, if of returns true for their owner. It does not close the
// item keep.
func (s *stream) endLanes(f family, of func(owner string) bool, keep string) {
	for owner, id := range s.lanes[f] {
		if of(owner) && id != keep {
			if i := s.items[key{f, id}]; i != nil {
				i.open = false
			}
			delete(s.lanes[f], owner)
		}
	}
}

// fold applies an event to the stream, even if the event breaks a rule.
func (s *stream) fold(ev *event) {
	if ev.kind == "" {
		s.binary = s.binary || ev.Kind == transcript.Response && ev.v.Get("type").Is(aguiproto.MediaType)
		return
	}
	s.events++
	if ts, ok := ev.v.Get("timestamp").Float(); ok {
		s.last = max(s.last, ts)
	}
	s.weigh(ev)
	switch i := ev.item; {
	case ev.verb == opens:
		s.openItem(ev.id, ev, false)
	case ev.verb == chunks:
		s.foldChunk(ev)
	case ev.verb == other:
		s.foldOther(ev)
	case i == nil:
	case ev.verb == continues:
		i.text.WriteString(ev.v.Get("delta").Str())
	default:
		i.open = false
	}
}

// weigh adds the bytes of an event to s.useful, and those of its raw data to s.raw.
func (s *stream) weigh(ev *event) {
	raw := len(ev.v.Get("rawEvent").Raw())
	if ev.kind == "RAW" {
		raw = len(ev.Raw)
	}
	s.raw += raw
	s.useful += len(ev.Raw) - raw
}

func (s *stream) openItem(id string, ev *event, chunked bool) {
	k := key{ev.family, id}
	i := s.items[k]
	if i == nil {
		i = &item{owner: ev.owner, role: ev.v.Get("role").Str(), name: ev.v.Get("name").Str()}
		s.items[k] = i
		if k.family == tool {
			i.role, i.name = ev.v.Get("parentMessageId").Str(), ev.v.Get("toolCallName").Str()
			s.calls = append(s.calls, id)
		}
	}
	i.open, i.chunked, i.at = true, chunked, ev.Seq
	s.thread.opened[id] = cmp.Or(s.thread.opened[id], ev.Seq)
	if a := s.agents[ev.owner]; a == nil && ev.owner != "" {
		s.agents[ev.owner] = &agent{}
	}
}

func (s *stream) foldChunk(ev *event) {
	id, first, ambiguous := s.chunk(ev)
	if id == "" || ambiguous {
		return
	}
	f := ev.family
	if first {
		s.openItem(id, ev, true)
		if s.lanes[f] == nil {
			s.lanes[f] = map[string]string{}
		}
		s.lanes[f][ev.owner] = id
	}
	if i := s.items[key{f, id}]; i != nil {
		i.text.WriteString(ev.v.Get("delta").Str())
	}
}

func (s *stream) foldOther(ev *event) {
	switch ev.kind {
	case "RUN_STARTED":
		s.reset()
		s.phase, s.runs = active, s.runs+1
		s.runID, s.version = ev.v.Get("runId").Str(), ev.v.Get("protocolVersion").Str()
	case "RUN_FINISHED":
		s.phase, s.ended = finished, ev.Seq
	case "RUN_ERROR":
		s.phase, s.ended = failed, ev.Seq
	case "STEP_STARTED":
		s.steps[[2]string{ev.owner, ev.v.Get("stepName").Str()}] = ev.Seq
	case "STEP_FINISHED":
		delete(s.steps, [2]string{ev.owner, ev.v.Get("stepName").Str()})
	case "TOOL_CALL_RESULT":
		s.results[ev.id] = cmp.Or(s.results[ev.id], ev.Seq)
		id := ev.v.Get("messageId").Str()
		s.answers[id] = ev.Seq
		s.thread.opened[id] = cmp.Or(s.thread.opened[id], ev.Seq)
	case "STATE_SNAPSHOT":
		s.state = slices.Clone(ev.v.Get("snapshot").Raw())
	case "STATE_DELTA":
		if next, err := fold.Patched(s.state, ev.v.Get("delta").Raw()); err == nil {
			s.state = next
		}
	case "ACTIVITY_SNAPSHOT":
		if replace, set := ev.v.Get("replace").Bool(); !set || replace || s.widgets[ev.id] == nil {
			s.widgets[ev.id] = slices.Clone(ev.v.Get("content").Raw())
		}
	case "ACTIVITY_DELTA":
		if next, err := fold.Patched(s.widgets[ev.id], ev.v.Get("patch").Raw()); err == nil && s.widgets[ev.id] != nil {
			s.widgets[ev.id] = next
		}
	case "SUBAGENT_STARTED":
		s.agents[ev.owner] = &agent{announced: true}
	case "SUBAGENT_FINISHED", "SUBAGENT_ERROR":
		if a := s.agents[ev.owner]; a != nil {
			a.over, a.suspended = true, ev.v.Path("outcome.type").Is("suspended")
		}
	}
}

// hasFrontTool reports whether the input declares a tool of the front end with the given name.
func (s *stream) hasFrontTool(name string) bool {
	return lists.Any(s.input.Get("tools").Items(), func(t wire.Value) bool { return t.Get("name").Is(name) })
}

// inputCall returns the tool call with the given id in the input's messages, or a missing value.
func (s *stream) inputCall(id string) wire.Value {
	for m := range s.input.Get("messages").Items() {
		if c := m.Get("toolCalls").Find("id", id); c.Exists() {
			return c
		}
	}
	return wire.Value{}
}

// inputMessage returns the input's message with the given id, or a missing value.
func (s *stream) inputMessage(id string) wire.Value { return s.input.Get("messages").Find("id", id) }
