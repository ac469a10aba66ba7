// Package invariants contains the rules of ACP and the registry of its requirements. All rules that check one
// transcript share one state of the protocol, the world. A rule sees each entry together with the world before that
// entry. A rule lists the protocol versions to which it applies, and its differences between them.
package invariants

import (
	"embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// files has the texts of the rules. rules.txt holds the rules and their points, shape.txt the types that SHAPE
// checks, requirements.txt the registry, bindings.yaml the tests of each requirement, and examples the examples of
// the rules. v2/kept.txt names the version 1 requirements that hold unchanged in version 2.
//
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
//	model KIND SESSION DETAILS       something the fake model did, or with note the harness
//	wait D, written, stdin-closed, exit [STATUS], cut off
//	also RULE/POINT…                 what other rules find
//
//go:embed rules.txt shape.txt requirements.txt bindings.yaml prose.yaml aliases.txt examples/*.txtar v2
var files embed.FS

func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// V1 returns the rules of version 1. Rules about agents come first, beginning with those that real agents break most
// often. Rules that compare transcripts or need a probe follow, then rules about clients.
func V1() *rules.Set { return v1() }

// V2 returns the rules of version 2. They ignore a connection that negotiated another version.
func V2() *rules.Set { return v2() }

var (
	v1 = sync.OnceValue(func() *rules.Set {
		return set(version1(), rules.Definition{Text: file("rules.txt"),
			Requirements: file("requirements.txt"), Bindings: []byte(file("bindings.yaml")),
			Prose: []byte(file("prose.yaml")), Folder: "examples", Severities: severities()})
	})
	v2 = sync.OnceValue(func() *rules.Set {
		return set(version2(), rules.Definition{Text: file("v2/rules.txt"),
			Requirements: file("v2/requirements.txt") + requirements(Kept()),
			Bindings:     []byte(file("v2/bindings.yaml")), Folder: "v2/examples", Aliases: file("aliases.txt"),
			Severities: map[string]rules.Severity{"v1": {}, "pedantic": {Stricter: true}}})
	})
)

// set builds the rules of a version. d has the texts of that version.
func set(v *version, d rules.Definition) *rules.Set {
	d.Examples = files
	d.Watch = func(c *rules.Checker) rules.Observer { return watchAll(v, c) }
	// Every agent under test uses stdio, and the run chooses which client capabilities to leave out.
	d.Everywhere = func(condition string) bool {
		return condition == "transport:stdio" || strings.HasPrefix(condition, "!clientCapabilities")
	}
	return rules.Must(d)
}

// Kept returns the ids of the version 1 requirements that hold unchanged in version 2.
func Kept() (ids []string) {
	for line := range strings.Lines(file("v2/kept.txt")) {
		if !strings.HasPrefix(line, "#") {
			ids = append(ids, strings.Fields(line)...)
		}
	}
	return ids
}

// requirements returns the texts of the version 1 requirements with the given ids.
func requirements(ids []string) string {
	var kept strings.Builder
	for block := range strings.SplitSeq(file("requirements.txt"), "\n\n") {
		if id, _, _ := strings.Cut(block, " "); slices.Contains(ids, id) {
			kept.WriteString("\n" + strings.TrimSpace(block) + "\n")
		}
	}
	return kept.String()
}

// machines maps the id of a rule to the function that registers its listeners.
var machines = map[string]func(*watch){
	"ASK-PROMISED": askPromised, "AUTH-CODE": authCode, "AUTH-METHODS": authMethods, "BACK-PROMISED": backPromised,
	"BUSY-PROMISED": busyPromised, "C-ANSWER": clientAnswer, "C-CURSOR": clientCursor, "C-CWD": clientCwd,
	"C-ELICIT-CODE": clientElicitCode, "C-GATE": clientGate, "C-INIT-FIRST": clientInitFirst,
	"C-MODE-LISTED": clientModeListed, "C-PERM-CANCEL": clientPermCancel, "C-PERM-OFFERED": clientPermOffered,
	"C-SHAPE": clientShape, "C-SUBAGENT": clientSubagents, "C-SYSTEM": clientSystem, "C-TERM-UTF8": clientTermUTF8,
	"CANCEL-CAUSE": cancelCause, "CANCEL-REASON": cancelReason, "CAP-GATE": capGate, "CLOSE-SETTLES": closeSettles,
	"COMPACTION": compactions, "CONFIG-COMPLETE": configComplete, "CONTENT-DATA": contentData, "CRASH": crashed,
	"DELETE-GONE": deleteGone, "EFFECTS": effects, "ELICIT-CARE": elicitCare, "ELICIT-SCOPE": elicitScope,
	"EMPTY-TURN": emptyTurn, "ERR-FORM": errForm, "INFO-KEPT": infoKept, "INIT-ECHO": initEcho,
	"LATE-CONTENT": lateContent,
	"LIST-SANE":    listSane, "LOAD-STABLE": loadStable, "LOAD-WHOLE": loadWhole, "LOAD-WINDOW": loadWindow,
	"MCP-SERVERS": mcpServers,
	"MODE-SYNC":   modeSync, "MODEL-CALLS": modelCalls, "MODEL-CONTEXT": modelContext, "MODEL-STOP": modelStop,
	"MODEL-TEXT": modelText, "MSG-RUNS": msgRuns, "NOTICE": notices, "NOTIFY-SILENT": notifySilent,
	"ONE-RESPONSE": oneResponse, "PATH-ABS": pathAbs, "PERM-GUARD": permGuard, "PLAN-FULL": planFull,
	"PROMPT-ACCEPTED": promptAccepted, "RCANCEL-OWN": rcancelOwn, "RESUME-SILENT": resumeSilent,
	"ROOT-KEYS": rootKeys, "SESSION-DISTINCT": sessionDistinct, "SESSION-KNOWN-FIRST": sessionKnownFirst,
	"SETTINGS": settingsHold, "SHAPE": shape, "STATUS-FORWARD": statusForward, "STDOUT-CLEAN": stdoutClean,
	"SUBAGENT": subagents, "SYSTEM-PROMPT": systemPrompts, "TERM-LIFE": termLife, "TERMINAL-REF": terminalRef,
	"TEXT-WHOLE": textWhole, "TOOL-ANNOUNCED": toolAnnounced, "TOOL-CLOSED": toolClosed, "TOOL-RESEND": toolResend,
	"USAGE-SANE": usageSane, "USER-ECHO": userEcho, "V2-BACKGROUND": background, "V2-CANCEL": cancels,
	"V2-CLIENT-CANCEL": clientCancel, "V2-CLIENT-IDS": clientIDs, "V2-COMMANDS": commands, "V2-ECHO": echo,
	"V2-ERROR": errorData, "V2-GREETING": greeting, "V2-REMOVED": removed, "V2-REPLAY": replayEnds,
	"V2-RESUME": replays, "V2-RETRY": retries, "V2-STATES": states, "V2-TERMINAL": terminals,
	"WIRE-VALID": wireValid, "WORKS-AGAIN": worksAgain,
}

// SeverityNames returns the names of the sets of severities, sorted.
func SeverityNames() []string { return slices.Sorted(maps.Keys(severities())) }

// severities has the named sets of severities. v1 follows the specification alone, and pedantic raises each class by
// one. The others are for clients with known problems: Zed drops updates before the response that names their
// session, JetBrains IDEs hang on them, and agent-shell for Emacs reports content outside any turn as a bug.
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

// watcher has the state that the rules of one checker share.
type watcher struct {
	*rules.Checker
	rules.Desk[topic, *event]
	version *version
	state   *world
	event   event
	// shapes says for each side whether some rule needs the shape problems of that side's frames.
	shapes   [2]bool
	problems []schema.Problem
	complain func(schema.Problem)
}

func watchAll(v *version, c *rules.Checker) rules.Observer {
	all := &watcher{Checker: c, version: v, state: newWorld(v)}
	all.complain = func(p schema.Problem) { all.problems = append(all.problems, p) }
	rules.Begin(c, machines, func(w *rules.Watch) *watch { return &watch{w, all} })
	return all
}

// Observe passes one entry to the rules, then updates the world with it.
func (w *watcher) Observe(e transcript.Entry) {
	ev := &w.event
	w.state.read(e, ev)
	if e.Frame() && e.Kind != transcript.Malformed {
		w.checkShape(e, ev)
	}
	if !w.version.states || ev.conn == nil || !ev.conn.foreign {
		w.Tell(ev.topic, ev)
	}
	w.state.fold(ev)
	*ev = event{}
}

// Finish runs the checks that need the end of the transcript.
func (w *watcher) Finish(end rules.End) { w.Desk.Finish(end) }

// checkShape finds the shape problems of a frame once for all rules. An agent that answers initialize with another
// version follows that version afterwards, so checkShape skips the frames of such an agent.
func (w *watcher) checkShape(e transcript.Entry, ev *event) {
	side, towards := rules.OfAgent, schema.ToEditor
	if e.Source == transcript.Editor {
		side, towards = rules.OfClient, schema.ToAgent
	}
	if w.shapes[side] && (side == rules.OfClient || !ev.conn.foreign) {
		w.problems = w.problems[:0]
		w.version.schema.Check(towards, ev.frame, e.Method, w.complain)
		ev.problems = w.problems
	}
}

// watch is what a rule uses to listen to entries and to report findings.
type watch struct {
	*rules.Watch
	*watcher
}

// inSession calls judge for entries that belong to a session.
func (w *watch) inSession(judge func(*event, *session), about ...topic) {
	w.On(func(ev *event) {
		if ev.session != nil {
			judge(ev, ev.session)
		}
	}, about...)
}

// inTurn calls judge for entries in a turn, including the answer that ends the turn.
func (w *watch) inTurn(judge func(*event, *turn), about ...topic) {
	w.On(func(ev *event) {
		if ev.turn != nil {
			judge(ev, ev.turn)
		}
	}, about...)
}

// find reports that the entry breaks a point. object is the subject of the finding: each point is reported once per
// object. because has the Seqs of earlier entries that led to the fault.
func (w *watch) find(point string, ev *event, object string, because []int, format string, args ...any) *rules.Finding {
	return w.Report(point, ev.Conn, ev.Session, object, append(because, ev.Seq), format, args...)
}

// judge counts one check of the point. If broken is true, it also reports the entry and returns the finding; otherwise
// it returns nil.
func (w *watch) judge(point string, broken bool, ev *event, object string, because []int, format string,
	args ...any) *rules.Finding {
	if w.Saw(point); !broken {
		return nil
	}
	return w.find(point, ev, object, because, format, args...)
}
