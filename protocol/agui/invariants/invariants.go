// Package invariants holds the rules of AG-UI, and the registry of its requirements.
// All rules of one transcript share one fold of each stream: each sees an entry with
// the stream as it was before.
package invariants

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

//go:embed requirements.txt
var requirements string

//go:embed bindings.yaml
var bindings []byte

// V1 returns the rules of AG-UI. A rule about a version holds for streams that declare
// one: a stream that does not is older than versions.
func V1() *rules.Set { return v1() }

var v1 = sync.OnceValue(func() *rules.Set {
	var all []rules.Rule
	for _, r := range list() {
		all = append(all, r.Rule)
	}
	set, err := rules.New(rules.Definition{Rules: all, Watch: watchAll, Requirements: requirements, Bindings: bindings,
		Severities: map[string]rules.Severity{"v1": {}, "pedantic": {Stricter: true}}})
	if err != nil {
		panic("invariants: an embedded file: " + err.Error())
	}
	return set
})

func list() []*rule {
	return []*rule{
		sseForm(), runFrame(), runID(), runClosed(), textPair(), toolPair(), toolResult(), pendingCalls(), chunkForm(),
		stepPair(), reasoningPair(), statePatch(), activityPatch(), messagesWhole(), eventShape(), subagents(), interrupts(),
		usage(), restated(), apart(), private(), rawWeight(), clock(),
	}
}

// rule is one rule, with what sees each entry of a stream; ends, if it is set, sees the
// end of the transcript.
type rule struct {
	rules.Draft
	see  func(w *watch, s *stream, ev *event)
	ends func(w *watch, s *stream)
}

func newRule(id, sentence string) *rule {
	return &rule{Draft: rules.Draft{Rule: rules.Rule{ID: id, Sentence: sentence}, Family: "AGUI-"}}
}

// event is an entry of a stream.
type event struct {
	transcript.Entry
	v    wire.Value
	kind string // the type of an event, "" of any other entry
	// id is the messageId or toolCallId, owner the subagent; "" is the agent itself.
	id, owner string
}

// watch is one rule that is on, in one transcript.
type watch struct {
	*rules.Watch
	rule *rule
}

// find reports that an entry breaks a point; object is what it is about.
func (w *watch) find(point int, ev *event, object string, because []int, format string, args ...any) {
	w.Report(point, ev.Conn, ev.Session, object, append(because, ev.Seq), format, args...)
}

// observer is what the rules of one checker share.
type observer struct {
	watches []*watch
	streams map[int]*stream // by the Seq of the run that opened them
	threads map[string]*thread
	order   []*stream
}

func watchAll(c *rules.Checker) rules.Observer {
	o := &observer{streams: map[int]*stream{}, threads: map[string]*thread{}}
	for _, r := range list() {
		if w := c.Watch(r.Rule); w != nil {
			o.watches = append(o.watches, &watch{w, r})
		}
	}
	return o
}

// Observe judges one entry.
func (o *observer) Observe(e transcript.Entry) {
	if e.Source == transcript.Editor && e.Kind != transcript.Written {
		o.open(e)
		return
	}
	if t := o.threads[e.Session]; t != nil && e.Kind == transcript.ModelAnswer {
		for step := range e.JSON().Get("steps").Items() {
			if strings.HasPrefix(step.Str(), "tool:") {
				t.called = e.Seq
			}
		}
	}
	if e.Source != transcript.Agent {
		return
	}
	s := o.streams[e.Ref]
	if s == nil { // a recording of events alone
		s = o.begin(e.Ref, wire.Value{}, e.Session)
	}
	ev := &event{Entry: e, v: e.JSON(), kind: aguiframe.Event(e)}
	ev.owner = ev.v.Get("subagentRunId").Str()
	if ev.id = ev.v.Get("messageId").Str(); ev.id == "" {
		ev.id = ev.v.Get("toolCallId").Str()
	}
	if len(ev.kind) > 9 && ev.kind[:9] == "TOOL_CALL" {
		ev.id = ev.v.Get("toolCallId").Str()
	}
	s.closeChunks(ev)
	for _, w := range o.watches {
		if w.rule.see != nil {
			w.rule.see(w, s, ev)
		}
	}
	s.fold(ev)
}

// open begins the stream that a post opens. Its input is kept: it is small beside what
// comes of it.
func (o *observer) open(e transcript.Entry) {
	input, err := wire.Parse(append([]byte(nil), e.Raw...))
	if err != nil {
		input = wire.Value{}
	}
	o.begin(e.Seq, input, e.Session)
}

func (o *observer) begin(ref int, input wire.Value, session string) *stream {
	t := o.threads[session]
	if t == nil {
		t = &thread{opened: map[string]int{}}
		o.threads[session] = t
	}
	s := newStream(ref, input, session, t)
	s.others = o.threads
	o.streams[ref] = s
	o.order = append(o.order, s)
	return s
}

// Finish judges what only the end can show.
func (o *observer) Finish(rules.End) {
	for _, s := range o.order {
		for _, w := range o.watches {
			if w.rule.ends != nil {
				w.rule.ends(w, s)
			}
		}
	}
}
