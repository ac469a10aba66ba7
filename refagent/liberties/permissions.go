package liberties

import (
	"maps"
	"slices"
	"strings"
)

// choice is one option of a permission request.
type choice struct{ ID, Name, Kind string }

// permissionLiberties are about when and how the user is asked.
func permissionLiberties() []Liberty {
	return slices.Concat(
		of("asks",
			liberty("asks-for-everything", "asks before each tool", "PERM-001", asks("*")),
			liberty("asks-for-nothing", "asks before no tool", "PERM-001", asks()).takes("permission"),
			liberty("asks-for-commands", "asks before commands only", "PERM-001", asks("run_*")).takes("permission"),
			liberty("asks-for-files", "asks before files are changed, and not before commands", "PERM-001",
				asks("write_*", "edit_*", "delete_*", "move_*")).takes("permission"),
		),
		of("choices",
			liberty("choices-reversed", "offers to reject first", "PERM-003 PERM-008", choices(
				choice{ID: "never", Name: "Never", Kind: "reject_always"}, choice{ID: "no", Name: "No", Kind: "reject_once"},
				choice{ID: "always", Name: "Always", Kind: "allow_always"}, choice{ID: "yes", Name: "Yes", Kind: "allow_once"})),
			liberty("choices-two", "offers to allow or to reject once", "PERM-003 PERM-004", choices(
				choice{ID: "1", Name: "Yes", Kind: "allow_once"}, choice{ID: "2", Name: "No", Kind: "reject_once"})).
				takes("always"),
			liberty("choices-no-never", "does not offer to reject for always", "PERM-003 PERM-004", choices(
				choice{ID: "proceed_once", Name: "Allow once", Kind: "allow_once"},
				choice{ID: "proceed_always", Name: "Allow for this session", Kind: "allow_always"},
				choice{ID: "cancel", Name: "Reject", Kind: "reject_once"})).takes("always"),
			liberty("choices-doubled", "offers two options of the same kind", "PERM-003 PERM-005", choices(
				choice{ID: "allow", Name: "Allow", Kind: "allow_once"},
				choice{ID: "allow-and-tell", Name: "Allow and tell me", Kind: "allow_once"},
				choice{ID: "allow-session", Name: "Allow in this session", Kind: "allow_always"},
				choice{ID: "allow-folder", Name: "Allow in this folder", Kind: "allow_always"},
				choice{ID: "deny", Name: "Deny", Kind: "reject_once"},
				choice{ID: "deny-and-stop", Name: "Deny for good", Kind: "reject_always"})),
			liberty("choices-swapped-ids", "has option ids that are the names of other kinds", "PERM-008", choices(
				choice{ID: "reject_once", Name: "Allow", Kind: "allow_once"},
				choice{ID: "reject_always", Name: "Allow always", Kind: "allow_always"},
				choice{ID: "allow_once", Name: "Reject", Kind: "reject_once"},
				choice{ID: "allow_always", Name: "Reject always", Kind: "reject_always"})),
		),
		of("order",
			liberty("permissions-first", "asks for all calls of a reply before it runs one", "PERM-006", order("first")),
			liberty("permissions-together", "asks for all calls of a reply at the same time", "PERM-006",
				order("together")),
			liberty("permissions-reversed", "asks for the last call of a reply first", "PERM-006", order("reversed")),
		),
		of("",
			liberty("permission-bare", "names only the call in a permission request", "PERM-002 TOOL-007",
				onPermission(func(call object) {
					for k := range call {
						if k != "toolCallId" {
							delete(call, k)
						}
					}
				})),
			liberty("permission-without-kind", "says no kind of the call in a permission request", "PERM-002 TOOL-007",
				onPermission(without("kind"))),
			liberty("permission-with-other-title", "words the title in a permission request as a question", "PERM-002",
				onPermission(func(call object) { call["title"] = "May I?" })),
			liberty("always-per-file", "asks again for another file after an answer for always", "PERM-009",
				func(h *habits) { h.PerFile = true }).takes("always"),
			liberty("extra-question", "asks in each turn whether tools may be used", "PERM-001",
				func(h *habits) { h.ExtraQuestion = true }).takes("permission"),
			liberty("rejection-ends", "ends the turn when a call is rejected", "PROMPT-012",
				func(h *habits) { h.RejectionEnds = true }),
			liberty("rejection-ends-all",
				"asks for all calls of a reply, and runs none of them and ends the turn when one is rejected", "PROMPT-012",
				func(h *habits) { h.RejectionEnds, h.AskOrder = true, "first" }),
			liberty("dismissal-cancels", "takes the outcome cancelled of a permission for the cancel of its turn", "CANCEL-015",
				func(h *habits) { h.DismissalCancels = true }),
		),
	)
}

func asks(patterns ...string) func(h *habits) {
	return func(h *habits) { h.Asks = append([]string{}, patterns...) }
}

// choices offers other options, there and back again: those of a kind stand for the
// reference agent's own.
func choices(offered ...choice) func(h *habits) {
	own := func(kind string) string { return strings.ReplaceAll(kind, "_", "-") }
	return func(h *habits) {
		out(func(m message) {
			if m["method"] != "session/request_permission" {
				return
			}
			all := list(m.Object("params")["options"])
			options := []any{}
			for _, c := range offered {
				for _, o := range all {
					if o["optionId"] == own(c.Kind) {
						o := maps.Clone(o)
						o["optionId"], o["name"] = c.ID, c.Name
						options = append(options, o)
					}
				}
			}
			for _, o := range all {
				if kind, _ := o["kind"].(string); o["optionId"] != own(kind) {
					options = append(options, o) // another question
				}
			}
			m.Object("params")["options"] = options
		})(h)
		h.In = append(h.In, func(m message) []message {
			if o := m.Object("result", "outcome"); o["outcome"] == "selected" {
				for _, c := range offered {
					if o["optionId"] == c.ID {
						o["optionId"] = own(c.Kind)
						break
					}
				}
			}
			return []message{m}
		})
	}
}

func order(how string) func(h *habits) {
	return func(h *habits) { h.AskOrder = how }
}

func onPermission(change func(call object)) func(h *habits) {
	return out(func(m message) {
		if m["method"] == "session/request_permission" {
			change(m.Object("params", "toolCall"))
		}
	})
}
