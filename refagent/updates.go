package refagent

import (
	"slices"
)

// update is the update in a session/update notification. Tag determines which fields are set, as in the v1 schema.
// Content is a content block for chunks, and a list of toolContent for tool calls.
type update struct {
	Tag              string         `json:"sessionUpdate"`
	MessageID        string         `json:"messageId,omitempty"`
	ToolCallID       string         `json:"toolCallId,omitempty"`
	CompactionID     string         `json:"compactionId,omitempty"`
	SessionID        string         `json:"sessionId,omitempty"` // of a child session
	Sender           string         `json:"senderSessionId,omitempty"`
	Recipient        string         `json:"recipientSessionId,omitempty"`
	SenderMessage    string         `json:"senderMessageId,omitempty"`
	RecipientMessage string         `json:"recipientMessageId,omitempty"`
	Capabilities     object         `json:"capabilities,omitempty"`
	Severity         string         `json:"severity,omitempty"`
	Title            string         `json:"title,omitempty"`
	Kind             string         `json:"kind,omitempty"`
	Status           string         `json:"status,omitempty"`
	Content          any            `json:"content,omitempty"`
	Summary          []textBlock    `json:"summary,omitempty"` // of a completed compaction
	Error            string         `json:"error,omitempty"`   // of a failed compaction
	Locations        []location     `json:"locations,omitempty"`
	RawInput         any            `json:"rawInput,omitempty"`
	RawOutput        any            `json:"rawOutput,omitempty"`
	Entries          []planEntry    `json:"entries,omitzero"`
	Commands         []command      `json:"availableCommands,omitempty"`
	Mode             string         `json:"currentModeId,omitempty"`
	Options          []configOption `json:"configOptions,omitempty"`
	Used             *int64         `json:"used,omitempty"`
	Size             *int64         `json:"size,omitempty"`
}

type location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"` // counted from 1
}

type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func text(s string) textBlock { return textBlock{"text", s} }

// toolContent is one entry of a tool call's content.
type toolContent struct {
	Type       string  `json:"type"` // content, diff, terminal or session
	Content    any     `json:"content,omitempty"`
	Path       string  `json:"path,omitempty"`
	OldText    *string `json:"oldText,omitempty"` // nil for a new file
	NewText    *string `json:"newText,omitempty"`
	TerminalID string  `json:"terminalId,omitempty"`
	SessionID  string  `json:"sessionId,omitempty"`
}

func textContent(s string) []toolContent {
	return []toolContent{{Type: "content", Content: text(s)}}
}

func diffContent(path string, before *string, after string) []toolContent {
	return []toolContent{{Type: "diff", Path: path, OldText: before, NewText: &after}}
}

// tell sends an update of the session to the editor.
func (a *agent) tell(s *session, u update) {
	if s.parent != nil && s.id == s.parent.id || !a.shown(u.Tag) {
		return // the editor does not support this child or update
	}
	if a.v2() {
		if m := s.shown(u); m != nil {
			s.notify(m)
		}
		return
	}
	if u.Status == statusCancelled && u.ToolCallID != "" { // from a log of version 2
		u.Status = statusFailed
	}
	a.conn.notify("session/update", s.id, struct {
		SessionID string `json:"sessionId"`
		Update    update `json:"update"`
	}{s.id, u})
}

// record writes an update of the conversation to the log and then sends it, so that session/load can replay
// everything that an editor has received.
func (a *agent) record(s *session, u update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(event{Type: eventUpdate, Update: &u})
	a.tell(s, u)
}

// plan adds a step to the session's plan and sends the complete plan.
func (a *agent) plan(s *session, step string) {
	entries := append(s.plan(), planEntry{Content: step, Priority: "medium", Status: statusPending})
	a.record(s, update{Tag: "plan", Entries: entries})
}

// plan returns a copy of the session's plan.
func (s *session) plan() []planEntry {
	return locked(s, func() []planEntry { return slices.Clone(s.rec.plan) })
}

// planStep changes the status of a step and sends the complete plan. It does nothing if the plan has no such step.
func (a *agent) planStep(s *session, step, status string) {
	entries := s.plan()
	at := slices.IndexFunc(entries, func(e planEntry) bool { return e.Content == step && e.Status != statusCompleted })
	if at < 0 {
		return
	}
	entries[at].Status = status
	a.record(s, update{Tag: "plan", Entries: entries})
}

// compact replaces the conversation so far by a summary that the model writes. It logs only the final update, so that
// an interrupted compaction leaves no trace in the session.
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

// shown reports whether the editor supports an update. In version 1, some updates require a client capability.
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

// warn sends the user a warning outside of the conversation, if the editor supports notices.
func (a *agent) warn(s *session, title string) {
	a.tell(s, update{Tag: "notice", Severity: "warning", Title: title})
}
