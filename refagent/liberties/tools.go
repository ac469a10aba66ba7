package liberties

import (
	"slices"
	"strings"
)

// toolLiberties are about how calls of tools are told.
func toolLiberties() []Liberty {
	list := of("told",
		liberty("tool-told-once", "tells of a call when it has ended, in one tool_call", "TOOL-002 TOOL-005", toldOnce),
		liberty("tool-never-in-progress", "goes from pending to the end of a call", "TOOL-005 TOOL-007", neverInProgress),
		liberty("tool-begins-in-progress", "announces calls that need no permission as in progress", "TOOL-005",
			beginsInProgress),
		liberty("tool-progress-late", "tells that a call runs when its terminal is there", "TOOL-010 TOOL-018",
			progressLate),
	)
	list = append(list, of("tool ids",
		liberty("tool-ids-own", "gives calls ids of its own", "TOOL-003", toolIDs(func(id string) string {
			return "toolu_" + strings.ToUpper(id)
		})),
		liberty("tool-ids-long", "gives calls ids of 1 KiB", "TOOL-003", toolIDs(func(id string) string {
			return id + "|" + strings.Repeat("fc_", 330)
		})),
	)...)
	return append(list, of("",
		liberty("tool-without-kind", "says no kind of a call", "TOOL-002", changeCalls(without("kind"))),
		liberty("tool-kind-other", "calls every call of the kind other", "TOOL-002 TOOL-004", changeCalls(func(u object) {
			if u["kind"] != nil {
				u["kind"] = "other"
			}
		})),
		liberty("tool-without-locations", "says no locations of a call", "TOOL-002", changeCalls(without("locations"))),
		liberty("tool-without-input", "shows neither input nor output of a call", "TOOL-020",
			changeCalls(without("rawInput", "rawOutput"))),
		liberty("tool-without-status", "leaves pending out, since it is the default", "TOOL-002",
			onlyUpdate("tool_call", func(u object) {
				if u["status"] == "pending" {
					delete(u, "status")
				}
			})),
		liberty("tool-without-content", "shows no content while a call is announced", "TOOL-007",
			onlyUpdate("tool_call", without("content"))),
		liberty("tool-without-diff", "shows changes of files as text", "TOOL-013", changeCalls(diffsAsText)),
		liberty("tool-without-terminal", "shows no terminal in a call", "TOOL-013 TOOL-018", changeCalls(noTerminals)),
		liberty("tool-title-plain", "has the same title for all calls", "TOOL-002", changeCalls(func(u object) {
			if u["title"] != nil {
				u["title"] = "Tool"
			}
		})),
		liberty("tool-title-from-root", "names files in titles from the root of the disk, without its slash", "TOOL-002",
			changeCalls(func(u object) {
				if title, ok := u["title"].(string); ok {
					u["title"] = strings.ReplaceAll(title, " /", " ")
				}
			})),
		liberty("tool-title-changes", "says more in the title when a call has ended", "TOOL-007",
			changeCalls(func(u object) {
				if ended(u) {
					u["title"] = "Done"
				}
			})),
		liberty("tool-updates-whole", "repeats all that it knows of a call in each update", "TOOL-007 TOOL-008",
			wholeUpdates),
	)...)
}

func without(keys ...string) func(u object) {
	return func(u object) {
		for _, k := range keys {
			delete(u, k)
		}
	}
}

// changeCalls changes what is said of a call, also in permission requests.
func changeCalls(change func(u object)) func(h *habits) {
	return out(func(m message) {
		if u := callOf(m); u != nil {
			change(u)
		}
	})
}

// callOf is what a message says of a call; nil if nothing.
func callOf(m message) object {
	if u, tag := updateOf(m); strings.HasPrefix(tag, "tool_call") {
		return u
	}
	if m["method"] == "session/request_permission" {
		return m.Object("params", "toolCall")
	}
	return nil
}

func ended(u object) bool { return u["status"] == "completed" || u["status"] == "failed" }

// toldOnce keeps what is said of a call until it has ended, the user has to be
// asked about it, or something of it stays open when the turn ends.
func toldOnce(h *habits) {
	kept := map[string]message{} // by session and call
	var order []string
	open := map[string]string{}
	release := func(k string) []message {
		m, ok := kept[k]
		delete(kept, k)
		if !ok {
			return nil
		}
		return []message{m}
	}
	h.In = append(h.In, func(m message) []message {
		if m["method"] == "session/prompt" {
			open[key(m["id"])] = sessionOf(m)
		}
		return []message{m}
	})
	h.Out = append(h.Out, func(m message) []message {
		if id, has := m["id"]; has && m["method"] == nil {
			session, isPrompt := open[key(id)]
			delete(open, key(id))
			var list []message
			for _, k := range order {
				if isPrompt && strings.HasPrefix(k, session+"\x00") {
					list = append(list, release(k)...)
				}
			}
			return append(list, m)
		}
		u := callOf(m)
		id, _ := u["toolCallId"].(string)
		k := sessionOf(m) + "\x00" + id
		_, tag := updateOf(m)
		before := kept[k]
		switch {
		case m["method"] == "elicitation/create":
			id, _ := m.Object("params")["toolCallId"].(string)
			return append(release(sessionOf(m)+"\x00"+id), m)
		case u == nil:
			return []message{m}
		case m["method"] == "session/request_permission":
			return append(release(k), m)
		case tag == "tool_call" && !ended(u):
			kept[k] = m
			order = append(order, k)
			return nil
		case before == nil:
			return []message{m}
		}
		told, _ := updateOf(before)
		for name, v := range u {
			if name != "sessionUpdate" && v != nil {
				told[name] = v
			}
		}
		if ended(u) || showsTerminal(told) {
			return release(k)
		}
		return nil
	})
}

// showsTerminal reports whether a terminal is shown, which has to be before it is
// released.
func showsTerminal(u object) bool {
	return slices.ContainsFunc(list(u["content"]), func(c object) bool { return c["type"] == "terminal" })
}

// neverInProgress leaves out the step between announcement and end.
func neverInProgress(h *habits) {
	h.Out = append(h.Out, func(m message) []message {
		u, tag := updateOf(m)
		if tag != "tool_call_update" || u["status"] != "in_progress" {
			return []message{m}
		}
		delete(u, "status")
		if len(u) == 2 { // the tag and the id
			return nil
		}
		return []message{m}
	})
}

// beginsInProgress announces calls as running, unless the user is asked first:
// what is said next of the call decides.
func beginsInProgress(h *habits) {
	kept := map[string]message{}
	h.Out = append(h.Out, func(m message) []message {
		u, tag := updateOf(m)
		session := sessionOf(m)
		if tag == "tool_call" {
			before := kept[session]
			kept[session] = m
			if before != nil {
				return []message{before}
			}
			return nil
		}
		before := kept[session]
		if session == "" && m["method"] == nil {
			// An answer: all that is kept goes before it.
			list := []message{}
			for s, b := range kept {
				list = append(list, b)
				delete(kept, s)
			}
			return append(list, m)
		}
		if before == nil {
			return []message{m}
		}
		delete(kept, session)
		told, _ := updateOf(before)
		if tag == "tool_call_update" && u["toolCallId"] == told["toolCallId"] && u["status"] == "in_progress" {
			told["status"] = "in_progress"
			delete(u, "status")
			if len(u) == 2 {
				return []message{before}
			}
		}
		return []message{before, m}
	})
}

// progressLate leaves out that a call runs until there is a terminal to show, if
// one is made.
func progressLate(h *habits) {
	kept := map[string]message{}
	flush := func(session string, m message) []message {
		before := kept[session]
		delete(kept, session)
		if before != nil {
			return []message{before, m}
		}
		return []message{m}
	}
	h.Out = append(h.Out, func(m message) []message {
		u, tag := updateOf(m)
		session := sessionOf(m)
		switch {
		case tag == "tool_call_update" && u["status"] == "in_progress" && u["content"] == nil && kept[session] == nil:
			kept[session] = m
			return nil
		case m["method"] == "terminal/create":
			return []message{m}
		case tag == "tool_call_update" && u["status"] == "in_progress" && u["content"] != nil:
			delete(kept, session)
			return []message{m}
		}
		return flush(session, m)
	})
}

func toolIDs(to func(id string) string) func(h *habits) {
	return out(func(m message) {
		u := callOf(m)
		if m["method"] == "elicitation/create" {
			u = m.Object("params")
		}
		if id, ok := u["toolCallId"].(string); ok {
			u["toolCallId"] = to(id)
		}
	})
}

func diffsAsText(u object) {
	content := list(u["content"])
	for _, c := range content {
		if c["type"] == "diff" {
			text, _ := c["newText"].(string)
			clear(c)
			c["type"], c["content"] = "content", object{"type": "text", "text": "Now:\n" + text}
		}
	}
}

func noTerminals(u object) {
	content, _ := u["content"].([]any)
	for i, c := range content {
		if c, ok := c.(object); ok && c["type"] == "terminal" {
			u["content"] = append(content[:i:i], content[i+1:]...)
			if len(content) == 1 {
				delete(u, "content")
			}
			return
		}
	}
}

// wholeUpdates repeats what was said of a call before.
func wholeUpdates(h *habits) {
	known := map[string]object{}
	h.Out = append(h.Out, func(m message) []message {
		u, tag := updateOf(m)
		if !strings.HasPrefix(tag, "tool_call") {
			return []message{m}
		}
		id, _ := u["toolCallId"].(string)
		k := sessionOf(m) + "\x00" + id
		if tag == "tool_call" || known[k] == nil {
			known[k] = m.Clone().Object("params", "update")
			return []message{m}
		}
		for name, v := range m.Clone().Object("params", "update") {
			if v != nil && name != "sessionUpdate" {
				known[k][name] = v
			}
		}
		for name, v := range (message{"u": known[k]}).Clone().Object("u") {
			if name != "sessionUpdate" {
				u[name] = v
			}
		}
		return []message{m}
	})
}
