// Package invariants contains the rules of AG-UI and the registry of its requirements. All rules that check one
// transcript share the state of each stream. A rule sees each entry together with the state of its stream before that
// entry.
package invariants

import (
	"cmp"
	_ "embed"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

//go:embed rules.txt
var texts string

//go:embed requirements.txt
var requirements string

//go:embed bindings.yaml
var bindings []byte

// V1 returns the rules of AG-UI. Rules about versions from 1.0 on judge only streams that declare a version. All other
// streams count as older.
func V1() *rules.Set { return v1() }

var v1 = sync.OnceValue(func() *rules.Set {
	return rules.Must(rules.Definition{Text: texts, Requirements: requirements, Bindings: bindings, Watch: watchAll,
		Severities: map[string]rules.Severity{"v1": {}, "pedantic": {Stricter: true}}})
})

// machines maps the id of a rule to the function that registers its listeners.
var machines = map[string]func(*watch){
	"ACTIVITY": activityPatch, "APART": apart, "CHUNK-FORM": chunkForm, "CLOCK": clock, "EVENT-SHAPE": eventShape,
	"INTERRUPT": interrupts, "MESSAGES": messagesWhole, "MODEL-CONTEXT": modelContext,
	"MODEL-FAILED": modelFailed, "MODEL-TEXT": modelText,
	"PENDING": pendingCalls, "PRIVATE": private, "RAW-WEIGHT": rawWeight, "REASONING-PAIR": reasoningPair,
	"RESTATED": restated, "RUN-CLOSED": runClosed, "RUN-FRAME": runFrame, "RUN-ID": runID, "SSE-FORM": sseForm,
	"STATE-PATCH": statePatch, "STEP-PAIR": stepPair, "SUBAGENT": subagents, "TEXT-PAIR": textPair,
	"TOOL-PAIR": toolPair, "TOOL-RESULT": toolResult, "USAGE": usage,
}

// These are the topics other than types of events and kinds of entries.
const (
	anyEvent = "event"
	anyItem  = "item" // an event that opens, continues or closes an item
)

// event is an entry of a stream, together with the stream.
type event struct {
	transcript.Entry
	*stream
	v    wire.Value
	kind string // type of the event, or "" for any other entry
	// id is the messageId or toolCallId. owner is the id of the subagent, or "" for the agent itself.
	id, owner string
	// family and verb say what an event about an item does. item is that item, or nil if it is unknown.
	family family
	verb   verb
	item   *item
}

// watch is what one active rule uses to listen to one transcript.
type watch struct {
	*rules.Watch
	*observer
}

// find reports that an entry breaks a point. object is the subject of the finding. because has the Seqs of earlier
// entries that led to the fault.
func (w *watch) find(point string, ev *event, object string, because []int, format string, args ...any) {
	w.Report(point, ev.Conn, ev.Session, object, append(because, ev.Seq), format, args...)
}

// judge counts one check of the point. If broken is true, it also reports the entry.
func (w *watch) judge(point string, broken bool, ev *event, object string, because []int, format string, args ...any) {
	if w.Saw(point); broken {
		w.find(point, ev, object, because, format, args...)
	}
}

// eachStream calls judge for each stream at the end of the transcript.
func (w *watch) eachStream(judge func(*stream)) {
	w.AtEnd(func(rules.End) {
		for _, s := range w.order {
			judge(s)
		}
	})
}

// observer is the state that the rules of one checker share.
type observer struct {
	rules.Desk[string, *event]
	streams map[int]*stream // by Seq of the post
	threads map[string]*thread
	order   []*stream
}

func watchAll(c *rules.Checker) rules.Observer {
	o := &observer{streams: map[int]*stream{}, threads: map[string]*thread{}}
	rules.Begin(c, machines, func(w *rules.Watch) *watch { return &watch{w, o} })
	return o
}

// Observe passes one entry of the transcript to the rules.
func (o *observer) Observe(e transcript.Entry) {
	switch {
	case e.Source == transcript.Editor && e.Kind != transcript.Written:
		// The input is kept, because it is small compared with the entries that it causes.
		input, err := wire.Parse(append([]byte(nil), e.Raw...))
		if err != nil {
			input = wire.Value{}
		}
		o.begin(e.Seq, input, e.Session)
	case e.Source == transcript.Agent:
		o.observe(e)
	case e.Source == transcript.Model && o.threads[e.Session] != nil:
		t := o.threads[e.Session]
		ev := &event{Entry: e, stream: t.latest, v: e.JSON()}
		for step := range ev.v.Get("steps").Items() {
			if strings.HasPrefix(step.Str(), "tool:") {
				t.called = e.Seq
			}
		}
		o.Tell(modelSide, ev)
	}
}

// observe passes an entry of the agent to the rules.
func (o *observer) observe(e transcript.Entry) {
	s := o.streams[e.Ref]
	if s == nil { // the recording has only events
		s = o.begin(e.Ref, wire.Value{}, e.Session)
	}
	ev := &event{Entry: e, stream: s, v: e.JSON(), kind: aguiframe.Event(e)}
	ev.owner = ev.v.Get("subagentRunId").Str()
	ev.id = cmp.Or(ev.v.Get("messageId").Str(), ev.v.Get("toolCallId").Str())
	if strings.HasPrefix(ev.kind, "TOOL_CALL") {
		ev.id = ev.v.Get("toolCallId").Str()
	}
	ev.family, ev.verb = means(ev.kind)
	s.closeChunks(ev)
	ev.item = s.items[key{ev.family, ev.id}]
	o.Tell(cmp.Or(ev.kind, string(e.Kind)), ev)
	if ev.kind != "" {
		o.Tell(anyEvent, ev)
	}
	if ev.verb != other {
		o.Tell(anyItem, ev)
	}
	s.fold(ev)
}

// begin creates the stream for the answer to a post.
func (o *observer) begin(ref int, input wire.Value, session string) *stream {
	t := o.threads[session]
	if t == nil {
		t = &thread{opened: map[string]int{}}
		o.threads[session] = t
	}
	s := newStream(ref, input, session, t)
	s.others = o.threads
	t.left = t.left || t.latest != nil && !t.latest.over()
	s.heard.Unclear = t.left // the unfinished run may still send model requests
	t.latest = s
	o.streams[ref] = s
	o.order = append(o.order, s)
	return s
}
