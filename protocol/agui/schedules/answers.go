package schedules

import "github.com/acp-test/acp-test/sweep"

// answers are what can be done about a run that waits for its user or for the front end's
// tools.
func answers() []action {
	interrupt, pending := at(atInterrupt), at(atPending)
	all := []action{
		{name: "approve", at: interrupt, write: func(b *builder) {
			b.key("resume %s approve", b.named())
			b.check("AGUI-INT-004", "goes-on")
			b.ends("any|error")
			for _, f := range b.seen.owed {
				b.add("exists %s", f)
			}
		}},
		{name: "reject", at: interrupt, write: refuses("reject")},
		{name: "cancel", at: interrupt, write: refuses("cancelled")},
		{name: "approve twice", rank: 1, at: interrupt, write: func(b *builder) {
			b.key("resume %s approve", b.named())
			b.ends("any|error")
			b.check("AGUI-INT-006", "second-answer-ends")
			b.key("resume %s approve id=$ASKED.outcome.interrupts.0.id", b.named())
			b.ends("any|error")
			b.lives("AGUI-INT-006")
		}},
		{name: "approve + hang-up", act: "hang-up", rank: 1, at: interrupt, write: func(b *builder) {
			b.key("resume %s approve", b.named())
			b.key("hang-up %s", b.named())
			b.ends("any|error")
			b.lives("AGUI-ABRT-002")
		}},
		{name: "an answer that nobody asked for", rank: 1, at: interrupt, write: func(b *builder) {
			b.key("resume %s approve id=interrupt-of-nobody", b.named())
			b.check("AGUI-INT-006", "ends")
			b.ends("any|error")
			b.untouched("AGUI-INT-005", b.seen.owed)
			b.lives("AGUI-INT-006")
		}},
		{name: "run instead of an answer", rank: 1, at: interrupt, write: func(b *builder) {
			b.run(b.named().Raw(), "Never mind.", sweep.Says("As you like."))
			b.check("AGUI-INT-005", "ends")
			b.ends("any|error")
			b.untouched("AGUI-INT-005", b.seen.owed)
			b.lives("AGUI-INT-005")
		}},
		{name: "answer the calls", at: pending, write: func(b *builder) {
			for range b.seen.calls {
				b.key("tool-result 1 'The answer of the front end.'")
			}
			b.key("run %s", b.named())
			b.check("AGUI-TOOL-009", "goes-on-with-the-answer")
			b.ends("any|error")
			b.add("model saw text~'The answer of the front end'")
		}},
		{name: "answer the calls + hang-up", act: "hang-up", rank: 1, at: pending, write: func(b *builder) {
			for range b.seen.calls {
				b.key("tool-result 1 'The answer of the front end.'")
			}
			b.key("run %s", b.named())
			b.key("hang-up %s", b.named())
			b.ends("any|error")
			b.lives("AGUI-ABRT-002")
		}},
		{name: "run instead of the answers", rank: 1, at: pending, write: func(b *builder) {
			b.run(b.named().Raw(), "Never mind.", sweep.Says("As you like."))
			b.check("AGUI-TOOL-009", "ends")
			b.ends("any|error")
			b.lives("AGUI-TOOL-009")
		}},
	}
	for i := range all { // there are few, and much depends on them
		all[i].rank -= 3
	}
	return all
}

// refuses answers an interrupt so that what it is about is not done.
func refuses(how string) func(b *builder) {
	return func(b *builder) {
		b.key("resume %s %s", b.named(), how)
		b.check("AGUI-INT-007", "ends")
		b.ends("any|error")
		b.untouched("AGUI-INT-007", b.seen.owed)
		b.lives("AGUI-INT-007")
	}
}
