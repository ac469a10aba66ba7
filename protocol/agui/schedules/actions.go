package schedules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// action is something that a front end, its user or the model does at a point.
type action struct {
	name string
	act  string // the kind of act; "" is the name
	rank int
	// beside says that it needs another thread.
	beside bool
	at     func(point) bool
	model  func(fakellm.TurnNode, fakellm.Place) fakellm.TurnNode // what the model says instead
	write  func(b *builder)                                       // the act and what must follow
}

func during(p point) bool { return p.kind < atIdle }

func within(p point) bool { return p.kind < atEnd }

// alone are the points within a run beside which no other thread has one.
func alone(p point) bool { return within(p) && p.kind != atOther }

func at(kinds ...pointKind) func(point) bool {
	return func(p point) bool { return slices.Contains(kinds, p.kind) }
}

// actions lists everything that can be done, the likeliest to hurt first.
func actions() []action {
	fails := func(step fakellm.StepNode) func(fakellm.TurnNode, fakellm.Place) fakellm.TurnNode {
		return func(t fakellm.TurnNode, at fakellm.Place) fakellm.TurnNode { return t.CutAt(at, step) }
	}
	all := []action{
		{name: "hang-up", act: "hang-up", at: during, write: hangUp},
		{name: "hang-up + run", act: "hang-up", rank: 1, at: within, write: hangUpAndRun},
		{name: "second run", rank: 1, at: during, write: secondRun},
		{name: "second run + hang-up", act: "hang-up", rank: 2, at: within, write: secondRunAndHangUp},
		{name: "run in another thread", rank: 2, beside: true, at: alone, write: runBeside},
		{name: "hang-up in another thread", rank: 2, beside: true, at: alone, write: hangUpBeside},
		{name: "slow reader", rank: 3, at: within, write: func(b *builder) {
			b.key("stall 150ms")
			b.natural()
		}},
		{name: "nothing", rank: 1, at: at(atOther), write: func(b *builder) { b.natural() }},
		{name: "model disconnect", rank: 3, at: at(atGate), model: fails(fakellm.NewStep("fail", "{disconnect: now}")),
			write: modelFails},
	}
	return append(all, answers()...)
}

// stopped is what must follow a hang-up: the run ends for the client, and with it the
// agent's work.
func (b *builder) stopped() {
	if !b.point.open() {
		b.ends("any|error") // the run may have ended first
		return
	}
	if !b.point.gated || b.point.kind == atOther {
		b.ends("hung-up")
		return
	}
	b.check("AGUI-ABRT-001", "lets-go-of-the-model")
	b.add("group {") // either may come first
	b.lines[len(b.lines)-1].With(script.New("await turn hung-up %s", b.session()),
		script.New("await model aborted %s", b.session()))
}

func hangUp(b *builder) {
	b.key("hang-up %s", b.named())
	b.stopped()
	if !b.point.gated || b.point.kind == atOther || b.half() {
		b.lives("AGUI-ABRT-002")
	} else {
		b.again("AGUI-ABRT-002")
	}
	if !b.point.gated {
		return
	}
	var files []string
	for _, f := range b.seen.made {
		call := b.seen.late[f]
		if hold := *b.point.hold; hold.Reply < call.Reply || hold.Reply == call.Reply && hold.Step <= call.Step {
			files = append(files, f)
		}
	}
	b.untouched("AGUI-ABRT-004", files)
}

// second posts another run of the thread.
func (b *builder) second() {
	b.run(b.named().Raw(), "And another thing.", sweep.Says("Noted."))
	b.as("TWO")
}

func hangUpAndRun(b *builder) {
	b.key("hang-up %s", b.named())
	b.second()
	b.both("AGUI-ABRT-002")
	b.lives("AGUI-ABRT-002")
}

// secondRun posts a run while the thread has one: it waits, is refused, or goes on beside.
func secondRun(b *builder) {
	b.second()
	b.finish()
	b.both("AGUI-RUN-016")
	if b.owes() { // which the second run has not answered
		b.elsewhere()
		return
	}
	b.again("AGUI-RUN-016")
}

func secondRunAndHangUp(b *builder) {
	b.second()
	b.key("hang-up %s", b.named())
	b.finish()
	b.both("AGUI-ABRT-002")
	b.lives("AGUI-ABRT-002")
}

func runBeside(b *builder) {
	b.key("thread beside")
	b.run("beside", "What else?", sweep.Says("Nothing."))
	b.check("AGUI-RUN-016", "is-served-beside")
	b.add("await turn finished session=beside")
	b.add("text ~ %s", script.Quote("^Nothing\\.$"))
	b.natural()
}

func hangUpBeside(b *builder) {
	b.key("thread beside")
	b.run("beside", "What else?", fakellm.NewTurn(fakellm.NewReply(sweep.Gate("besides"), fakellm.Text("Nothing."))))
	b.key("await gate besides")
	b.key("hang-up beside")
	b.add("await turn hung-up session=beside")
	b.natural()
}

// natural lets the run come to its own end and compares it with the baseline.
func (b *builder) natural() {
	b.finish()
	b.check("AGUI-RUN-002", "ends-as-before")
	b.ends(b.seen.end)
	if text := b.seen.text; text != "" && len(text) < 400 && !b.named().Exists() && !strings.ContainsAny(text, "$/\n") {
		b.check("AGUI-TXT-008", "says-the-same")
		b.add("text ~ %s", script.Quote("^"+regexp.QuoteMeta(text)+"$"))
	}
	if b.owes() {
		b.elsewhere()
		return
	}
	b.again("AGUI-ABRT-002")
}

func modelFails(b *builder) {
	b.check("AGUI-HTTP-007", "ends")
	b.ends("any|error")
	if b.half() {
		b.lives("AGUI-HTTP-007")
		return
	}
	b.again("AGUI-HTTP-007")
}
