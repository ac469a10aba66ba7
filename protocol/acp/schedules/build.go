package schedules

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// builder writes the scenario of a schedule.
type builder struct {
	*sweep.Builder
	*noted
	version version
	asking  bool // a permission request is open, named ASK
	request bool // a request is open, named REQ
	joined  bool // the prompt's write is delayed and joined with the next write
}

// lead writes all lines before the act at the point.
func (b *builder) lead() {
	p, t := b.Point, b.Seen.Turn
	b.Add("tag cancel") // keeps the run open for late frames
	lines := before(b.Script, t)
	if p.Kind == atTerminal {
		lines = slices.DeleteFunc(lines, func(l *script.Line) bool { return l.Is("terminal") })
		b.Key("terminal scripted hold")
	}
	if p.Kind == atSecond {
		lines = b.beside(lines)
	}
	b.Lines = append(b.Lines, lines...)
	b.Turns = slices.Clone(b.Script.Spoken.Turns[:t.Nth])
	if !t.Opened && (p.Kind == atWrite || b.Act.Is("whole")) {
		b.Add("session new %s", t.Session)
	}
	model := b.holding()
	switch p.Kind {
	case atSecond:
		b.Prompt("the_other", b.otherText(), nil, "", p.Elsewhere())
		b.KeepLast()
		b.Key("await gate %s", p.FirstElsewhere())
	case atPermission:
		switch {
		case b.Act.Is("late"):
			b.Key("permit hold late %s", asked(p))
		case !b.Act.Is("answers"):
			b.Key("permit hold %s", asked(p))
		}
	case atRequest:
		b.Key("hold %s once", p.Until[0])
	}
	b.version.acts.Part(b, "before "+b.Act.Name)
	if p.Kind == atWrite {
		b.joined = true
		b.Key("write-shape coalesce")
	}
	b.Prompt(b.named(), t.Text, t.Rest, "P", model)
	b.KeepLast()
	b.reach()
}

// holding returns the model's part of the turn, with a gate or a failure at the point.
func (b *builder) holding() fakellm.TurnNode {
	p, plain := b.Point, sweep.Plain(b.Script.Spoken.Turns[b.Seen.Nth])
	model := plain
	b.Held = p.Hold != nil && p.Kind != atEnd && !b.Act.Is("free")
	switch {
	case b.Act.Is("disconnects"):
		model = model.CutAt(*p.Hold, fakellm.NewStep("fail", "{disconnect: now}"))
	case p.Hold == nil || b.Act.Is("free"):
	case p.Merge != nil:
		model = p.Stepped(model)
	default:
		model = model.With(*p.Hold, sweep.Gate(sweep.Hold))
	}
	if p.Kind == atTool {
		call := plain.Replies[p.Tool.Reply].Steps[p.Tool.Step]
		steps := slices.Clone(model.Replies[p.Tool.Reply].Steps)
		model.Replies[p.Tool.Reply] = fakellm.ReplyNode{Steps: steps}
		for i, s := range steps {
			if s.Kind == "tool" && s.Text == call.Text {
				steps[i].Text = "tool: run_shell\nargs: {command: \"while [ ! -e go ]; do sleep 0.02; done\"}"
			}
		}
	}
	return model
}

// beside adds the opening of a second session to the lines before the point. Both sessions share the agent's process
// and the set-up lines.
func (b *builder) beside(before []*script.Line) []*script.Line {
	with, main := b.Point.With, b.Seen.Session
	sets := func(l *script.Line) bool { return setsUp(b.Script, l) }
	b.Lines = append(b.Lines, lists.Where(before, func(l *script.Line) bool { return sets(l) })...)
	before = slices.DeleteFunc(before, sets)
	if with != nil && of(with.Seen).asked > 0 && len(permits(b.Script)) == 0 {
		b.Lines = append(b.Lines, permits(with.Script)...)
	}
	// The new line goes after any restart and initialize: a restart ends the process of earlier sessions, and version
	// 2 accepts no other request before initialize.
	at := 0
	for i, l := range before {
		if l.Is("restart") || l.Is("initialize") || l.Is("authenticate") {
			at = i + 1
		}
	}
	before = slices.Insert(before, at, script.New("session new the_other"))
	b.Keep["session new the_other"] = true
	// If no line opens the target's session, open it here. A script that loads the session has such a line.
	if !slices.ContainsFunc(before, func(l *script.Line) bool { return opensSession(l) == main }) {
		before = slices.Insert(before, at+1, script.New("session new %s", main))
	}
	return before
}

// named returns the name of the target's session if script lines must give it, else "".
func (b *builder) named() string {
	if name := b.Seen.Session; b.Point.Kind == atSecond || name != "main" {
		return name
	}
	return ""
}

// session returns the option session= for patterns that must name the target's session, because the scenario has turns
// of other sessions. Otherwise it returns the zero Word.
func (b *builder) session() script.Word {
	another := func(l *script.Line) bool { return l.Says("session", "new", "yet_another") }
	if b.Point.Kind == atSecond || slices.ContainsFunc(b.Lines, another) {
		return script.Option("session", b.Seen.Session)
	}
	return script.Word{}
}

// restart restarts the agent, and logs in again if the scenario logged in: each new process requires a login.
func (b *builder) restart() {
	b.Key("restart")
	for _, l := range before(b.Script, b.Seen.Turn) {
		if l.Is("authenticate") {
			b.Lines = append(b.Lines, l)
		}
	}
}

// reach writes lines that wait until the turn has reached the point.
func (b *builder) reach() {
	p := b.Point
	switch p.Kind {
	case atSecond:
		b.Walk()
		return
	case atIdle, atLoaded:
		b.Add("await turn %s", anyEnd(b.Seen))
		if p.Kind == atLoaded {
			b.restart()
			b.Key("session load %s as FIRST", b.Seen.Session)
			b.Key("await response FIRST result?")
		}
		return
	case atEnd:
		b.Key("await gate %s", sweep.Hold)
		b.Key("release %s", sweep.Hold)
		return
	}
	if b.Act.Is("answers") {
		return
	}
	all := lists.Map(p.Until, func(k string) *script.Line { return script.New("await " + k) })
	gated := p.Gated && b.Held
	if gated {
		all = append(all, script.New("await gate %s", sweep.Hold))
	}
	switch p.Kind {
	case atPermission:
		all[len(all)-1].As = script.Text("ASK")
		b.asking = true
	case atRequest:
		all[len(all)-1].As = script.Text("REQ")
		b.request = true
	case atTool:
		if b.version.stateEnds { // acts of version 2 name the call
			all[len(all)-1].As = script.Text("CALL")
		}
	case atTerminal:
		all = append(all, script.New("await terminal started"))
	}
	b.Awaits(all, gated || p.Kind == atTerminal)
}

// written restores the normal shape of writes after an act that needed a delayed write.
func (b *builder) written() {
	if b.joined {
		b.Key("write-shape normal")
		b.joined = false
	}
}

// finish releases everything that holds the turn.
func (b *builder) finish() {
	b.written()
	b.replies()
	switch {
	case b.asking:
		b.Add("answer ASK %s", b.choice)
	case b.Point.Kind == atTool:
		b.Add("write go ''")
	}
	b.asking = false
	b.Release()
}

// replies answers the open request. The editor must answer even if the turn was cancelled, because the agent may wait
// for the answer.
func (b *builder) replies() {
	if b.request {
		b.Add("answer REQ error=-32603")
	}
	b.request = false
}

// stopped returns how a turn that was cancelled in time must end. In version 2, the agent answers with an error if it
// has not yet accepted the prompt.
func (b *builder) stopped() string {
	early := []sweep.PointKind{atWrite, atOnce, atGate, atSecond}
	if b.version.stateEnds && slices.Contains(early, b.Point.Kind) {
		return "cancelled|error"
	}
	return "cancelled"
}

// closed returns the ways in which a turn may end if its session is closed, as a pattern.
func (b *builder) closed() string {
	switch p := b.Point; {
	case p.Kind == atWrite, p.Kind == atOnce, p.Kind == atSecond && p.Merge == nil:
		return "cancelled|error" // the agent may handle the close before the prompt
	case open(p):
		return b.stopped()
	}
	return anyEnd(b.Seen)
}

// again sends a further prompt, which must work, and ends the other session's turn. If the turn asked for a
// permission, the further prompt repeats the whole turn, because a cancel may show its effect only then.
func (b *builder) again(l *script.Line) {
	requirement, session := "", ""
	for _, w := range l.Words {
		if key, _, value, ok := w.Cut("="); ok && key == "in" {
			session = value.Raw()
		} else {
			requirement = w.Raw()
		}
	}
	b.Check(requirement, "works-again")
	next := sweep.Says("Still here.")
	if b.asked > 0 && b.Seen.End == "end_turn" && session != "fresh" {
		if b.Point.Kind == atPermission || b.Act.Is("sticky") {
			b.Add("permit %s", b.choice)
		}
		if b.Point.Kind != atTerminal {
			next = sweep.Plain(b.Script.Spoken.Turns[b.Seen.Nth])
		}
	}
	b.Prompt(session, b.Own("Are you still there?"), nil, "", next)
	var in script.Word
	if session != "" {
		in = script.Option("session", session)
	}
	b.Add("await turn end_turn %s", in)
	b.elsewhere()
}

// elsewhere ends the turn of the other session and checks that the act has not affected that turn.
func (b *builder) elsewhere() {
	if b.Point.Kind != atSecond || b.Act.Is("kills") || b.Has("release elsewhere") {
		return
	}
	b.Check("CANCEL-010", "other-session-goes-on")
	b.Add("release elsewhere")
	with := b.Point.With
	if with == nil {
		b.Add("await turn end_turn session=the_other")
		return
	}
	b.Add("await turn %s session=the_other", with.Seen.End)
	b.Lines = append(b.Lines, with.Effective()...)
}

// otherText returns the prompt that the other session gets.
func (b *builder) otherText() script.Word {
	if with := b.Point.With; with != nil {
		return with.Seen.Turn.Text
	}
	return b.Own("Keep talking elsewhere.")
}

// otherWords returns the other session's prompt without quotes and full stop, for use in a pattern.
func (b *builder) otherWords() string { return strings.Trim(b.otherText().Raw(), "'.") }

// untouched writes checks that files are unchanged.
func (b *builder) untouched(files []sweep.Effect) {
	var lines []*script.Line
	for _, e := range files {
		switch {
		case e.What == "new":
			lines = append(lines, script.New("! exists %s", e.File))
		case b.Script.Holds(e.File):
			lines = append(lines, script.New("cmp %s %s", e.File, e.File))
		}
	}
	if len(lines) > 0 {
		b.Check("PERM-007", "no-effect")
		b.Lines = append(b.Lines, lines...)
	}
}

// once inserts, before the prompt, a permit line with the editor's answer to the point's permission request.
func (b *builder) once(choice string) {
	l := script.New("permit %s", choice)
	b.Keep[l.String()] = true
	at := len(b.Lines)
	for i, l := range b.Lines {
		if l.Is("prompt") && slices.ContainsFunc(l.Words,
			func(w script.Word) bool { return w.String() == b.Seen.Turn.Text.String() }) {
			at = i
		}
	}
	b.Lines = slices.Insert(b.Lines, at, l)
}

// restore writes lines that undo the turn's file changes, so that the turn can run again.
func (b *builder) restore() {
	for _, e := range b.effects {
		if e.What != "new" && b.Script.Holds(e.File) {
			b.Add("write %s %s", e.File, "@"+e.File)
		}
	}
}
