package schedules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// builder writes the scenario of a schedule.
type builder struct {
	schedule
	lines []*script.Line
	keep  map[string]bool // the lines without which it would be another schedule
	turns []fakellm.TurnNode
	held  bool // the model is held at the gate
	slugs map[string]int
}

// write returns the scenario of a schedule, and the lines that make it what it is.
func (s schedule) write() (sweep.Archive, map[string]bool) {
	b := &builder{schedule: s, keep: map[string]bool{}, slugs: map[string]int{}}
	b.add("protocol ag-ui")
	title := fmt.Sprintf("%s: %s of %s.", s.action.name, s.point.name, s.target.words[0])
	b.lines = append(b.lines, script.NewComment(title))
	b.add("golden off")
	b.lead()
	s.action.write(b)
	a := sweep.Archive{Lines: b.lines, Files: slices.Clone(s.base.Files)}
	a.Model = (&fakellm.Document{Rest: s.base.spoken.Rest, Turns: b.turns}).Format()
	return a, b.keep
}

// add adds a line, as script.New makes it; key one that must stay.
func (b *builder) add(template string, args ...any) {
	b.lines = append(b.lines, script.New(template, args...))
}

func (b *builder) key(template string, args ...any) {
	b.add(template, args...)
	b.keep[b.lines[len(b.lines)-1].String()] = true
}

// as names the line added last.
func (b *builder) as(name string) {
	l := b.lines[len(b.lines)-1]
	delete(b.keep, l.String())
	l.As = script.Text(name)
	b.keep[l.String()] = true
}

// check opens a check. Slugs are made distinct.
func (b *builder) check(requirement, name string) {
	b.slugs[name]++
	if n := b.slugs[name]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	var of script.Word
	if requirement != "" {
		of = script.Text(requirement)
	}
	b.add("check %s %s", of, name)
}

// own is a text of the sweep that the scenario does not have already: the model's turns are
// found by their texts.
func (b *builder) own(text string) script.Word {
	for b.base.says(script.Quote(text).String()) {
		text = "Now: " + text
	}
	return script.Quote(text)
}

// run posts a run of the sweep, and says what the model says to it.
func (b *builder) run(thread, text string, says fakellm.TurnNode) {
	var of script.Word
	if thread != "" {
		of = script.Text(thread)
	}
	b.key("run %s %s", of, b.own(text))
	b.turns = append(b.turns, says)
}

// named is the thread of the target as a line has to name it where there are others.
func (b *builder) named() script.Word {
	if b.target.opened || b.several() {
		return script.Text(b.target.thread)
	}
	return script.Word{}
}

// session is the thread of the target as a pattern has to name it where there are others.
func (b *builder) session() script.Word {
	if name := b.named(); name.Exists() {
		return script.Option("session", b.target.thread)
	}
	return script.Word{}
}

// several reports whether the schedule has another thread beside the target's.
func (b *builder) several() bool { return b.point.kind == atOther || b.action.beside }

// owes reports whether a run that has come to its own end leaves an answer to be given.
func (b *builder) owes() bool { return b.seen.end == "interrupt" || b.seen.calls > 0 }

// lead writes everything up to the point.
func (b *builder) lead() {
	p, t := b.point, b.target
	b.lines = append(b.lines, b.base.before(t)...)
	b.turns = slices.Clone(b.base.spoken.Turns[:t.turn])
	if b.several() && !t.opened {
		b.key("thread %s", t.thread)
	}
	if p.kind == atOther {
		b.key("thread the_other")
		b.run("the_other", "Keep talking elsewhere.", fakellm.NewTurn(fakellm.NewReply(fakellm.Text("Talking"),
			sweep.Gate("elsewhere"), fakellm.Text(" elsewhere."))))
		b.key("await gate elsewhere")
	}
	model := sweep.Plain(b.base.spoken.Turns[t.turn])
	switch {
	case b.action.model != nil:
		model = b.action.model(model, *p.hold)
	case p.hold != nil:
		model = model.With(*p.hold, sweep.Gate(sweep.Hold))
		b.held = true
	}
	b.key("run %s %s", b.named(), t.words)
	b.as("P")
	b.turns = append(b.turns, model)
	if b.action.model == nil {
		b.reach()
	}
}

// reach waits until the point has come.
func (b *builder) reach() {
	p := b.point
	var all []*script.Line
	for range p.times {
		all = append(all, script.New("await event %s %s", p.event, b.session()))
	}
	switch {
	case p.kind == atInterrupt:
		b.key("await event RUN_FINISHED %s", b.session())
		b.as("ASKED")
		b.key("await turn interrupt %s", b.session())
		return
	case p.kind == atPending, p.kind == atIdle:
		b.key("await turn %s %s", b.seen.end, b.session())
		return
	case p.kind == atEnd:
		b.key("await gate %s", sweep.Hold)
		b.key("release %s", sweep.Hold)
		b.held = false
		return
	case p.gated:
		all = append(all, script.New("await gate %s", sweep.Hold))
	}
	for _, l := range all {
		b.keep[l.String()] = true
	}
	if len(all) > 1 {
		b.key("group {")
		b.lines[len(b.lines)-1].With(all...)
		return
	}
	b.lines = append(b.lines, all...)
}

// finish lets go of what holds the run up.
func (b *builder) finish() {
	if b.held {
		b.add("release %s", sweep.Hold)
		b.held = false
	}
}

// ends awaits the end of a run of the target's thread.
func (b *builder) ends(how string) {
	b.add("await turn %s %s", how, b.session())
}

// both awaits the ends of the target's run and of the one that was posted beside it.
func (b *builder) both(requirement string) {
	b.check(requirement, "both-end")
	b.add("await end P")
	b.add("await end TWO")
}

// half reports whether the model is held behind a call of the same reply: a run that ends
// there may leave the call in the thread.
func (b *builder) half() bool {
	p := b.point
	if p.hold == nil {
		return true
	}
	steps := b.seen.turn.Replies[p.hold.Reply].Steps
	return slices.ContainsFunc(steps[:min(p.hold.Step, len(steps))],
		func(s fakellm.StepNode) bool { return s.Kind == "tool" })
}

// again asks for one more run of the thread, which must work, and ends the other thread's.
func (b *builder) again(requirement string) {
	b.check(requirement, "works-again")
	b.run(b.named().Raw(), "Are you still there?", sweep.Says("Still here."))
	b.ends("finished")
	if b.named().Exists() {
		b.add("saw said session=%s delta~%s", b.target.thread, script.Quote("Still here"))
	} else {
		b.add("text ~ %s", script.Quote("Still here"))
	}
	b.elsewhere()
}

// lives asks for a run of a new thread, which must work, where what became of the target's
// need not be over yet: a run of that may be refused.
func (b *builder) lives(requirement string) {
	b.check(requirement, "answers-again")
	b.run(b.named().Raw(), "Are you still there?", sweep.Says("Still here."))
	b.ends("any|error")
	b.check(cmp.Or(requirement, "AGUI-ABRT-002"), "lives")
	b.add("thread new_one")
	b.run("new_one", "And you?", sweep.Says("Here, too."))
	b.add("await turn finished session=new_one")
	b.elsewhere()
}

// elsewhere ends the run of the other thread, which nothing may have touched.
func (b *builder) elsewhere() {
	if b.point.kind != atOther {
		return
	}
	b.check("AGUI-ABRT-002", "other-thread-goes-on")
	b.add("release elsewhere")
	b.add("await turn finished session=the_other")
	b.add("saw said session=the_other in=run delta~%s", script.Quote("elsewhere"))
}

// untouched asks that files are not there.
func (b *builder) untouched(requirement string, files []string) {
	if len(files) == 0 {
		return
	}
	b.check(requirement, "no-effect")
	for _, f := range files {
		b.add("! exists %s", f)
	}
}
