package schedules

import (
	"bytes"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Action is something an editor, a user or the model does at a point.
type Action struct {
	Name string

	rank    int
	needs   string // a capability of the agent
	answers bool   // it is an answer to a permission: nothing else is held
	free    bool   // the model is not held
	whole   bool   // it shapes the whole connection, and so needs it open
	sticky  bool   // it leaves a permit line behind
	at      func(Point) bool
	before  func(*builder)                  // right before the prompt
	model   func(*builder) fakellm.TurnNode // what the model says instead
	permits string                          // how the permission is held open
	write   func(b *builder)                // the act and what must follow
}

func (a Action) permit() string {
	if a.permits == "" {
		return "hold"
	}
	return a.permits
}

// kind is the kind of act: all that cancels is one.
func (a Action) kind() string {
	for _, kind := range []string{"cancel", "load", "close", "second prompt", "new session"} {
		if strings.Contains(a.Name, kind) {
			return kind
		}
	}
	return a.Name
}

func anywhere(Point) bool { return true }

// letGo are the points from which the turn can be let come to its end.
func letGo(p Point) bool { return p.kind != atTerminal && !p.many }

func kinds(list ...pointKind) func(Point) bool {
	return func(p Point) bool { return slices.Contains(list, p.kind) }
}

// inTurn are the points at which the turn is surely open.
func inTurn(p Point) bool { return p.open() }

// actions lists everything that can be done, the likeliest to hurt first.
func actions(second bool) []Action {
	all := []Action{
		{Name: "cancel", at: anywhere, write: func(b *builder) { b.key("cancel"); b.cancelled() }},
		{Name: "cancel twice", rank: 1, at: anywhere, write: func(b *builder) {
			b.key("cancel")
			b.key("cancel")
			b.cancelled()
		}},
		{Name: "$/cancel_request", rank: 1, write: cancelRequest,
			at: func(p Point) bool { return p.kind < atEnd && p.kind != atPermission && letGo(p) }},
		{Name: "close", rank: 1, needs: "close", at: anywhere, write: closes},
		{Name: "load", rank: 0, needs: "load", at: letGo, write: loads},
		{Name: "second prompt", rank: 1, at: func(p Point) bool { return p.kind <= atEnd && letGo(p) }, write: secondPrompt},
		{Name: "kill and load", rank: 1, needs: "load", at: anywhere, write: killAndLoad},
		{Name: "end of input", rank: 1, at: anywhere, write: endOfInput},
		{Name: "new session", rank: 2, at: letGo, write: newSession},
		{Name: "turn in another session", rank: 2, at: func(p Point) bool { return letGo(p) && p.kind != atWrite },
			write: beside},
		{Name: "slow reader", rank: 3, at: kinds(atOnce, atFrame, atGate, atIdle), write: func(b *builder) {
			b.key("stall 150ms")
			b.natural()
		}},
		{Name: "model disconnect", rank: 3, at: kinds(atGate), free: true, write: func(b *builder) { b.hangUp() },
			model: func(b *builder) fakellm.TurnNode {
				return b.model.CutAt(*b.point.hold, fakellm.NewStep("fail", "{disconnect: now}"))
			}},
		{Name: "nothing", rank: 1, at: kinds(atSecond, atIdle), write: func(b *builder) { b.natural() }},
		{Name: "split writes", rank: 3, at: kinds(atOnce), whole: true,
			before: func(b *builder) { b.key("write-shape split=7") }, write: func(b *builder) { b.natural() }},
		{Name: "bytewise writes", rank: 4, at: kinds(atOnce), whole: true,
			before: func(b *builder) { b.key("write-shape bytewise") },
			write:  func(b *builder) { b.key("cancel"); b.cancelled() }},
		{Name: "second prompt + cancel", rank: 1, at: inTurn, write: func(b *builder) { promptThenCancel(b) }},
		{Name: "load + cancel", rank: 2, needs: "load", write: loadThenCancel,
			at: func(p Point) bool { return p.open() && p.kind != atWrite && p.kind != atSecond }},
		{Name: "new session + cancel", rank: 3, at: func(p Point) bool { return p.open() && p.kind != atWrite },
			write: newThenCancel},
		{Name: "cancel + close", rank: 3, needs: "close", at: inTurn, write: cancelThenClose},
		{Name: "cancel + load", rank: 3, needs: "load", at: func(p Point) bool { return p.open() && p.kind != atWrite },
			write: cancelThenLoad},
		{Name: "resume", rank: 0, needs: "resume", at: kinds(atIdle, atLoaded), write: resumes},
		{Name: "delete", rank: 0, needs: "delete", at: kinds(atIdle), write: deletes},
		{Name: "unknown session", rank: 0, at: kinds(atIdle), write: unknownSession},
	}
	if second {
		all = append(all, secondActions()...)
	}
	return append(all, answers()...)
}

// cancelled is what must follow a cancel.
func (b *builder) cancelled() {
	b.written()
	b.replies()
	switch {
	case b.point.kind == atIdle, b.point.kind == atLoaded:
		b.check("CANCEL-009", "idle-cancel-does-nothing")
	case b.point.open():
		if b.probes["clings"] {
			b.check("CANCEL-003", "lets-go-of-the-model")
			b.add("await model aborted")
		}
		b.check("CANCEL-001", "ends-as-cancelled")
		b.ends(b.stopped())
	default: // the turn may end before the cancel reaches it
		b.check("CANCEL-001", "ends")
		b.ends(b.seen.anyEnd())
	}
	if b.point.kind == atPermission && b.asking {
		b.untouched(b.point.files...)
	}
	b.again("", "CANCEL-011")
}

// natural lets the turn come to its own end and compares it with the baseline.
func (b *builder) natural() {
	b.finish()
	if b.point.kind != atIdle && b.point.kind != atLoaded {
		b.check("PROMPT-003", "ends-as-before")
		b.ends(b.seen.end())
	}
	if b.seen.text != "" && !strings.ContainsAny(b.seen.text, "$/") {
		b.check("PROMPT-015", "says-the-same")
		b.add("text ~ %s", script.Quote("^"+literal(b.seen.text)+"$"))
	}
	text := strings.Trim(b.otherText().Raw(), "'.")
	if b.point.kind == atSecond && !bytes.Contains(b.base.Text(), []byte(text)) {
		b.check("SESSION-020", "sessions-are-apart")
		b.add("! model saw text~%s", script.Quote(literal(text)))
	}
	b.again("", "PROMPT-014")
}

func (b *builder) hangUp() {
	b.check("", "ends")
	b.ends("any|error")
	b.again("", "")
}

// literal is a regular expression that only matches the text.
func literal(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^`, r) {
			b.WriteByte('\\')
		}
		if r == '\n' {
			b.WriteString(`\n`)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cancelRequest takes the prompt back by its id. An agent may ignore that, so what
// holds the turn up is let go; with which error it may end is for RCANCEL-OWN.
func cancelRequest(b *builder) {
	b.key("cancel-request P")
	b.check("RCANCEL-003", "answers-the-prompt")
	b.finish()
	b.ends("any|error")
	b.again("", "CANCEL-011")
}

func closes(b *builder) {
	b.key("session close %s wait=no as C", b.target.main)
	b.written()
	b.replies()
	switch {
	case b.point.kind == atIdle, b.point.kind == atLoaded:
		b.check("CLOSE-004", "closes")
		b.add("await response C result?")
	default:
		how := "cancelled"
		switch {
		case b.untaken():
			how = "cancelled|error" // requests may be taken up in any order
		case b.base.second && b.point.open():
			how = b.stopped()
		case !b.point.open():
			how = b.seen.anyEnd()
		}
		b.check("CLOSE-002", "ends-as-cancelled")
		b.add("await turn %s", how)
		b.add("await response C result?")
	}
	b.closed()
}

// untaken reports whether nothing shows that the agent has taken up the prompt yet.
func (b *builder) untaken() bool {
	p := b.point
	return p.kind == atWrite || p.kind == atOnce || p.kind == atSecond && p.merge == nil
}

// closed asks for what holds after a close: the agent works in a new session,
// and is silent in the old one.
func (b *builder) closed() {
	b.fresh("CLOSE-003")
	b.check("CLOSE-006", "silent-after-close")
	b.add("! saw update session=%s in=run after response C", b.target.main)
}

// fresh is again in a new session, for what ends the old one.
func (b *builder) fresh(requirement string) {
	b.add("session new fresh")
	b.again("fresh", requirement)
}

func loads(b *builder) {
	switch {
	case b.point.kind != atIdle && b.point.kind != atLoaded:
		b.key("session load %s wait=no as L", b.target.main)
		b.finish()
		b.check("", "both-are-answered")
		b.add("await response L")
		b.add("await turn %s", b.seen.anyEnd())
		b.again("", "LOAD-007")
		return
	case b.seen.works:
		b.loadsAtWork()
		return
	}
	b.check("LOAD-003", "loads")
	b.key("session load %s as L", b.target.main)
	b.add("await response L result?")
	b.sameAsBefore()
	b.check("LOAD-005", "same-twice")
	b.key("session load %s as M", b.target.main)
	b.add("await response M result?")
	b.add("same-history L M")
	b.again("", "LOAD-007")
	b.remembers()
	b.check("LOAD-011", "no-such-session")
	b.add("session load ghost id=no-such-session as G")
	b.add("await response G code?")
}

// loadsAtWork loads a session that may be at work in the background. Nothing says whether
// an agent must load it then: it answers either way, and works on.
func (b *builder) loadsAtWork() {
	b.key("session load %s as L", b.target.main)
	b.check("", "is-answered")
	b.add("await response L")
	b.again("", "LOAD-007")
}

// sameAsBefore asks that a load tells the conversation as it was before. What is told
// of a turn that was refused or cut short is open.
func (b *builder) sameAsBefore() {
	if b.seen.refused {
		return
	}
	if b.point.kind == atLoaded {
		b.check("LOAD-005", "same-as-first")
		b.add("same-history FIRST L")
		return
	}
	b.check("LOAD-003", "same-as-before")
	b.add("same-history live L")
}

// remembers asks that the model is still told of the swept turn, if it is part of
// the conversation: a refused one is not (PROMPT-026).
func (b *builder) remembers() {
	if strings.ContainsAny(b.target.text.String(), "$@") || b.seen.stop != "end_turn" {
		return
	}
	b.check("LOAD-007", "remembers")
	b.add("model saw text~%s", script.Quote(literal(b.target.text.Raw())))
}

func secondPrompt(b *builder) {
	b.second()
	b.finish()
	if b.probes["swallowed"] {
		b.key("await response TWO stopReason=end_turn") // who refuses it need not work on it
		b.check("", "second-prompt-is-worked-on")
		b.add("model saw text~%s", script.Quote("And another thing"))
	}
	b.bothAnswered("")
}

// bothAnswered asks for the answers to two prompts, and for one more turn.
func (b *builder) bothAnswered(requirement string) {
	b.check("PROMPT-018", "both-are-answered")
	b.add("await response P")
	if b.base.second {
		b.settled(requirement)
		return
	}
	b.add("await response TWO")
	b.again("", requirement)
}

func (b *builder) second() {
	b.prompt(b.mainName(), script.Quote("And another thing."), nil, "TWO", says("Noted."))
	b.keepLast()
}

func promptThenCancel(b *builder) {
	b.second()
	b.key("cancel %s", b.target.main)
	b.written()
	b.replies()
	b.bothAnswered("CANCEL-011")
}

func loadThenCancel(b *builder) {
	b.key("session load %s wait=no as L", b.target.main)
	b.key("await response L")
	b.key("cancel")
	b.cancelled()
}

func newThenCancel(b *builder) {
	b.key("session new yet_another")
	b.key("cancel %s", b.target.main)
	b.replies()
	b.check("CANCEL-001", "ends-as-cancelled")
	b.ends(b.stopped())
	b.again(b.target.main, "CANCEL-011")
}

func cancelThenClose(b *builder) {
	b.key("cancel")
	b.key("session close %s wait=no as C", b.target.main)
	b.written()
	b.replies()
	b.check("CLOSE-002", "ends-as-cancelled")
	how := b.stopped()
	if b.untaken() {
		how = "cancelled|error"
	}
	b.add("await turn %s", how)
	b.add("await response C result?")
	b.closed()
}

func cancelThenLoad(b *builder) {
	b.key("cancel")
	b.replies()
	b.check("CANCEL-001", "ends-as-cancelled")
	b.ends(b.stopped())
	if b.seen.works {
		b.loadsAtWork()
		return
	}
	b.check("LOAD-003", "loads")
	b.key("session load %s as L", b.target.main)
	b.add("await response L result?")
	b.check("LOAD-005", "same-twice")
	b.key("session load %s as M", b.target.main)
	b.add("await response M result?")
	b.add("same-history L M")
	b.again("", "LOAD-007")
}

func killAndLoad(b *builder) {
	b.written()
	b.key("kill")
	b.restart()
	b.check("LOAD-009", "loads")
	b.key("session load %s as L", b.target.main)
	b.add("await response L result?")
	if b.point.kind == atIdle || b.point.kind == atLoaded {
		b.sameAsBefore()
	} else if b.point.kind != atWrite && b.point.kind != atOnce && b.point.kind != atSecond {
		// Nothing says that a turn cut short must be replayed; but losing what
		// the user had said and seen answered hurts.
		b.check("", "keeps-what-was-said")
		b.add("saw user_message in=run after sent session/load")
	}
	if b.point.kind == atSecond {
		b.turnless = true // the other session's turn died with the process
	}
	b.again("", "LOAD-007")
}

func endOfInput(b *builder) {
	b.written()
	b.key("close-stdin")
	b.check("STDIO-007", "exits")
	b.add("await exit")
}

func newSession(b *builder) {
	b.key("session new yet_another wait=no as N")
	b.written()
	b.check("PROMPT-019", "opens-beside-the-turn")
	b.add("await response N result?")
	b.finish()
	if b.point.kind != atIdle && b.point.kind != atLoaded {
		b.check("PROMPT-003", "ends-as-before")
		b.ends(b.seen.end())
	}
	b.again(b.target.main, "")
}

func resumes(b *builder) {
	b.check("RESUME-004", "resumes")
	b.key("session resume %s as R", b.target.main)
	b.add("await response R result?")
	b.again("", "RESUME-004")
	b.remembers()
}

func deletes(b *builder) {
	b.check("DELETE-002", "deletes")
	b.key("session delete %s as D", b.target.main)
	b.add("await response D result?")
	if b.seen.able["list"] {
		b.add("session list")
	}
	b.fresh("")
}

func unknownSession(b *builder) {
	b.check("SESSION-023", "unknown-session-is-refused")
	b.key("request session/prompt %s as U",
		script.Quote(`{"sessionId": "no-such-session", "prompt": [{"type": "text", "text": "Anyone there?"}]}`))
	b.add("await response U code?")
	b.again("", "")
}
