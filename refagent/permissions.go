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
	{allowOnce, "Allow", kindAllowOnce},
	{allowAlways, "Always allow in this session", kindAllowAlways},
	{rejectOnce, "Reject", kindRejectOnce},
	{rejectAlways, "Always reject in this session", kindRejectAlways},
}

// The kinds of options.
const (
	kindAllowOnce    = "allow_once"
	kindAllowAlways  = "allow_always"
	kindRejectOnce   = "reject_once"
	kindRejectAlways = "reject_always"
)

// errRejected is a permission that was not given.
var errRejected = errors.New("the user rejected this")

// errDismissed is a permission that was answered with outcome cancelled.
var errDismissed = errors.New("the user dismissed the request")

// permit asks the user where the policy says so. Anything but a clear yes
// means no. What holds for always is remembered by the tool's name until the
// session is opened anew.
func (a *agent) permit(ctx context.Context, s *session, w *work, current string) error {
	patterns := askFor
	if a.habits.Asks != nil {
		patterns = a.habits.Asks
	}
	if !matches(patterns, w.name) && current != modeInteractive {
		return nil
	}
	sort := w.name
	if a.habits.PerFile {
		sort += " " + w.args.str("path")
	}
	s.mu.Lock()
	allowed, remembered := s.always[sort]
	s.mu.Unlock()
	if remembered {
		return permitted(allowed)
	}

	answer, kind, err := a.question(ctx, s, w, permissionOptions)
	switch {
	case ctx.Err() != nil:
		return errCancelled
	case err != nil:
		return fmt.Errorf("the editor could not ask the user: %w", err)
	case answer == "cancelled" && kind == "":
		if a.habits.DismissalCancels {
			s.mu.Lock()
			t := s.turn
			s.mu.Unlock()
			a.cancelOne(s, t)
		}
		return errDismissed
	case kind == kindAllowAlways, kind == kindRejectAlways:
		s.mu.Lock()
		s.always[sort] = kind == kindAllowAlways
		s.mu.Unlock()
	}
	return permitted(kind == kindAllowOnce || kind == kindAllowAlways)
}

// question puts a call before the user. answer is the chosen option's id and kind
// its kind, or "cancelled" or "error" without a kind.
func (a *agent) question(ctx context.Context, s *session, w *work, options []permissionOption) (answer, kind string,
	err error) {
	var result struct {
		Outcome struct{ Outcome, OptionID string }
	}
	call := update{
		ToolCallID: w.id, Title: w.title, Kind: kindOf(w.name), Status: statusPending,
		RawInput: w.args, Locations: w.locations, Content: anyContent(w.content),
	}.asToolCall()
	params := object{"sessionId": s.id, "toolCall": call, "options": options}
	if a.v2() {
		call = asObject(call)
		s.callInV2(call)
		params = object{"sessionId": s.id, "title": w.title, "options": options,
			"subject": object{"type": "tool_call", "toolCall": call}}
	}
	done := s.wait()
	err = a.conn.call(ctx, "session/request_permission", s.id, params, &result)
	done()
	switch o := result.Outcome; {
	case err != nil || ctx.Err() != nil:
		return "", "", err
	case o.Outcome == "cancelled":
		return "cancelled", "", nil
	case o.Outcome != "selected":
		return "error", "", nil
	}
	answer = result.Outcome.OptionID
	for _, o := range options {
		if o.ID == answer {
			kind = o.Kind
		}
	}
	return answer, kind, nil
}

func permitted(allowed bool) error {
	if !allowed {
		return errRejected
	}
	return nil
}
