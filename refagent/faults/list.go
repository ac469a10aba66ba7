package faults

import (
	"path"
	"time"
)

func listFaults() []Fault {
	const list = "session/list"
	each := func(change func(entry object)) func(object) {
		return func(r object) {
			for o := range objects(r["sessions"], "") {
				change(o)
			}
		}
	}
	return []Fault{
		fault("list-null", "answers session/list with null where no session fits",
			onResult(list, func(r object) { r["sessions"] = nil })),
		fault("list-without-sessions", "answers session/list without the list",
			onResult(list, func(r object) { delete(r, "sessions") })),
		fault("list-cursor-repeats", "always says that there is another page, with the same cursor",
			with(repeatCursor)),
		fault("list-ignores-cwd", "lists the sessions of all directories, whatever is asked for", with(func(t *tap) {
			t.received = func(m message) {
				if is(m, list) {
					delete(m.Object("params"), "cwd")
				}
			}
		})),
		fault("list-relative-cwd", "lists sessions with the last part of their directory only",
			onResult(list, each(func(e object) { s, _ := e["cwd"].(string); e["cwd"] = path.Base(s) }))),
		fault("list-time-as-number", "gives the time of a session as a number",
			onResult(list, each(func(e object) { e["updatedAt"] = time.Now().Unix() }))),
		fault("list-doubles", "lists every session twice", onResult(list, func(r object) {
			s, _ := r["sessions"].([]any)
			r["sessions"] = append(s, s...)
		})),
	}
}

func repeatCursor(t *tap) {
	t.received = func(m message) {
		if p := m.Object("params"); is(m, "session/list") && p["cursor"] == "again" {
			delete(p, "cursor")
		}
	}
	t.sending = func(f frame) {
		if r, ok := f.Message["result"].(object); ok && answers(f, "session/list") {
			r["nextCursor"] = "again"
		}
	}
}
