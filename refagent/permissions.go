package refagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// askFor lists patterns for the tools that need the user's permission in agentic mode. In interactive mode, every
// tool needs it.
var askFor = []string{"delete_*", "write_*", "edit_*", "move_*", "run_*", "switch_*"}

type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// permissionOptions are the options of a permission request. The ids deliberately differ from the kinds, because an
// editor must answer with the id.
var permissionOptions = []permissionOption{
	{"allow-once", "Allow", kindAllowOnce},
	{"allow-always", "Always allow in this session", kindAllowAlways},
	{"reject-once", "Reject", kindRejectOnce},
	{"reject-always", "Always reject in this session", kindRejectAlways},
}

// The kinds of options.
const (
	kindAllowOnce    = "allow_once"
	kindAllowAlways  = "allow_always"
	kindRejectOnce   = "reject_once"
	kindRejectAlways = "reject_always"
)

// errRejected means that the user did not give permission.
var errRejected = errors.New("the user rejected this")

// dismissed is the outcome of a permission request that the user closed without
// an answer.
const dismissed = "cancelled"

// errDismissed means that a permission request was answered with the outcome cancelled.
var errDismissed = errors.New("the user dismissed the request")

// permit asks the user for permission to run a tool call, if the mode requires it. It returns an error unless the
// user allows the call. It remembers an *_always answer for the tool's name until the session is opened again.
func (a *agent) permit(ctx context.Context, s *session, w *work, current string) error {
	patterns := askFor
	if a.habits.Asks != nil {
		patterns = a.habits.Asks
	}
	asks := matches(patterns, w.name)
	switch current {
	case modeInteractive:
		asks = true
	case modeEditing:
		asks = asks && kindOf(w.name) != "edit"
	case modeTrusting:
		asks = false
	}
	if !asks {
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

	kind, err := a.question(ctx, s, w, permissionOptions)
	switch {
	case ctx.Err() != nil:
		return errCancelled
	case err != nil:
		return fmt.Errorf("the editor could not ask the user: %w", err)
	case kind == dismissed:
		if a.habits.DismissalCancels {
			a.cancelOne(s, s.running())
		}
		return errDismissed
	case kind == kindAllowAlways, kind == kindRejectAlways:
		s.mu.Lock()
		s.always[sort] = kind == kindAllowAlways
		s.mu.Unlock()
	}
	return permitted(kind == kindAllowOnce || kind == kindAllowAlways)
}

// question asks the user about a call. kind is the kind of the chosen option, dismissed if the outcome is cancelled,
// and "" for an invalid answer.
func (a *agent) question(ctx context.Context, s *session, w *work, options []permissionOption) (kind string,
	err error) {
	var result struct {
		Outcome struct{ Outcome, OptionID string }
	}
	call := asObject(w.announced())
	delete(call, "sessionUpdate")
	params := object{"sessionId": s.id, "toolCall": call, "options": options}
	if a.v2() {
		s.callInV2(call)
		params = object{"sessionId": s.id, "title": w.title, "options": options,
			"subject": object{"type": "tool_call", "toolCall": call}}
	}
	err = s.ask(ctx, "session/request_permission", params, &result)
	o := result.Outcome
	at := slices.IndexFunc(options, func(option permissionOption) bool { return option.ID == o.OptionID })
	switch {
	case err != nil || ctx.Err() != nil:
		return "", err
	case o.Outcome == dismissed:
		return dismissed, nil
	case o.Outcome == "selected" && at >= 0:
		return options[at].Kind, nil
	}
	return "", nil
}

func permitted(allowed bool) error {
	if !allowed {
		return errRejected
	}
	return nil
}
