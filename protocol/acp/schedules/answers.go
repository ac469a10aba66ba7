package schedules

import (
	"slices"

	"github.com/acp-test/acp-test/scenarios/script"
)

// answers are the ways to answer a permission, and to cancel around it.
func answers() []Action {
	permission := kinds(atPermission)
	all := []Action{
		{Name: "answer + cancel", rank: 1, at: permission, write: func(b *builder) {
			b.key("answer ASK %s", b.choice())
			b.asking = false
			b.key("cancel")
			b.check("CANCEL-001", "ends")
			if b.held {
				b.ends("cancelled")
			} else {
				b.ends(b.seen.anyEnd())
			}
			b.again("", "CANCEL-011")
		}},
		{Name: "cancel + answer late", rank: 1, at: permission, permits: "hold late", sticky: true, write: func(b *builder) {
			b.key("cancel")
			b.check("CANCEL-016", "ends-as-cancelled")
			b.key("answer ASK cancelled")
			b.ends("cancelled")
			b.asking = true
			b.untouched(b.point.files...)
			b.again("", "CANCEL-011")
		}},
		{Name: "cancel + allow too late", rank: 2, at: permission, permits: "hold late", sticky: true,
			write: func(b *builder) {
				b.key("cancel")
				b.mayEnd("cancelled") // an agent may wait for the answer that the editor owes
				b.key("answer ASK allow_once")
				b.untouched(b.point.files...)
				b.again("", "CANCEL-011")
			}},
		{Name: "answer late", rank: 2, at: permission, free: true, write: func(b *builder) {
			b.add("await quiet 100ms")
			b.untouched(b.point.files...)
			b.key("answer ASK %s", b.choice())
			b.asking = false
			b.check("PROMPT-003", "ends-as-before")
			b.ends(b.seen.end())
			b.again("", "")
		}},
		{Name: "allow in another session", rank: 2, at: permission, answers: true, free: true, write: func(b *builder) {
			b.once("allow_once")
			b.ends(b.seen.anyEnd())
			b.restore()
			b.key("session new yet_another")
			b.prompt("yet_another", script.Quote("The same in another session."), nil, "",
				plain(b.base.spoken.Turns[b.target.turn]))
			b.key("await tool_call") // who calls no tool has nothing to ask for
			b.check("PERM-007", "asks-in-the-other-session")
			b.add("await turn any|error")
			b.add("saw permission")
			b.probe()
		}},
	}
	for _, a := range []struct {
		name, permit string
		allowed      bool
		always       bool
		rank         int
	}{
		{"allow once", "allow_once", true, false, 1},
		{"allow always", "allow_always", true, true, 2},
		{"reject once", "reject_once", false, false, 1},
		{"reject always", "reject_always", false, true, 2},
		{"dismiss", "cancelled", false, false, 1},
		{"answer with an error", "error", false, false, 2},
		{"an option never offered", "option:no-such-option", false, false, 2},
	} {
		all = append(all, Action{Name: a.name, rank: a.rank, at: permission, answers: true, free: true,
			write: func(b *builder) {
				b.once(a.permit)
				b.add("await permission")
				b.check("PERM-013", "ends")
				b.ends("any|error")
				if !a.allowed {
					b.untouched(b.behindAny()...)
				}
				b.repeat(a.permit, a.always, a.allowed)
			}})
	}
	for i := range all { // there are few, and much depends on them
		all[i].rank -= 3
	}
	return all
}

// once answers the permission of the point. The line stands before the prompt.
func (b *builder) once(choice string) {
	l := script.New("permit %s", choice)
	b.keep[l.String()] = true
	b.lines = slices.Insert(b.lines, b.asks(), l)
}

// asks is the index of the target's prompt.
func (b *builder) asks() int {
	for i, l := range slices.Backward(b.lines) {
		if l.Is("prompt") && slices.ContainsFunc(l.Words,
			func(w script.Word) bool { return w.String() == b.target.text.String() }) {
			return i
		}
	}
	return len(b.lines)
}

// repeat runs the turn once more: what was said once is asked again, what was
// said for always is not.
func (b *builder) repeat(choice string, always, allowed bool) {
	b.restore()
	name, requirement := "asks-again", "PERM-008"
	if always {
		name, requirement = "remembers", "PERM-009"
	}
	b.check(requirement, name)
	b.key("prompt %s", b.own("Once more, please."))
	b.turns = append(b.turns, plain(b.base.spoken.Turns[b.target.turn]))
	b.add("await turn any|error")
	if always {
		b.add("! saw permission")
	} else {
		b.add("saw permission")
	}
	if !allowed {
		b.untouched(b.behindAny()...)
	}
	b.probe()
}

// restore puts the files back that the turn changes, so that it can run again.
func (b *builder) restore() {
	for _, e := range b.seen.effects {
		if e.what != "new" && b.base.Holds(e.file) {
			b.add("write %s %s", e.file, "@"+e.file)
		}
	}
}

// probe asks what the run itself made questionable.
func (b *builder) probe() {
	if b.probes["unasked"] {
		b.check("PERM-007", "asks-before-the-effect")
		b.add("saw permission in=run")
	}
}
