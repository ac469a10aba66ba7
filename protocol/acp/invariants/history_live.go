package invariants

import "github.com/acp-test/acp-test/rules"

// callOf names a tool call by the ids of its session and of the call.
type callOf struct{ session, id string }

// liveItems has what sessions showed outside of replays, over all connections.
type liveItems struct {
	version  *version
	calls    map[callOf]bool   // whether each tool call has ended
	plans    map[string]string // the latest plan, by session
	replayed map[string]int    // Seq of the latest load that replayed a plan, by session
}

// note stores a tool call or a plan.
func (l *liveItems) note(ev *event, s *session) {
	status := l.version.readStatus(ev.update.Get("status"))
	switch {
	case s.loaded():
	case s.replaying() && ev.topic == planUpdate:
		rules.Remember(l.replayed, rememberedSessions, s.id, s.root().window.seq)
	case s.replaying():
	case ev.topic == planUpdate:
		rules.Remember(l.plans, rememberedSessions, s.id, stepsOf(ev))
	case ev.topic == toolCall || status != unsaid:
		rules.Remember(l.calls, rememberedTools, callOf{s.id, ev.update.Get("toolCallId").Str()}, status.final())
	}
}

// tells reports whether an update after a load repeats the plan of the live session, and the replay had no plan.
func (l *liveItems) tells(ev *event) bool {
	plan, s := stepsOf(ev), ev.session
	return plan != "" && l.plans[s.id] == plan && l.replayed[s.id] != s.restored.seq
}

// has reports whether a session showed a tool call.
func (l *liveItems) has(session, id string) bool {
	_, known := l.calls[callOf{session, id}]
	return known
}

// ends reports whether an update after a load belongs to the history: the call had ended before the load, the replay
// announced it, and the replay lacks its end or the update repeats the status alone. An update with more may be news of
// a command in the background.
func (l *liveItems) ends(ev *event) bool {
	s, t := ev.session, ev.tool
	return t != nil && t.by == byCall && s.restored.seq < t.first && t.first < s.restSeq &&
		l.calls[callOf{s.id, t.id}] &&
		(!t.status.final() || ev.update.Get("status").Exists() && ev.update.Len() == 3)
}

// stepsOf returns the steps of a plan, without white space.
func stepsOf(ev *event) string {
	steps := ""
	for step := range ev.update.Get("entries").Items() {
		if len(steps) >= promptText {
			break
		}
		steps += bare(step.Get("content").Str()) + "\x00"
	}
	return steps[:min(len(steps), promptText)]
}
