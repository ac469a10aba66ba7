package liberties

import (
	"slices"
	"strings"
)

// stateLiberties are about what is told of a session beside its conversation, and
// how it is stored.
func stateLiberties() []Liberty {
	return slices.Concat(
		of("commands",
			liberty("commands-none", "has no slash commands", "CMD-002", dropping("available_commands_update")).
				takes("available_commands_update"),
			liberty("commands-again", "sends its commands at the begin of each turn", "CMD-002", commandsAgain),
			liberty("commands-with-input", "has commands that take words", "CMD-001",
				onlyUpdate("available_commands_update", func(u object) {
					for _, c := range list(u["availableCommands"]) {
						c["input"] = object{"hint": "what to look at"}
					}
				})),
		),
		of("usage",
			liberty("usage-none", "says nothing of usage", "USAGE-004", dropping("usage_update")).takes("usage_update"),
			liberty("usage-with-cost", "says what a session cost", "USAGE-002 USAGE-005", usageWithCost),
			liberty("usage-often", "repeats the usage after each call", "USAGE-006", usageOften),
		),
		of("info",
			liberty("title-none", "gives sessions no title", "INFO-004", func(h *habits) { h.Untitled = true }).
				takes("title"),
			liberty("info-often", "tells when a session was active, at any time", "INFO-001 INFO-003", infoOften),
		),
		of("replay",
			liberty("replay-as-sent", "replays texts in the pieces in which they were sent", "LOAD-003 MSG-002",
				func(h *habits) { h.AsSent = true }),
			liberty("replay-trimmed", "replays texts without white space around them", "LOAD-003",
				func(h *habits) { h.Trims = true }),
		),
		of("list order",
			liberty("list-oldest-first", "lists the oldest session first", "LIST-002",
				func(h *habits) { h.OldestFirst = true }),
			liberty("list-one-by-one", "lists one session a page", "LIST-009", func(h *habits) { h.PageSize = 1 }),
			liberty("list-long", "lists 500 sessions a page", "LIST-009", func(h *habits) { h.PageSize = 500 }).
				takes("page"),
		),
		of("",
			liberty("list-without-empty", "does not list sessions without a prompt", "LIST-013",
				func(h *habits) { h.HidesEmpty = true }),
			liberty("list-without-time", "does not say when a session was active", "LIST-006", out(func(m message) {
				for _, s := range list(m.Object("result")["sessions"]) {
					delete(s, "updatedAt")
				}
			})),
			liberty("real-paths", "resolves links in the paths of a session", "SESSION-006",
				func(h *habits) { h.RealPaths = true }),
		),
		of("servers",
			liberty("servers-late", "connects MCP servers in the first turn", "SESSION-012",
				func(h *habits) { h.LateServers = true }),
			liberty("servers-early", "connects MCP servers before it answers session/new", "SESSION-012",
				func(h *habits) { h.EarlyServers = true }),
		),
	)
}

// commandsAgain repeats the commands of a session before the first update of each
// of its turns.
func commandsAgain(h *habits) {
	known, fresh := map[string]message{}, map[string]bool{}
	h.In = append(h.In, func(m message) []message {
		if m["method"] == "session/prompt" {
			fresh[sessionOf(m)] = true
		}
		return []message{m}
	})
	h.Out = append(h.Out, func(m message) []message {
		session := sessionOf(m)
		_, tag := updateOf(m)
		if tag == "available_commands_update" {
			known[session] = m.Clone()
			return []message{m}
		}
		if tag != "" && fresh[session] && known[session] != nil {
			fresh[session] = false
			return []message{known[session].Clone(), m}
		}
		return []message{m}
	})
}

func usageWithCost(h *habits) {
	total := map[string]float64{}
	h.Out = append(h.Out, func(m message) []message {
		if u, tag := updateOf(m); tag == "usage_update" {
			total[sessionOf(m)] += 0.25
			u["cost"] = object{"amount": total[sessionOf(m)], "currency": "EUR"}
		}
		return []message{m}
	})
}

// usageOften repeats the last usage of a session after each call of a tool.
func usageOften(h *habits) {
	last := map[string]message{}
	h.Out = append(h.Out, func(m message) []message {
		session := sessionOf(m)
		u, tag := updateOf(m)
		if tag == "usage_update" {
			last[session] = m.Clone()
		}
		if strings.HasPrefix(tag, "tool_call") && ended(u) && last[session] != nil {
			return []message{m, last[session].Clone()}
		}
		return []message{m}
	})
}

// infoOften tells of a session's activity with each answer about it.
func infoOften(h *habits) {
	of := map[string]string{}
	h.In = append(h.In, func(m message) []message {
		if id, asks := m["id"]; asks && m["method"] == "session/prompt" {
			of[key(id)] = sessionOf(m)
		}
		return []message{m}
	})
	h.Out = append(h.Out, func(m message) []message {
		id, answers := m["id"]
		session := of[key(id)]
		if !answers || m["method"] != nil || session == "" {
			return []message{m}
		}
		delete(of, key(id))
		if m["error"] != nil {
			return []message{m} // perhaps there is no such session
		}
		info := func(at string) message {
			return update(session, object{"sessionUpdate": "session_info_update", "updatedAt": at})
		}
		return []message{info("2026-01-02T03:04:05Z"), m, info("2026-01-02T03:04:06.5+01:00")}
	})
}
