package rules

import "github.com/acp-test/acp-test/wire"

// toolClosed judges the tool calls that are unfinished when their turn ends.
// Only the end of the transcript shows whether one went on in the background.
func toolClosed() Rule {
	const (
		open = iota
		otherEnd
		background
	)
	const candidates = 1 << 12
	return Rule{
		ID:       "TOOL-CLOSED",
		Sentence: "No tool call of a turn is unfinished when the turn ends.",
		Points: []Point{
			open:       {"open-at-end-turn", Warn, []string{"PROMPT-013", "TOOL-011"}, "a tool call was unfinished when its turn ended with end_turn"},
			otherEnd:   {"open-at-other-end", Lint, []string{"CANCEL-013", "TOOL-011"}, "a tool call was unfinished when its turn ended in another way"},
			background: {"background", Info, []string{"PROMPT-013"}, "a tool call went on after its turn"},
		},
		start: func(w *watch) {
			type left struct {
				tool    *tool
				session *session
				status  status
				ended   int
				stop    string
			}
			var all []left
			w.on(func(ev *event) {
				t := ev.turn
				if t == nil {
					return
				}
				for _, tool := range t.tools {
					if tool.by != byCall {
						continue
					}
					w.saw(pick(ev.stop == "end_turn", open, otherEnd))
					if !tool.status.final() && len(all) < candidates {
						stop := ev.stop
						if ev.err.Exists() {
							stop = "an error"
						}
						all = append(all, left{tool, t.session, tool.status, ev.Seq, stop})
					}
				}
			}, answered(prompt))
			w.finish(func(End) {
				for _, l := range all {
					conn, session, id := l.session.conn.n, l.session.id, l.tool.id
					entries := []int{l.tool.first, l.ended}
					switch {
					case l.tool.seq > l.ended:
						w.report(background, conn, session, id, append(entries, l.tool.seq),
							"Tool call %q went on after its turn had ended, as background work.", clip(id))
					case l.stop == "end_turn":
						w.report(open, conn, session, id, entries, "Tool call %q was still %s when its turn ended with end_turn.", clip(id), l.status)
					default:
						w.report(otherEnd, conn, session, id, entries, "Tool call %q was left %s when its turn ended with %s.", clip(id), l.status, l.stop)
					}
				}
			})
		},
	}
}

// toolAnnounced judges that a tool call is announced before it is spoken of.
func toolAnnounced() Rule {
	const (
		unknown = iota
		onlyAsked
		permissionFirst
		elicitation
	)
	return Rule{
		ID:       "TOOL-ANNOUNCED",
		Sentence: "A tool_call announces a tool call before anything else names it.",
		Points: []Point{
			unknown:         {"unannounced", Warn, []string{"TOOL-006"}, "a tool_call_update names a tool call that was never announced"},
			onlyAsked:       {"only-in-permission", Lint, []string{"TOOL-006", "PERM-014"}, "a tool_call_update names a tool call that only a permission request has announced"},
			permissionFirst: {"permission-first", Lint, []string{"PERM-014"}, "a permission request names a tool call that was not announced"},
			elicitation:     {"elicitation-first", Lint, []string{"ELICIT-004"}, "an elicitation names a tool call that was not announced"},
		},
		versions: []int{1},
		start: func(w *watch) {
			// A resumed session may go on with calls of an earlier process,
			// and what was forgotten cannot be judged.
			blind := func(s *session) bool { return s == nil || s.resumed || s.evicted }
			w.on(func(ev *event) {
				id := ev.update.Get("toolCallId")
				if ev.session == nil || id.Kind() != wire.String {
					return
				}
				w.saw(unknown)
				t := ev.tool
				switch {
				case t == nil && blind(ev.session):
				case t == nil:
					w.find(unknown, ev, id.Str(), nil, "The tool_call_update of %q has no tool_call before it.", clip(id.Str()))
				case t.by == byUpdate:
					w.find(unknown, ev, t.id, []int{t.first}, "The tool_call_update of %q has no tool_call before it.", clip(t.id))
				case t.by == byPermission:
					w.find(onlyAsked, ev, t.id, []int{t.first}, "Tool call %q was announced by a permission request only, not by a tool_call.", clip(t.id))
				}
			}, toolUpdate)
			w.on(func(ev *event) {
				id := ev.params.Get("toolCall").Get("toolCallId")
				w.saw(permissionFirst)
				if ev.session != nil && id.Kind() == wire.String && ev.tool == nil && !blind(ev.session) {
					w.find(permissionFirst, ev, id.Str(), nil, "The permission request is about tool call %q, which no tool_call has announced.", clip(id.Str()))
				}
			}, asked(permission))
			w.on(func(ev *event) {
				id := ev.params.Get("toolCallId")
				if id.Kind() != wire.String {
					return
				}
				w.saw(elicitation)
				if ev.session != nil && ev.session.tool(id) == nil && !blind(ev.session) {
					w.find(elicitation, ev, id.Str(), nil, "The elicitation is about tool call %q, which no tool_call has announced.", clip(id.Str()))
				}
			}, asked(elicit))
		},
	}
}

// toolResend judges that an id stands for one tool call.
func toolResend() Rule {
	const (
		running = iota
		ended
	)
	return Rule{
		ID:       "TOOL-RESEND",
		Sentence: "There is one tool_call for each tool call id.",
		Points: []Point{
			running: {"running", Lint, []string{"TOOL-003"}, "a second tool_call names a tool call that still runs"},
			ended:   {"ended", Warn, []string{"TOOL-003"}, "a second tool_call names a tool call that had ended, or is of another turn"},
		},
		versions: []int{1},
		start: func(w *watch) {
			w.on(func(ev *event) {
				w.saw(ended)
				t := ev.tool
				switch {
				case t == nil || t.by != byCall || ev.turn != nil && ev.turn.mixed:
				case t.status.final():
					w.find(ended, ev, t.id, []int{t.first}, "A second tool_call has the id %q of a tool call that had %s.", clip(t.id), ending(t.status))
				case t.turn != ev.turn:
					w.find(ended, ev, t.id, []int{t.first}, "A tool_call has the id %q of a tool call of another turn.", clip(t.id))
				default:
					w.find(running, ev, t.id, []int{t.first}, "A second tool_call has the id %q of a tool call that still runs; tool_call_update is for that.", clip(t.id))
				}
			}, toolCall)
		},
	}
}

func ending(s status) string { return pick(s == failed, "failed", "completed") }

// statusForward judges that the status of a tool call never goes back.
func statusForward() Rule {
	const (
		back = iota
		skipped
	)
	return Rule{
		ID:       "STATUS-FORWARD",
		Sentence: "The status of a tool call goes from pending over in_progress to completed or failed, and never back.",
		Points: []Point{
			back:    {"back", Warn, []string{"TOOL-009"}, "the status of a tool call went back, or changed after it was final"},
			skipped: {"no-in-progress", Lint, []string{"TOOL-010"}, "a tool call was completed without having been in progress"},
		},
		start: func(w *watch) {
			w.on(func(ev *event) {
				t, next := ev.tool, readStatus(ev.update.Get("status"))
				if t == nil || next == unsaid || next == unknownStatus || t.status == unsaid || ev.turn != nil && ev.turn.mixed {
					return
				}
				w.saw(back)
				switch {
				case next < t.status && next != completed || t.status.final() && next.final() && next != t.status:
					w.find(back, ev, t.id, []int{t.first}, "The status of tool call %q went from %s to %s.", clip(t.id), t.status, next)
				case t.status == pending && next == completed && ev.turn != nil:
					w.find(skipped, ev, t.id, []int{t.first}, "Tool call %q went from pending to completed without in_progress.", clip(t.id))
				case next == completed:
					w.saw(skipped)
				}
			}, toolUpdate)
		},
	}
}
