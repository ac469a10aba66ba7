package main

import (
	"context"
	"slices"

	acp "github.com/coder/acp-go-sdk"
)

// moded reports whether sessions have modes: one in which the user is asked about calls, and one for those who trust.
func moded() bool {
	return fault("mode-of-set-mode-missing-in-options") || fault("mode-changed-by-answer-not-told") ||
		fault("current-mode-set-again-refused") || fault("new-session-names-last-mode-by-its-title") ||
		fault("mode-of-answer-told-by-option-id")
}

var modeIds = []string{"ask", "auto"}

// modes offers the modes in the older form.
func (s *session) modes() *acp.SessionModeState {
	if !moded() {
		return nil
	}
	all := []acp.SessionMode{{Id: "ask", Name: "Ask before commands"}, {Id: "auto", Name: "Run commands"}}
	current := acp.SessionModeId(s.mode)
	if i := slices.Index(modeIds, s.mode); i >= 0 && s.inherited {
		current = acp.SessionModeId(all[i].Name)
	}
	return &acp.SessionModeState{CurrentModeId: current, AvailableModes: all}
}

// inherit lets a new session begin in the mode that the user chose last. The caller holds the lock.
func (g *gofer) inherit(s *session) {
	if g.chosen != "" && fault("new-session-names-last-mode-by-its-title") {
		s.mode, s.shown, s.inherited = g.chosen, g.chosen, true
	}
}

// modeOption offers the modes as an option.
func (s *session) modeOption() []acp.SessionConfigOption {
	if !moded() {
		return nil
	}
	list := acp.SessionConfigSelectOptionsUngrouped{
		{Name: "Ask before commands", Value: "ask"}, {Name: "Run commands", Value: "auto"}}
	o := acp.NewSessionConfigOptionSelect(acp.SessionConfigValueId(s.shown),
		acp.SessionConfigSelectOptions{Ungrouped: &list})
	o.Select.Id, o.Select.Name = "mode", "Mode"
	o.Select.Category = acp.Ptr(acp.SessionConfigOptionCategoryMode)
	return []acp.SessionConfigOption{o}
}

// setMode sets the mode of a session in the older form. The caller holds the lock.
func (g *gofer) setMode(sid acp.SessionId, mode string) error {
	s := g.sessions[string(sid)]
	if s == nil {
		return notFound(sid)
	}
	if !slices.Contains(modeIds, mode) {
		return acp.NewInvalidParams(map[string]any{"modeId": mode})
	}
	g.chosen = mode
	if s.mode = mode; !fault("mode-of-set-mode-missing-in-options") {
		s.shown = mode
	}
	return nil
}

// enter sets the mode of a session in the older form, and tells the options of it.
func (g *gofer) enter(sid acp.SessionId, mode string) error {
	g.mu.Lock()
	s := g.sessions[string(sid)]
	if s != nil && s.mode == mode && fault("current-mode-set-again-refused") {
		g.mu.Unlock()
		return broken("Already in the mode "+mode, string(sid))
	}
	if err := g.setMode(sid, mode); err != nil {
		g.mu.Unlock()
		return err
	}
	options := g.options(s)
	g.mu.Unlock()
	if !fault("mode-of-set-mode-missing-in-options") {
		_ = g.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: sid,
			Update: acp.SessionUpdate{ConfigOptionUpdate: &acp.SessionConfigOptionUpdate{ConfigOptions: options}}})
	}
	return nil
}

// trust lets the session run all further calls without a question.
func (t *turn) trust() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.s.mode, t.s.shown = "auto", "auto"
}

// trustAfter is trust, for an answer that the user has chosen, and tells the editor of it.
func (t *turn) trustAfter(chosen acp.PermissionOptionId) {
	t.trust()
	t.g.mu.Lock()
	options := t.g.options(t.s)
	t.g.mu.Unlock()
	t.tell(acp.SessionUpdate{CurrentModeUpdate: &acp.SessionCurrentModeUpdate{
		CurrentModeId: acp.SessionModeId(chosen)}})
	t.tell(acp.SessionUpdate{ConfigOptionUpdate: &acp.SessionConfigOptionUpdate{ConfigOptions: options}})
}

// setModeOption sets the mode of a session as an option, and tells the older form of it.
func (g *gofer) setModeOption(sid, mode string) (res acp.SetSessionConfigOptionResponse, err error) {
	g.mu.Lock()
	if err = g.setMode(acp.SessionId(sid), mode); err == nil {
		s := g.sessions[sid]
		s.shown = mode
		res.ConfigOptions = g.options(s)
	}
	g.mu.Unlock()
	if err == nil {
		_ = g.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: acp.SessionId(sid),
			Update: acp.SessionUpdate{CurrentModeUpdate: &acp.SessionCurrentModeUpdate{CurrentModeId: acp.SessionModeId(mode)}}})
	}
	return res, err
}

// trusts reports whether the session runs calls without a question.
func (t *turn) trusts() bool {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	return t.s.mode == "auto"
}
