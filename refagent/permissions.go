package refagent

import (
	"context"
	"errors"
	"fmt"
)

// askFor are the tools that need the user's permission in agentic mode, by
// pattern. Interactive mode asks for every tool.
var askFor = []string{"delete_*", "write_*", "edit_*", "move_*", "run_*", "switch_*"}

// The options of a permission request. The ids differ from the kinds on
// purpose: an editor has to send back the id.
const (
	allowOnce    = "allow-once"
	allowAlways  = "allow-always"
	rejectOnce   = "reject-once"
	rejectAlways = "reject-always"
)

type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

var permissionOptions = []permissionOption{
	{allowOnce, "Allow", "allow_once"},
	{allowAlways, "Always allow in this session", "allow_always"},
	{rejectOnce, "Reject", "reject_once"},
	{rejectAlways, "Always reject in this session", "reject_always"},
}

// errDismissed is a permission that was answered with outcome cancelled.
var errDismissed = errors.New("the user dismissed the request")

// permit asks the user where the policy says so. Anything but a clear yes
// means no. What holds for always is remembered by the tool's name until the
// session is opened anew.
func (a *agent) permit(ctx context.Context, s *session, w *work, current string) error {
	ask := matches(askFor, w.name) || current == modeInteractive
	if a.hooks.Ask != nil {
		ask = a.hooks.Ask(s.id, w.name, ask)
	}
	if !ask {
		return nil
	}
	s.mu.Lock()
	allowed, remembered := s.always[w.name]
	s.mu.Unlock()
	if remembered {
		return a.judge(s, w.name, map[bool]string{true: allowAlways, false: rejectAlways}[allowed], allowed)
	}

	var result struct {
		Outcome struct{ Outcome, OptionID string }
	}
	waiting := ctx
	if a.hooks.Patient != nil && a.hooks.Patient("session/request_permission") {
		waiting = context.WithoutCancel(ctx)
	}
	err := a.conn.call(waiting, "session/request_permission", s.id, map[string]any{
		"sessionId": s.id,
		"toolCall": update{
			ToolCallID: w.id, Title: w.title, Kind: kindOf(w.name), Status: statusPending,
			RawInput: w.args, Locations: w.locations, Content: anyContent(w.content),
		}.asToolCall(),
		"options": permissionOptions,
	}, &result)
	if ctx.Err() != nil {
		return errCancelled
	}
	if err != nil {
		return a.judgeError(s, w.name, fmt.Errorf("the editor could not ask the user: %w", err))
	}

	switch o := result.Outcome; {
	case o.Outcome == "cancelled":
		if a.judge(s, w.name, "cancelled", false) == nil {
			return nil
		}
		return errDismissed
	case o.Outcome != "selected":
		return a.judge(s, w.name, "error", false)
	case o.OptionID == allowAlways, o.OptionID == rejectAlways:
		s.mu.Lock()
		s.always[w.name] = o.OptionID == allowAlways
		s.mu.Unlock()
	}
	id := result.Outcome.OptionID
	return a.judge(s, w.name, id, id == allowOnce || id == allowAlways)
}

func (a *agent) judge(s *session, tool, answer string, allowed bool) error {
	if a.hooks.Allowed != nil {
		allowed = a.hooks.Allowed(s.id, tool, answer, allowed)
	}
	if !allowed {
		return errors.New("the user rejected this")
	}
	return nil
}

func (a *agent) judgeError(s *session, tool string, err error) error {
	if a.judge(s, tool, "error", false) == nil {
		return nil
	}
	return err
}
