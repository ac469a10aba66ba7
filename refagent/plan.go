package refagent

import "slices"

// plan adds a step to the session's plan and shows the whole of it.
func (a *agent) plan(s *session, step string) {
	entries := append(s.plan(), planEntry{Content: step, Priority: "medium", Status: statusPending})
	a.record(s, update{Tag: "plan", Entries: entries})
}

// plan is a copy of the session's plan.
func (s *session) plan() []planEntry {
	return locked(s, func() []planEntry { return slices.Clone(s.rec.plan) })
}

// planStep shows the progress of a step that was planned and is now done.
func (a *agent) planStep(s *session, step, status string) {
	entries := s.plan()
	at := slices.IndexFunc(entries, func(e planEntry) bool { return e.Content == step && e.Status != statusCompleted })
	if at < 0 {
		return
	}
	entries[at].Status = status
	a.record(s, update{Tag: "plan", Entries: entries})
}
