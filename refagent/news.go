package refagent

// compact puts a summary that the model makes in the place of what was said so far. The event of its end
// is the one that is recorded: what broke off is no part of the session.
func (a *agent) compact(s *session, t *turn) (stop string, err error) {
	c := update{Tag: "compaction_update", CompactionID: s.messageID(), Status: statusInProgress}
	a.tell(s, c)
	history := a.context(s)
	history[len(history)-1].Text = "Write a summary of the conversation so far, to go on from."
	r, err := a.model.Ask(t.ctx, history, nil, func(p Piece) {
		if p.Text != "" && t.ctx.Err() == nil {
			a.tell(s, update{Tag: "compaction_summary_chunk", CompactionID: c.CompactionID, Content: text(p.Text)})
		}
	})
	switch {
	case t.ctx.Err() != nil:
		c.Status = statusCancelled
	case err != nil:
		c.Status, c.Error = statusFailed, turnError(err).Message
	default:
		c.Status, c.Summary = statusCompleted, []textBlock{text(r.Text)}
		a.record(s, c)
		if !a.shown(c.Tag) {
			a.say(s, "The conversation is replaced by a summary.")
		}
		return stopEndTurn, nil
	}
	a.tell(s, c)
	return "", err
}

// shown reports whether the editor takes an update: in version 1 some need a capability of it.
func (a *agent) shown(tag string) bool {
	client := a.capabilities()
	switch tag {
	case "notice":
		return a.v2() || client.Notices
	case "compaction_update", "compaction_summary_chunk":
		return a.v2() || client.Compaction
	case "subagent_update", "session_message":
		return a.shows()
	}
	return true
}

// warn tells the user what is no part of the conversation, if the editor takes notices.
func (a *agent) warn(s *session, title string) {
	a.tell(s, update{Tag: "notice", Severity: "warning", Title: title})
}
