// Package invariants holds the rules of ACP version 1, and the registry of its
// requirements. All rules of one transcript share one fold of the protocol's
// state, the world: each sees an entry with the state before it.
package invariants

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

//go:embed requirements.txt
var requirements string

//go:embed bindings.yaml
var bindings []byte

//go:embed prose.yaml
var prose []byte

// A line of an example is a frame of the editor (-->) or of the agent (<--), or
// an event:
//
//	--> ID METHOD [SESSION] PARAMS   a request; without ID a notification
//	<-- ID = RESULT                  a response
//	<-- ID ! CODE "MESSAGE"          an error
//	<-- SESSION KIND UPDATE          a session/update; text stands for a chunk
//	<--| TEXT                        a line as it is; <--\ with Go escapes, <--+ cut off
//	start                            initialize, with all capabilities of both sides
//	session NAME [RESULT]            session/new
//	model KIND SESSION DETAILS       something the fake model did
//	wait D, written, stdin-closed, exit, cut off
//	also RULE/POINT…                 what other rules find
//
//go:embed examples/*.txtar
var examples embed.FS

// Requirements returns the text of the requirements of version 1 with these ids, as the registry
// has it: what another version keeps.
func Requirements(ids []string) string {
	var kept strings.Builder
	for block := range strings.SplitSeq(requirements, "\n\n") {
		if id, _, _ := strings.Cut(block, " "); slices.Contains(ids, id) {
			kept.WriteString("\n" + strings.TrimSpace(block) + "\n")
		}
	}
	return kept.String()
}

// V1 returns the rules of version 1: those about agents in the order of how
// often they are broken in the wild, then those that compare or need a probe to
// have anything to judge, then those about clients.
func V1() *rules.Set { return v1() }

var v1 = sync.OnceValue(func() *rules.Set {
	var all []rules.Rule
	for _, r := range list() {
		all = append(all, r.Rule)
	}
	files, err := fs.Sub(examples, "examples")
	if err != nil {
		panic(err) // the name is valid
	}
	set, err := rules.New(rules.Definition{
		Rules: all, Watch: watchAll, Examples: files,
		Requirements: requirements, Bindings: bindings, Prose: prose,
		// All agents here talk over stdio, and what the client leaves out is
		// ours to choose.
		Everywhere: func(condition string) bool {
			return condition == "transport:stdio" || strings.HasPrefix(condition, "!clientCapabilities")
		},
		Severities: severities(),
	})
	if err != nil {
		panic("invariants: an embedded file: " + err.Error())
	}
	return set
})

func list() []*rule {
	return []*rule{
		lateContent(), stdoutClean(), sessionKnownFirst(), toolClosed(), cancelReason(),
		toolAnnounced(), shape(), configComplete(), modeSync(), loadWindow(),
		resumeSilent(), authCode(), capGate(), pathAbs(), rootKeys(),
		cancelCause(), oneResponse(), toolResend(), userEcho(), statusForward(),
		permGuard(), usageSane(), termLife(), planFull(), msgRuns(),
		listSane(), notifySilent(), initEcho(), terminalRef(), elicitScope(),
		closeSettles(), deleteGone(), rcancelOwn(), authMethods(), errForm(),

		worksAgain(), promptAccepted(), emptyTurn(), sessionDistinct(), textWhole(), loadStable(), loadWhole(), contentData(),
		elicitCare(), modelText(), modelStop(), busyPromised(), askPromised(), backPromised(),

		clientPermCancel(), clientPermOffered(), clientGate(), clientInitFirst(), clientAnswer(),
		clientCwd(), clientModeListed(), clientCursor(), clientElicitCode(), clientTermUTF8(), clientShape(),
	}
}

// SeverityNames returns the names of the sets of severities, sorted.
func SeverityNames() []string { return slices.Sorted(maps.Keys(severities())) }

// severities are the specification and nothing else, one class more of
// everything, and what certain clients suffer from: Zed drops updates before
// the response that names their session, JetBrains IDEs hang on them, and
// agent-shell for Emacs reports content outside any turn as a bug.
func severities() map[string]rules.Severity {
	return map[string]rules.Severity{
		"v1":        {},
		"pedantic":  {Stricter: true},
		"zed":       {Raised: map[string]rules.Class{"SESSION-KNOWN-FIRST/early": rules.Warn}},
		"jetbrains": {Raised: map[string]rules.Class{"SESSION-KNOWN-FIRST/early": rules.Fail}},
		"emacs": {Raised: map[string]rules.Class{
			"LATE-CONTENT/continues-turn":  rules.Fail,
			"LATE-CONTENT/after-turn":      rules.Fail,
			"LATE-CONTENT/agent-initiated": rules.Fail,
		}},
	}
}

// rule is one rule with the state machine that watches for it.
type rule struct {
	rules.Draft
	start func(*watch)
}

// ofAgent begins a rule about the agent, ofClient one about the editor.
func ofAgent(id, sentence string) *rule {
	return &rule{Draft: rules.Draft{Rule: rules.Rule{ID: id, Sentence: sentence}}}
}

func ofClient(id, sentence string) *rule {
	return &rule{Draft: rules.Draft{Rule: rules.Rule{ID: id, Sentence: sentence, Side: rules.OfClient}}}
}

// watching gives the rule its state machine, which is made for each transcript.
func (r *rule) watching(start func(*watch)) *rule {
	r.start = start
	return r
}

// watcher is what the rules of one checker share.
type watcher struct {
	*rules.Checker
	state  *world
	schema *schema.Version
	topics [topics][]func(*event)
	atEnd  []func(rules.End)
	event  event
	// Whether some rule wants to know what is wrong with shapes.
	shapes, clientShapes bool
	problems             []schema.Problem
	complain             func(schema.Problem)
	foreign              map[int]bool // connections on which the agent chose another version
}

func watchAll(c *rules.Checker) rules.Observer {
	all := &watcher{Checker: c, state: newWorld(), schema: schema.V1(), foreign: map[int]bool{}}
	all.complain = func(p schema.Problem) { all.problems = append(all.problems, p) }
	for _, r := range list() {
		if w := c.Watch(r.Rule); w != nil {
			r.start(&watch{w, all, r})
		}
	}
	return all
}

// Observe judges one entry.
func (w *watcher) Observe(e transcript.Entry) {
	ev := &w.event
	w.state.read(e, ev)
	if e.Frame() && e.Kind != transcript.Malformed {
		w.checkShape(e, ev)
	}
	for _, judge := range w.topics[ev.topic] {
		judge(ev)
	}
	w.state.fold(ev)
	*ev = event{}
}

// Finish judges what only the end can show.
func (w *watcher) Finish(end rules.End) {
	for _, judge := range w.atEnd {
		judge(end)
	}
}

// checkShape finds what is wrong with the shape of a frame, once for all rules.
// An agent that answers initialize with another version answers in the form of
// that one, and it is the editor's to leave.
func (w *watcher) checkShape(e transcript.Entry, ev *event) {
	if e.Source == transcript.Agent && e.Kind == transcript.Response && e.Method == "initialize" {
		chosen, whole := ev.result.Get("protocolVersion").Int()
		w.foreign[e.Conn] = whole && chosen > 0 && chosen != int64(w.Config().Version)
	}
	if w.foreign[e.Conn] && e.Source == transcript.Agent {
		return
	}
	towards, wanted := schema.ToEditor, w.shapes
	if e.Source == transcript.Editor {
		towards, wanted = schema.ToAgent, w.clientShapes
	}
	if wanted {
		w.problems = w.problems[:0]
		w.schema.Check(towards, ev.frame, e.Method, w.complain)
		ev.problems = w.problems
	}
}

// watch is what the state machine of one rule holds: what it watches, and how
// it reports.
type watch struct {
	*rules.Watch
	*watcher
	rule *rule
}

// on calls judge for each entry about one of the topics. It sees the world as
// it was before that entry.
func (w *watch) on(judge func(*event), about ...topic) {
	for _, t := range about {
		w.topics[t] = append(w.topics[t], judge)
	}
}

// finish calls judge at the end of the transcript.
func (w *watch) finish(judge func(rules.End)) { w.atEnd = append(w.atEnd, judge) }

// find reports that the entry breaks a point. object is what it is about; the
// same object is reported once. because are earlier entries that matter.
func (w *watch) find(point int, ev *event, object string, because []int, format string, args ...any) *rules.Finding {
	return w.Report(point, ev.Conn, ev.Session, object, append(because, ev.Seq), format, args...)
}
