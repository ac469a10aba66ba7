package schedules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// acts returns the table of acts. The functions here give the flags, conditions and values to which the table refers
// by name.
func acts() *sweep.Acts[builder] {
	at := func(kinds ...sweep.PointKind) func(builder) bool {
		return func(b builder) bool { return slices.Contains(kinds, b.Point.Kind) }
	}
	return (&sweep.Acts[builder]{
		// beside: the schedule has a second thread next to the target's. disconnects: the model's connection breaks at
		// the point.
		Flags: []string{"beside", "disconnects"},
		Conditions: map[string]func(builder) bool{
			"during":    func(b builder) bool { return b.Point.Kind < atIdle },
			"within":    func(b builder) bool { return b.Point.Kind < atEnd },
			"other":     at(atOther),
			"gate":      at(atGate),
			"interrupt": at(atInterrupt),
			"pending":   at(atPending),
			// open: the run has not ended and cannot end by itself.
			"open":          func(b builder) bool { return b.Point.Kind < atEnd && b.Point.Hold != nil },
			"alone-at-gate": builder.atGate,
			"half":          builder.half,
			"clean":         func(b builder) bool { return b.atGate() && !b.half() },
			"named":         func(b builder) bool { return b.named() != "" },
			"owes":          func(b builder) bool { return b.Seen.End == "interrupt" || facts(b.Seen).calls > 0 },
			"plain":         builder.plain,
		},
		Values: map[string]func(builder) script.Word{
			"thread":  func(b builder) script.Word { return sweep.Optional(b.named()) },
			"session": builder.session,
			"end":     func(b builder) script.Word { return script.Text(b.Seen.End) },
			"text":    func(b builder) script.Word { return script.Quote("^" + regexp.QuoteMeta(b.Seen.Text) + "$") },
		},
		Parts: map[string]func(builder, *script.Line){
			"finish":         func(b builder, _ *script.Line) { b.Release() },
			"untouched":      func(b builder, l *script.Line) { b.untouched(l.Words[0].Raw(), facts(b.Seen).owed) },
			"cut-off":        func(b builder, _ *script.Line) { b.cutOff() },
			"has-its-effect": builder.effective,
			"answer-calls":   builder.answerCalls,
		},
	}).Read(table)
}

// builder writes the scenario for one schedule.
type builder struct{ *sweep.Builder }

// named returns the name of the target's thread if lines must give it, because there are other threads. Otherwise it
// returns "".
func (b builder) named() string {
	if b.Seen.Opened || b.several() {
		return b.Seen.Session
	}
	return ""
}

// session returns the option session= with the target's thread. It returns the zero Word if named returns "".
func (b builder) session() script.Word {
	if name := b.named(); name != "" {
		return script.Option("session", name)
	}
	return script.Word{}
}

// several reports whether the schedule has a second thread in addition to the target's.
func (b builder) several() bool { return b.Point.Kind == atOther || b.Act.Is("beside") }

// lead writes all lines before the act: the earlier lines of the script, the run, and the wait for the point.
func (b builder) lead() {
	p, t := b.Point, b.Seen.Turn
	b.Lines = append(b.Lines, slices.DeleteFunc(slices.Clone(b.Script.Lines[:t.Line]), b.Script.Looks)...)
	b.Turns = slices.Clone(b.Script.Spoken.Turns[:t.Nth])
	if b.several() && !t.Opened {
		b.Key("thread %s", t.Session)
	}
	if p.Kind == atOther {
		b.Key("thread the_other")
		b.Prompt("the_other", b.Own("Keep talking elsewhere."), nil, "", fakellm.NewTurn(fakellm.NewReply(
			fakellm.Text("Talking"), sweep.Gate("elsewhere"), fakellm.Text(" elsewhere."))))
		b.KeepLast()
		b.Key("await gate elsewhere")
	}
	model := sweep.Plain(b.Script.Spoken.Turns[t.Nth])
	disconnects := b.Act.Is("disconnects")
	switch {
	case disconnects:
		model = model.CutAt(*p.Hold, fakellm.NewStep("fail", "{disconnect: now}"))
	case p.Hold != nil:
		model = model.With(*p.Hold, sweep.Gate(sweep.Hold))
		b.Held = true
	}
	b.Prompt(b.named(), t.Text, t.Rest, "P", model)
	b.KeepLast()
	if !disconnects {
		b.reach()
	}
}

// reach writes lines that wait until the run has reached the point.
func (b builder) reach() {
	p := b.Point
	switch p.Kind {
	case atInterrupt:
		b.Key("await event RUN_FINISHED %s as ASKED", b.session())
		b.Key("await turn interrupt %s", b.session())
		return
	case atPending, atIdle:
		b.Key("await turn %s %s", b.Seen.End, b.session())
		return
	case atEnd:
		b.Key("await gate %s", sweep.Hold)
		b.Key("release %s", sweep.Hold)
		b.Held = false
		return
	}
	all := lists.Map(p.Until, func(event string) *script.Line {
		return script.New("await event %s %s", event, b.session())
	})
	if p.Gated {
		all = append(all, script.New("await gate %s", sweep.Hold))
	}
	b.Awaits(all, true)
}

// atGate reports whether a gate holds the model and no other thread has a run.
func (b builder) atGate() bool { return b.Point.Gated && b.Point.Kind != atOther }

// half reports whether a gate holds the model after a tool call in the same reply. If the run ends at such a gate, the
// tool call may remain in the thread.
func (b builder) half() bool {
	hold := b.Point.Hold
	if hold == nil {
		return true
	}
	steps := b.Seen.Model.Replies[hold.Reply].Steps
	return slices.ContainsFunc(steps[:min(hold.Step, len(steps))],
		func(s fakellm.StepNode) bool { return s.Kind == "tool" })
}

// plain reports whether a pattern can match the whole text of the run.
func (b builder) plain() bool {
	text := b.Seen.Text
	return text != "" && len(text) < 400 && b.named() == "" && !strings.ContainsAny(text, "$/\n")
}

// cutOff writes checks that the calls after the gate had no effect: the files that they would create must not exist.
func (b builder) cutOff() {
	if !b.Point.Gated {
		return
	}
	var files []sweep.Effect
	for _, f := range b.Seen.Made {
		call, hold := facts(b.Seen).late[f], *b.Point.Hold
		if hold.Reply < call.Reply || hold.Reply == call.Reply && hold.Step <= call.Step {
			files = append(files, f)
		}
	}
	b.untouched("AGUI-ABRT-004", files)
}

// untouched writes checks that files do not exist.
func (b builder) untouched(requirement string, files []sweep.Effect) {
	if len(files) == 0 {
		return
	}
	b.Check(requirement, "no-effect")
	for _, f := range files {
		b.Add("! exists %s", f.File)
	}
}

func (b builder) effective(*script.Line) {
	for _, f := range facts(b.Seen).owed {
		b.Add("exists %s", f.File)
	}
}

func (b builder) answerCalls(*script.Line) {
	for range facts(b.Seen).calls {
		b.Key("tool-result 1 'The answer of the front end.'")
	}
}
