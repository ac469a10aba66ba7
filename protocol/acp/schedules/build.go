package schedules

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// schedule is one thing an editor does at one point of a turn.
type schedule struct {
	base   *base
	target target
	seen   seen
	point  Point
	action Action
	// probes are questions that came up when the schedule first ran: the
	// script asks them too, so that it fails for the same reason.
	probes map[string]bool
}

// own is a prompt of the sweep that the scenario does not have already: the
// model's turns are found by their prompts.
func (s schedule) own(text string) script.Word {
	for {
		w := script.Quote(text)
		if !s.base.prompts(w.String()) && (s.point.with == nil || !s.point.with.base.prompts(w.String())) {
			return w
		}
		text = "Now: " + text
	}
}

// prompts reports whether a line of the scenario has this prompt.
func (b *base) prompts(text string) bool {
	return slices.ContainsFunc(b.Lines, func(l *script.Line) bool { return l.Is("prompt") && plainPrompt(l) == text })
}

// builder writes the scenario of a schedule.
type builder struct {
	schedule
	lines []*script.Line
	// keep are the lines without which it would be another schedule.
	keep   map[string]bool
	turns  []fakellm.TurnNode
	held   bool // the model is held at the gate
	asking bool // a permission is open, named ASK
	asked  bool // a request is open, named REQ
	joined bool // writes are held back
	// turnless says that no turn of the other session runs any more.
	turnless bool
	model    fakellm.TurnNode // of the target, as it is played
	slugs    map[string]int
}

// write returns the scenario of a schedule, and the lines that make it what it
// is.
func (s schedule) write() (a sweep.Archive, keep map[string]bool) {
	b := &builder{schedule: s, keep: map[string]bool{}, slugs: map[string]int{}}
	b.lines = s.base.head(fmt.Sprintf("%s: %s of %s.", s.action.Name, s.point.Name, s.target.text))
	b.add("golden off")
	b.add("tag cancel") // so that it stays open for late frames
	b.lead()
	s.action.write(b)
	a = sweep.Archive{Lines: b.lines, Files: slices.Clone(s.base.Files)}
	if w := s.point.with; w != nil {
		for _, f := range w.base.Files {
			if !a.Holds(f.Name) {
				a.Files = append(a.Files, f)
			}
		}
	}
	a.Model = (&fakellm.Document{Rest: s.base.spoken.Rest, Turns: b.turns}).Format()
	return a, b.keep
}

// add adds a line, as script.New makes it.
func (b *builder) add(template string, args ...any) {
	b.lines = append(b.lines, script.New(template, args...))
}

// key adds a line that must stay.
func (b *builder) key(template string, args ...any) {
	b.add(template, args...)
	b.keepLast()
}

// keepLast makes the line added last one that must stay.
func (b *builder) keepLast() { b.keep[b.lines[len(b.lines)-1].String()] = true }

// has reports whether a line was added.
func (b *builder) has(line string) bool {
	return slices.ContainsFunc(b.lines, func(l *script.Line) bool { return l.String() == line })
}

// optional is a text as a word, or no word where it is empty.
func optional(text string) script.Word {
	if text == "" {
		return script.Word{}
	}
	return script.Text(text)
}

// check opens a check. Slugs are made distinct.
func (b *builder) check(requirement, name string) {
	b.slugs[name]++
	if n := b.slugs[name]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	if b.base.second {
		requirement = inSecond(requirement)
	}
	b.add("check %s %s", optional(requirement), name)
}

// prompt sends a prompt, whose text and what follows are words as the script has
// them.
func (b *builder) prompt(session string, text script.Word, rest []script.Word, as string, says fakellm.TurnNode) {
	b.add("prompt %s %s %s", optional(session), text, rest)
	b.lines[len(b.lines)-1].As = optional(as)
	b.turns = append(b.turns, says)
}

// lead writes everything up to the point.
func (b *builder) lead() {
	p, t := b.point, b.target
	before := b.base.before(t)
	if p.kind == atTerminal {
		before = slices.DeleteFunc(before, func(l *script.Line) bool { return l.Is("terminal") })
		b.key("terminal scripted hold")
	}
	if p.kind == atSecond {
		before = b.beside(before)
	}
	n := 0
	for _, l := range before {
		if l.Is("prompt") {
			b.turns = append(b.turns, b.base.spoken.Turns[n])
			n++
		}
		b.lines = append(b.lines, l)
	}
	if !t.opened && (p.kind == atWrite || b.action.whole) {
		b.add("session new %s", t.main)
	}
	b.model = plain(b.base.spoken.Turns[t.turn])
	b.held = p.hold != nil && p.kind != atEnd && !b.action.free
	switch {
	case p.hold == nil || b.action.free:
	case p.merge != nil:
		b.model = p.stepped(b.model)
	default:
		b.model = b.model.With(*p.hold, gate(hold))
	}
	if b.action.model != nil {
		b.model = b.action.model(b)
	}
	if p.kind == atTool {
		at := p.tool
		call := plain(b.base.spoken.Turns[t.turn]).Replies[at.Reply].Steps[at.Step]
		steps := slices.Clone(b.model.Replies[at.Reply].Steps)
		b.model.Replies[at.Reply] = fakellm.ReplyNode{Steps: steps}
		for i, s := range steps {
			if s.Kind == "tool" && s.Text == call.Text {
				steps[i].Text = "tool: run_shell\nargs: {command: \"while [ ! -e go ]; do sleep 0.02; done\"}"
			}
		}
	}
	switch p.kind {
	case atSecond:
		b.prompt("the_other", b.otherText(), nil, "", p.elsewhere())
		b.keepLast()
		b.key("await gate %s", p.first())
	case atPermission:
		if !b.action.answers {
			b.key("permit "+b.action.permit()+" %s", p.asked())
		}
	case atRequest:
		b.key("hold %s once", p.what)
	}
	if b.action.before != nil {
		b.action.before(b)
	}
	if p.kind == atWrite {
		b.joined = true
		b.key("write-shape coalesce")
	}
	b.prompt(b.mainName(), t.text, t.rest, "P", b.model)
	b.keepLast()
	b.reach()
}

// beside takes a second session into what comes before the point: set up with all that
// the script sets up, opened by the process that the turn runs in.
func (b *builder) beside(before []*script.Line) []*script.Line {
	p, t := b.point, b.target
	for _, l := range before {
		if b.base.setsUp(l) {
			b.lines = append(b.lines, l)
		}
	}
	before = slices.DeleteFunc(before, b.base.setsUp)
	if p.with != nil && p.with.seen.asked > 0 && len(b.base.permits()) == 0 {
		b.lines = append(b.lines, p.with.base.permits()...)
	}
	// What was opened before a restart belongs to a process that is gone, and version 2 takes
	// nothing before initialize.
	at := 0
	for i, l := range before {
		if l.Is("restart") || l.Is("initialize") || l.Is("authenticate") {
			at = i + 1
		}
	}
	before = slices.Insert(before, at, script.New("session new the_other"))
	b.keep["session new the_other"] = true
	// A session that is loaded is not another one first, which has nothing to load.
	opens := func(l *script.Line) bool {
		return l.Says("session", "new", t.main) || l.Says("session", "load", t.main) || l.Says("session", "resume", t.main)
	}
	if !slices.ContainsFunc(before, opens) {
		before = slices.Insert(before, at+1, script.New("session new %s", t.main))
	}
	return before
}

func (b *builder) mainName() string {
	if b.point.kind == atSecond || b.target.main != "main" {
		return b.target.main
	}
	return ""
}

// restart starts the agent again, and logs in again: each process asks for that.
func (b *builder) restart() {
	b.key("restart")
	for _, l := range b.base.before(b.target) {
		if l.Is("authenticate") {
			b.lines = append(b.lines, l)
		}
	}
}

// reach waits until the point has come.
func (b *builder) reach() {
	p := b.point
	switch p.kind {
	case atSecond:
		if p.merge != nil {
			b.walk()
		}
		return
	case atWrite, atOnce:
		return
	case atIdle, atLoaded:
		b.add("await turn %s", b.seen.anyEnd())
		if p.kind == atLoaded {
			b.restart()
			b.key("session load %s as FIRST", b.target.main)
			b.key("await response FIRST result?")
		}
		return
	case atEnd:
		b.key("await gate %s", hold)
		b.key("release %s", hold)
		return
	}
	if b.action.answers {
		return
	}
	var all []*script.Line
	for _, k := range p.until {
		all = append(all, script.New("await "+k))
	}
	if p.gated && b.held {
		all = append(all, script.New("await gate %s", hold))
	}
	switch p.kind {
	case atPermission:
		all[len(all)-1].As = script.Text("ASK")
		b.asking = true
	case atRequest:
		all[len(all)-1].As = script.Text("REQ")
		b.asked = true
	case atTool:
		if b.base.second {
			all[len(all)-1].As = script.Text("CALL")
		}
	case atTerminal:
		all = append(all, script.New("await terminal started"))
	}
	for _, l := range all {
		b.keep[l.String()] = true
	}
	if len(all) > 1 && (p.gated && b.held || p.kind == atTerminal) {
		b.key("group {")
		b.lines[len(b.lines)-1].With(all...)
		return
	}
	b.lines = append(b.lines, all...)
}

// written ends a write that was held back for the act.
func (b *builder) written() {
	if b.joined {
		b.key("write-shape normal")
		b.joined = false
	}
}

// finish lets go of all that holds the turn up.
func (b *builder) finish() {
	b.written()
	b.replies()
	switch {
	case b.asking:
		b.add("answer ASK %s", b.choice())
	case b.point.kind == atTool:
		b.add("write go ''")
	}
	b.asking = false
	if b.held && b.point.kind != atEnd {
		b.add("release %s", hold)
		b.held = false
	}
}

// replies answers the request that is held. An editor owes that also for a turn it has
// cancelled: the agent may wait for it.
func (b *builder) replies() {
	if b.asked {
		b.add("answer REQ error=-32603")
	}
	b.asked = false
}

func (b *builder) choice() string {
	if b.seen.choice == "cancelled" {
		return "cancelled"
	}
	return b.seen.choice
}

// ends awaits the end of the target's turn.
func (b *builder) ends(how string) { b.awaitEnd("await turn %s %s", how) }

func (b *builder) awaitEnd(template, how string) {
	var session script.Word
	another := func(l *script.Line) bool { return l.Says("session", "new", "yet_another") }
	if b.point.kind == atSecond || slices.ContainsFunc(b.lines, another) {
		session = script.Option("session", b.target.main)
	}
	b.add(template, how, session)
}

// mayEnd awaits the end of a turn that need not come: what follows is about agents whose
// turn ended.
func (b *builder) mayEnd(how string) { b.awaitEnd("needs await turn %s %s", how) }

// again sends a prompt that must work, and ends the other session's turn.
// A turn that asked for permission is asked for once more, since what a cancel
// leaves behind may show only there.
func (b *builder) again(session, requirement string) {
	b.check(requirement, "works-again")
	next := says("Still here.")
	if b.seen.asked > 0 && b.seen.stop == "end_turn" && session != "fresh" {
		next = plain(b.base.spoken.Turns[b.target.turn])
		if b.point.kind == atPermission || b.action.sticky {
			b.add("permit %s", b.choice())
		}
		if b.point.kind == atTerminal {
			next = says("Still here.")
		}
	}
	b.prompt(session, b.own("Are you still there?"), nil, "", next)
	if session == "" {
		b.add("await turn end_turn")
	} else {
		b.add("await turn end_turn session=%s", session)
	}
	b.elsewhere()
}

// elsewhere ends the turn of the other session, which nothing may have
// touched.
func (b *builder) elsewhere() {
	if b.point.kind != atSecond || b.turnless || b.has("release elsewhere") {
		return
	}
	b.check("CANCEL-010", "other-session-goes-on")
	b.add("release elsewhere")
	b.add("await turn %s session=the_other", b.point.otherStop())
	if w := b.point.with; w != nil {
		b.lines = append(b.lines, w.effected()...)
	}
}

// untouched asks that files have not changed.
func (b *builder) untouched(files ...effect) {
	var lines []*script.Line
	for _, e := range files {
		switch {
		case e.what == "new":
			lines = append(lines, script.New("! exists %s", e.file))
		case b.base.Holds(e.file):
			lines = append(lines, script.New("cmp %s %s", e.file, e.file))
		}
	}
	if len(lines) == 0 {
		return
	}
	b.check("PERM-007", "no-effect")
	b.lines = append(b.lines, lines...)
}
