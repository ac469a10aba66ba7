// Package second holds the rules of ACP version 2, and the registry of its requirements.
// All rules of one transcript share one fold of the protocol's state: each sees an entry
// with the state before it. A connection on which another version was negotiated is not
// judged.
package second

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

//go:embed requirements.txt
var requirements string

//go:embed bindings.yaml
var bindings []byte

//go:embed kept.txt
var kept string

//go:embed examples
var examples embed.FS

// Kept are the requirements of version 1 that hold in version 2 as they are.
func Kept() (ids []string) {
	for line := range strings.Lines(kept) {
		if !strings.HasPrefix(line, "#") {
			ids = append(ids, strings.Fields(line)...)
		}
	}
	return ids
}

// Rules returns the rules of version 2.
func Rules() *rules.Set { return set() }

var set = sync.OnceValue(func() *rules.Set {
	var all []rules.Rule
	for _, r := range list() {
		all = append(all, r.Rule)
	}
	files, err := fs.Sub(examples, "examples")
	if err != nil {
		panic(err) // the name is valid
	}
	s, err := rules.New(rules.Definition{Rules: all, Watch: watchAll, Bindings: bindings, Examples: files,
		Requirements: requirements + invariants.Requirements(Kept()),
		Everywhere: func(condition string) bool {
			return condition == "transport:stdio" || strings.HasPrefix(condition, "!clientCapabilities")
		},
		Severities: map[string]rules.Severity{"v1": {}, "pedantic": {Stricter: true}}})
	if err != nil {
		panic("second: an embedded file: " + err.Error())
	}
	return s
})

func list() []*rule {
	return []*rule{
		greeting(), shape(), removed(), requestIDs(), errorData(), states(), cancels(), echo(), replays(), closes(),
		background(),
		terminals(), paths(), commands(), selects(), permissions(), clientShape(), clientIDs(), clientOrder(),
		clientAnswer(), clientPaths(), clientGate(), clientLogin(), clientPermission(), clientCancel(),
	}
}

// rule is one rule: see looks at an entry of a connection, with the state before it, and
// ends and over, if they are set, at a session and at a connection when the transcript ends.
type rule struct {
	rules.Draft
	see  func(w *watch, ev *event)
	ends func(w *watch, s *session)
	over func(w *watch, c *conn, end rules.End)
}

func newRule(id, sentence string) *rule {
	return &rule{Draft: rules.Draft{Rule: rules.Rule{ID: id, Sentence: sentence}, Family: "V2-"}}
}

// watch is one rule that is on, in one transcript.
type watch struct {
	*rules.Watch
	*rules.Checker
	rule *rule
}

// find reports that an entry breaks a point; object is what it is about.
func (w *watch) find(point int, ev *event, object string, because []int, format string, args ...any) {
	w.Report(point, ev.Conn, ev.Session, object, append(because, ev.Seq), format, args...)
}

// event is an entry, taken apart.
type event struct {
	transcript.Entry
	v       wire.Value // the message
	params  wire.Value
	result  wire.Value
	err     wire.Value
	u       wire.Value // of a session/update
	kind    string     // its sessionUpdate
	conn    *conn
	session *session // nil: of none
	asked   *request // of a response: the request
}

func (ev *event) agent() bool  { return ev.Source == transcript.Agent }
func (ev *event) editor() bool { return ev.Source == transcript.Editor }

// answers reports whether it is the agent's answer to a request of this method.
func (ev *event) answers(method string) bool {
	return ev.agent() && ev.Kind == transcript.Response && ev.Method == method
}

// asks reports whether it is a request of the editor.
func (ev *event) asks(method string) bool {
	return ev.editor() && ev.Kind == transcript.Request && ev.Method == method
}

// observer is what the rules of one checker share.
type observer struct {
	watches []*watch
	world   *world
}

func watchAll(c *rules.Checker) rules.Observer {
	o := &observer{world: newWorld()}
	for _, r := range list() {
		if w := c.Watch(r.Rule); w != nil {
			o.watches = append(o.watches, &watch{w, c, r})
		}
	}
	return o
}

// Observe judges one entry.
func (o *observer) Observe(e transcript.Entry) {
	if e.Source == transcript.Process && (e.Kind == transcript.Exited || e.Kind == transcript.StdinClosed) {
		o.world.ended(e)
	}
	if e.Source != transcript.Agent && e.Source != transcript.Editor || !e.Frame() {
		return
	}
	ev := o.world.read(e)
	if !ev.conn.foreign(ev) {
		for _, w := range o.watches {
			if w.rule.see != nil {
				w.rule.see(w, ev)
			}
		}
	}
	o.world.fold(ev)
}

// Finish judges what only the end can show.
func (o *observer) Finish(end rules.End) {
	for _, n := range slices.Sorted(maps.Keys(o.world.conns)) {
		for _, w := range o.watches {
			if c := o.world.conns[n]; w.rule.over != nil && (c.version == 0 || c.version == 2) {
				w.rule.over(w, c, end)
			}
		}
	}
	for _, s := range o.world.order {
		for _, w := range o.watches {
			if w.rule.ends != nil {
				w.rule.ends(w, s)
			}
		}
	}
}

// direction is the way of a frame.
func direction(e transcript.Entry) schema.Direction {
	if e.Source == transcript.Editor {
		return schema.ToAgent
	}
	return schema.ToEditor
}
