package prompt

import (
	"errors"
	"fmt"
)

// Status is an exit status other than 0. The reason has been printed already.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Codes returns the allowed values of Options.Codes, which determine the exit status.
func Codes() []string { return []string{"simple", "acp"} }

// of has, for the codes "acp", the exit status for each way in which a turn can end. The status of any other end is 1.
// With the codes "simple", the status of every failure is 1.
var of = map[string]int{
	"max_tokens": 3, "max_turn_requests": 4, "refusal": 5, "cancelled": 6, "tool": 7, "timeout": 124,
}

// verdict returns the exit status of the command, as a Status or nil, and prints the reason to Err. code is the exit
// status after an interrupt, or 0 without one. An error before the first turn is returned unchanged.
func (t *Client) verdict(code int, began bool, stop string, err error) error {
	end := func(code int, format string, args ...any) error {
		fmt.Fprintf(t.options.Err, "acp-test: "+format+"\n", args...)
		return Status(code)
	}
	status := func(how string) int {
		if code := of[how]; code != 0 && t.options.Codes == "acp" {
			return code
		}
		return 1
	}
	if code != 0 {
		return end(code, "%s", interrupted(began, stop, err))
	}
	switch {
	case t.late.Load() && err == nil:
		return end(status("timeout"), "the turn took longer than %v (--timeout) and was cancelled; it ended with %q",
			t.options.Timeout, OneLine(stop))
	case t.late.Load():
		return end(status("timeout"), "the turn took longer than %v (--timeout): %v", t.options.Timeout, err)
	case err != nil && began:
		return end(1, "%v", err)
	case err != nil:
		return fmt.Errorf("%s: %w", t.agent.Name, err)
	case stop == "":
		return end(1, "the turn ended without a stop reason")
	case stop != "end_turn":
		return end(status(stop), "the turn ended with %q", OneLine(stop))
	case t.screen.broke && t.options.Codes == "acp":
		return end(status("tool"), "the turn ended with end_turn, but a tool call had failed")
	}
	return nil
}

// interrupted returns a sentence that says how an interrupted turn ended.
func interrupted(began bool, stop string, err error) string {
	switch {
	case !began:
		return "interrupted before a turn began"
	case err == nil && stop == "cancelled":
		return "cancelled"
	case err == nil:
		return fmt.Sprintf("cancelled, but the turn ended with %q", OneLine(stop))
	case errors.Is(err, errInterrupted):
		return "cancelled; acp-test stopped the agent before it answered"
	}
	return fmt.Sprintf("cancelled, but %v", err)
}
