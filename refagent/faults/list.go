package faults

import (
	"path"
	"time"
)

func listFaults() []Fault {
	const list = "session/list"
	each := func(change func(entry object)) func(object) {
		return func(r object) {
			sessions, _ := r["sessions"].([]any)
			for _, s := range sessions {
				if o, ok := s.(object); ok {
					change(o)
				}
			}
		}
	}
	return []Fault{
		{
			Name:    "list-null",
			Summary: "answers session/list with null where no session fits",
			Hooks:   onResult(list, func(r object) { r["sessions"] = nil }),
		},
		{
			Name:    "list-without-sessions",
			Summary: "answers session/list without the list",
			Hooks:   onResult(list, func(r object) { delete(r, "sessions") }),
		},
		{
			Name:    "list-cursor-repeats",
			Summary: "always says that there is another page, with the same cursor",
			Hooks:   with(repeatCursor),
		},
		{
			Name:    "list-ignores-cwd",
			Summary: "lists the sessions of all directories, whatever is asked for",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if is(m, list) {
						delete(m.Object("params"), "cwd")
					}
					return true
				}
			}),
		},
		{
			Name:    "list-relative-cwd",
			Summary: "lists sessions with the last part of their directory only",
			Hooks:   onResult(list, each(func(e object) { s, _ := e["cwd"].(string); e["cwd"] = path.Base(s) })),
		},
		{
			Name:    "list-time-as-number",
			Summary: "gives the time of a session as a number",
			Hooks:   onResult(list, each(func(e object) { e["updatedAt"] = time.Now().Unix() })),
		},
		{
			Name:    "list-doubles",
			Summary: "lists every session twice",
			Hooks: onResult(list, func(r object) {
				s, _ := r["sessions"].([]any)
				r["sessions"] = append(s, s...)
			}),
		},
	}
}

func repeatCursor(t *tap) {
	t.in = func(m message) bool {
		if p := m.Object("params"); is(m, "session/list") && p["cursor"] == "again" {
			delete(p, "cursor")
		}
		return true
	}
	t.out = func(f frame) bool {
		if r, ok := f.Message["result"].(object); ok && answers(f, "session/list") {
			r["nextCursor"] = "again"
		}
		return true
	}
}
