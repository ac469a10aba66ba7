package schedules

import "github.com/acp-test/acp-test/scenarios/script"

// inSecond is a requirement as version 2 has it, "" if it has none.
func inSecond(requirement string) string {
	switch requirement {
	case "CLOSE-003", "CLOSE-006":
		return "V2-SES-006"
	case "RCANCEL-003":
		return ""
	}
	return requirement
}

// secondActions are what only version 2 has.
func secondActions() []Action {
	running := func(p Point) bool { return p.kind == atTool && p.alone } // whose id CALL has
	return []Action{
		{Name: "cancel tool call", rank: 0, needs: "cancel tool_call_update", at: running, write: func(b *builder) {
			b.key("cancel-tool %s $CALL.toolCallId as X", b.target.main)
			b.check("V2-CAN-004", "call-is-cancelled")
			b.add("await response X result?")
			b.stops()
		}},
		{Name: "cancel terminal", rank: 0, needs: "cancel terminal_update", at: running, write: func(b *builder) {
			b.key("await terminal started as TERM")
			b.key("cancel-terminal %s $TERM.terminalId as X", b.target.main)
			b.check("V2-CAN-004", "terminal-is-cancelled")
			b.add("await response X result?")
			b.stops()
		}},
		{Name: "cancel tool call + cancel", rank: 1, needs: "cancel tool_call_update", at: running, write: func(b *builder) {
			b.key("cancel-tool %s $CALL.toolCallId as X", b.target.main)
			b.key("cancel %s", b.target.main)
			b.check("CANCEL-001", "ends-as-cancelled")
			b.ends(b.stopped())
			b.again("", "CANCEL-011")
		}},
		{Name: "resume", rank: 0, at: func(p Point) bool { return p.kind < atIdle && p.kind != atWrite && letGo(p) },
			write: func(b *builder) {
				b.key("session resume %s wait=no as R", b.target.main)
				b.check("V2-SES-003", "both-are-answered")
				b.add("await response R")
				b.finish()
				b.ends(b.seen.anyEnd())
				b.again("", "RESUME-004")
			}},
	}
}

// stops lets a turn whose tool was stopped come to its end, which is no cancelled one, and
// asks for another one.
func (b *builder) stops() {
	if b.held {
		b.add("release %s", hold)
		b.held = false
	}
	b.check("V2-CAN-004", "work-goes-on")
	b.ends("end_turn|max_tokens|max_turn_requests|refusal|error|none")
	b.again("", "PROMPT-014")
}

// stopped is how a turn ends that was surely cancelled. In version 2 a prompt that is no part
// of the conversation yet is answered with an error.
func (b *builder) stopped() string {
	if p := b.point; b.base.second && (p.kind <= atOnce || p.kind == atGate || p.kind == atSecond) {
		return "cancelled|error"
	}
	return "cancelled"
}

// settled awaits, where two prompts were sent, the answer to the second one and the end of
// the work, and asks for one more turn: of the two the second may be refused, part of the
// first one's work, or done after it, so that their ends cannot be told apart.
func (b *builder) settled(requirement string) {
	b.add("await response TWO")
	b.check(requirement, "works-again")
	b.prompt("", b.own("Are you still there?"), nil, "AGAIN", says("Still here."))
	b.answersWith("Still here", "AGAIN", b.target.main)
	b.elsewhere()
}

// answersWith awaits the answer to a prompt, what the agent says then, and the end of that.
func (b *builder) answersWith(text, as, session string) {
	b.add("await response %s", as)
	b.add("await agent_message text~%s session=%s", script.Quote(text), session)
	b.add("await state idle session=%s", session)
}
