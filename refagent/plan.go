package refagent

import "slices"

// plan adds a step to the session's plan and shows the whole of it.
func (a *agent) plan(s *session, step string) {
	s.mu.Lock()
	entries := append(slices.Clone(s.rec.plan), planEntry{Content: step, Priority: "medium", Status: statusPending})
	s.mu.Unlock()
	a.record(s, update{Tag: "plan", Entries: entries})
}

// planStep shows the progress of a step that was planned and is now done.
func (a *agent) planStep(s *session, step, status string) {
	s.mu.Lock()
	entries := slices.Clone(s.rec.plan)
	s.mu.Unlock()
	at := slices.IndexFunc(entries, func(e planEntry) bool { return e.Content == step && e.Status != statusCompleted })
	if at < 0 {
		return
	}
	entries[at].Status = status
	a.record(s, update{Tag: "plan", Entries: entries})
}
