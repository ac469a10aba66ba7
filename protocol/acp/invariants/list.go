package invariants

import (
	"strings"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// listSane judges session lists; their shape is for SHAPE.
func listSane(v *version) *rule {
	r := v.ofAgent("LIST-SANE", "A list respects its filter, names each session once, and its pages end.")
	filter := r.Fail("filter", "a list holds a session of another directory than asked for", "LIST-005")
	duplicate := r.Fail("duplicate", "a list names a session twice", "LIST-007")
	cursor := r.Fail("cursor", "a cursor came back within one list, so its pages do not end", "LIST-007")
	date := r.Lint("updated-at", "updatedAt is no ISO 8601 time", "LIST-011")
	return r.Watching(func(w *watch) {
		type chain struct {
			sessions, cursors map[string]int
		}
		chains := map[*conn]*chain{}
		w.On(func(ev *event) {
			if !ev.succeeded() {
				return
			}
			r := ev.request
			ch := chains[ev.conn]
			if ch == nil || r.cursor == "" {
				ch = &chain{map[string]int{}, map[string]int{}}
				chains[ev.conn] = ch
			}
			w.Saw(cursor)
			for item := range ev.result.Get("sessions").Items() {
				id, cwd := item.Get("sessionId").Str(), item.Get("cwd").Str()
				w.Saw(duplicate)
				if at := ch.sessions[id]; at > 0 {
					w.find(duplicate, ev, id, []int{at}, "The list names session %q twice.", id)
				}
				if len(ch.sessions) < rememberedRequests {
					ch.sessions[id] = ev.Seq
				}
				if r.cwd != "" {
					w.Saw(filter)
					if !sameDir(cwd, r.cwd) {
						w.find(filter, ev, id, []int{ev.Ref}, "The list was asked for sessions in %q and holds one in %q.", r.cwd, cwd)
					}
				}
				if when := item.Get("updatedAt"); when.Exists() && !when.IsNull() {
					w.Saw(date)
					if !isTime(when) {
						w.find(date, ev, "", nil, "The updatedAt of a session is %s, and should be an ISO 8601 time.",
							clip(string(when.Raw())))
					}
				}
			}
			if next := ev.result.Get("nextCursor"); next.Kind() == wire.String {
				text := next.Str()
				if at := ch.cursors[text]; at > 0 {
					w.find(cursor, ev, text, []int{at}, "The cursor %q came back within one list.", text)
				}
				if len(ch.cursors) < rememberedRequests {
					ch.cursors[text] = ev.Seq
				}
			}
		}, answered(listSessions))
	})
}

// sameDir compares directories. An agent may tell the real path behind a
// symbolic link, such as /private/tmp for /tmp, so one may end in the other.
func sameDir(a, b string) bool {
	a, b = strings.TrimRight(a, `/\`), strings.TrimRight(b, `/\`)
	return a == b || a != "" && b != "" && (strings.HasSuffix(a, b) || strings.HasSuffix(b, a)) ||
		strings.EqualFold(a, b) && strings.Contains(a, ":")
}

func isTime(v wire.Value) bool {
	text := v.Str()
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700",
		"2006-01-02T15:04:05.999999999Z07",
		"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02", "20060102T150405Z0700", "20060102T150405",
	} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}
