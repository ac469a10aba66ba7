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
	idle phase = iota // nothing has come
	active
	finished
	failed
)

// family is a kind of item that is opened, continued and closed.
type family int

const (
	text family = iota
	tool
	thought // a reasoning message
	span    // of reasoning
	families
)

// called has the names of the families for people, prefixes the beginnings of their event types.
var (
	called   = [families]string{"message", "tool call", "reasoning message", "reasoning span"}
	prefixes = [families]string{"TEXT_MESSAGE_", "TOOL_CALL_", "REASONING_MESSAGE_", "REASONING_"}
)

// verb is the effect of an event on an item.
type verb int

const (
	other verb = iota
	opens
	continues
	closes
	chunks
)

// means returns the family and the verb of an event type.
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

// item is a message, a tool call or a span.
type item struct {
	open, chunked bool
	at            int // Seq of its opening
	owner         string
	role, name    string // of a tool call: name and parent
	text          strings.Builder
}

// begun returns the Seq at which an item was opened, for a finding; nil for no item.
func (i *item) begun() []int {
	if i == nil {
		return nil
	}
	return []int{i.at}
}

// thread is the state that the streams of a thread share.
type thread struct {
	opened map[string]int // items by id, with the Seq of their first opening
	called int            // Seq of the last answer of the model that calls a tool
	latest *stream
	left   bool // a run was left behind, and may still ask the model
}

// stream is the answer to one post.
type stream struct {
	ref     int
	input   wire.Value
	session string
	thread  *thread
	others  map[string]*thread

	binary  bool   // the answer is in that form
	refused int    // Seq of the answer that is not, although it might have been
	accept  string // what was asked for then
	phase   phase
	events  int
	ended   int // Seq of the last RUN_FINISHED or RUN_ERROR
	runs    int
	runID   string
	version string // declared on the last RUN_STARTED

	items  map[key]*item
	lanes  map[family]map[string]string // open chunk streams: the id by owner
	steps  map[[2]string]int            // by owner and name
	agents map[string]*agent

	calls   []string       // of the run, in their order
	results map[string]int // by the id of their call
	answers map[string]int // the same by their own
	told    map[string]int // Seq of the first request that tells the model the result of a call, by that call
	state   json.RawMessage
	widgets map[string]json.RawMessage // activities
	last    float64                    // timestamp

	useful, raw int // bytes

	heard hearing.Turn // what the model said, and what of it came
	given []byte       // the arguments of the model's calls, one behind the other
	asked bool         // the model was
	reply lastReply    // the last of the model
}

// lastReply is how the last reply of the model in a run ended.
type lastReply struct {
	n      int64 // of its request
	said   strings.Builder
	failed int // Seq of where it failed or broke off
	how    string
}

// agent is an invocation of a subagent.
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

// reset forgets what does not carry over to the next run.
func (s *stream) reset() {
	s.items, s.lanes, s.steps = map[key]*item{}, map[family]map[string]string{}, map[[2]string]int{}
	s.agents, s.calls, s.results, s.answers = map[string]*agent{}, nil, map[string]int{}, map[string]int{}
}

// modern reports whether the stream declares a version, so that the rules of 1.0 and
// later hold.
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

// chunk returns the id of the item that a chunk continues or opens. first says that it opens the item. ambiguous says
// that it names no item and could mean several.
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

// closeChunks closes the items in chunks that an event ends.
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
			continue // with what is open
		}
		keep := ""
		if goesOn {
			keep = ev.id
		}
		s.endLanes(owned, func(owner string) bool { return owner == ev.owner }, keep)
	}
}

// endLanes closes the open items in chunks of a family for some owners, except the item keep.
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

// fold applies an event to the stream, even if the event is wrong.
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

// weigh counts the bytes of an event, raw data separately.
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

// hasFrontTool reports whether the input offers a tool with a name.
func (s *stream) hasFrontTool(name string) bool {
	return lists.Any(s.input.Get("tools").Items(), func(t wire.Value) bool { return t.Get("name").Is(name) })
}

// inputCall returns the tool call with an id in the input's messages; the value is missing if there is none.
func (s *stream) inputCall(id string) wire.Value {
	for m := range s.input.Get("messages").Items() {
		if c := m.Get("toolCalls").Find("id", id); c.Exists() {
			return c
		}
	}
	return wire.Value{}
}

// inputMessage returns the message with an id in the input; the value is missing if there is none.
func (s *stream) inputMessage(id string) wire.Value { return s.input.Get("messages").Find("id", id) }
