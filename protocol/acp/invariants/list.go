package invariants

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// chain is a list of sessions that the client reads page by page. sessions and cursors have the Seq of the page that
// named each.
type chain struct {
	sessions, cursors map[string]int
	changed           bool // the client deleted a session since the first page
	size, before      int  // sizes of the last page and of the page before it
}

// listSane checks the contents of session lists. SHAPE checks their shape.
func listSane(w *watch) {
	chains := map[*conn]*chain{}
	if !w.version.states {
		listRenews(w)
		listRefused(w)
	}
	w.On(func(*event) {
		for _, ch := range chains {
			ch.changed = true
		}
	}, asked(deleteSession))
	w.On(func(ev *event) {
		if !ev.succeeded() {
			return
		}
		r := ev.request
		ch, goesOn := chains[ev.conn]
		if !goesOn || r.cursor == "" {
			ch = &chain{sessions: map[string]int{}, cursors: map[string]int{}}
			chains[ev.conn] = ch
		}
		w.judgeSessions(ev, ch)
		w.judgePage(ev, ch)
	}, answered(listSessions))
}

// judgeSessions judges the sessions of a page.
func (w *watch) judgeSessions(ev *event, ch *chain) {
	r := ev.request
	for item := range ev.result.Get("sessions").Items() {
		id, cwd := item.Get("sessionId").Str(), item.Get("cwd").Str()
		at := ch.sessions[id]
		w.judge("duplicate", at > 0, ev, id, []int{at}, "The list names session %q twice.", id)
		rules.Remember(ch.sessions, rememberedRequests, id, ev.Seq)
		if r.cwd != "" {
			w.judge("filter", !sameDir(cwd, r.cwd), ev, id, []int{ev.Ref},
				"The client asked for sessions in %q, but the list has one in %q.", r.cwd, cwd)
		}
		if when := item.Get("updatedAt"); isSet(when) {
			w.judge("updated-at", !isTime(when), ev, "", nil,
				"The updatedAt of a session is %s, but should be an ISO 8601 time.", clip(string(when.Raw())))
		}
	}
}

// judgePage judges the size of a page and its cursor.
func (w *watch) judgePage(ev *event, ch *chain) {
	r := ev.request
	_, named := ch.cursors[r.cursor]
	list := ev.result.Get("sessions")
	empty := list.Kind() == wire.Array && list.Len() == 0
	full := ch.size > 1 && ch.size == ch.before && w.state.running() == 1 && !isSet(ev.result.Get("nextCursor"))
	w.judge(pick(full, "after-last", "empty-page"), empty && named && r.cwd == "" && !ch.changed, ev, "",
		[]int{ch.cursors[r.cursor]}, "The agent returned the cursor %q, but its page has no sessions.", r.cursor)
	ch.size, ch.before = list.Len(), ch.size
	w.judge("filtered-page", empty && r.cwd != "" && ev.result.Get("nextCursor").Kind() == wire.String && !ch.changed,
		ev, "", []int{ev.Ref}, "The page for %q has no sessions, but a cursor to more: an editor that shows a page "+
			"shows nothing.", r.cwd)
	w.Saw("cursor")
	if next := ev.result.Get("nextCursor"); next.Kind() == wire.String {
		text := next.Str()
		if text == "" {
			w.find("cursor", ev, text, nil, "The page has an empty nextCursor; a last page has none.")
		} else if at := ch.cursors[text]; at > 0 {
			w.find("cursor", ev, text, []int{at},
				"One list returned the cursor %q twice, so its pages never end.", text)
		}
		rules.Remember(ch.cursors, rememberedRequests, text, ev.Seq)
	}
}

// running returns the number of connections whose agent has not exited.
func (w *world) running() (n int) {
	for _, c := range w.conns {
		if c.exited == 0 {
			n++
		}
	}
	return n
}

// invalidParams is the error code with which an agent refuses a request that is not valid.
const invalidParams = -32602

// listRefused checks that a session that the agent has refused to create does not appear in the next list. It needs an
// earlier complete list of the same connection.
func listRefused(w *watch) {
	type catalogue struct {
		listed  map[string]bool // ids of sessions that were listed
		refusal int             // Seq of the refusal since the last list; 0 for none
	}
	opened := map[string]bool{} // ids of sessions that were opened on any connection
	all, opening := map[*conn]*catalogue{}, map[*conn]int{}
	w.On(func(ev *event) { opening[ev.conn]++ }, setUps(asked)...)
	w.On(func(ev *event) {
		opening[ev.conn]--
		c := all[ev.conn]
		switch {
		case ev.succeeded():
			rules.Remember(opened, rememberedSessions, cmp.Or(ev.result.Get("sessionId").Str(), ev.Session), true)
		case c == nil:
		case ev.verb == newSession && ev.code() == invalidParams:
			c.refusal = ev.Seq
		default: // another refusal may have left a session, such as one that was taken back
			delete(all, ev.conn)
		}
	}, setUps(answered)...)
	w.On(func(ev *event) {
		if ev.request.cwd != "" {
			return
		}
		if !ev.succeeded() || ev.request.cursor != "" || ev.result.Get("nextCursor").Exists() || opening[ev.conn] > 0 {
			delete(all, ev.conn)
			return
		}
		c := all[ev.conn]
		if c == nil {
			c = &catalogue{listed: map[string]bool{}}
			all[ev.conn] = c
		}
		for item := range ev.result.Get("sessions").Items() {
			id := item.Get("sessionId").Str()
			if c.refusal > 0 {
				w.judge("refused", !c.listed[id] && !opened[id], ev, id, []int{c.refusal},
					"The list has session %q, which nobody opened. The list before did not have it, and the agent has refused "+
						"session/new since.", id)
			}
			rules.Remember(c.listed, rememberedRequests, id, true)
		}
		c.refusal = 0
	}, answered(listSessions))
}

// settled is how long a session must be idle before a list, so that the agent has surely stored its last change. It is
// our convention.
const settled = 500 * time.Millisecond

// listRenews checks that a list does not change the time at which an idle session was updated.
func listRenews(w *watch) {
	type listing struct {
		seq     int
		updated string
	}
	active, lists := map[string]time.Duration{}, map[string]listing{}
	w.On(func(ev *event) {
		if ev.Session != "" {
			rules.Remember(active, rememberedSessions, ev.Session, ev.At)
			delete(lists, ev.Session)
		}
	}, slices.Concat(agentMessages(), editorRequests(), editorAnswers(), []topic{cancelTold, modelEvent})...)
	w.On(func(ev *event) {
		if !ev.succeeded() {
			return
		}
		for item := range ev.result.Get("sessions").Items() {
			id, updated := item.Get("sessionId").Str(), item.Get("updatedAt").Str()
			before, listed := lists[id]
			at, known := active[id]
			if !known || updated == "" {
				continue
			}
			w.judge("renewed", listed && before.updated != updated, ev, id, []int{before.seq},
				"The list says that session %q was updated at %s, but the list before said %s, and nothing has happened in the "+
					"session since.", id, clip(updated), clip(before.updated))
			if ev.At-at >= settled {
				rules.Remember(lists, rememberedSessions, id, listing{ev.Seq, updated})
			}
		}
	}, answered(listSessions))
}

// sameDir reports whether two paths may name the same directory. An agent may resolve a symbolic link, such as /tmp to
// /private/tmp, so one path may be the end of the other.
func sameDir(a, b string) bool {
	a, b = strings.TrimRight(a, `/\`), strings.TrimRight(b, `/\`)
	return a == b || a != "" && b != "" && (strings.HasSuffix(a, b) || strings.HasSuffix(b, a)) ||
		strings.EqualFold(a, b) && strings.Contains(a, ":")
}

func isTime(v wire.Value) bool {
	return slices.ContainsFunc([]string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700",
		"2006-01-02T15:04:05.999999999Z07",
		"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02", "20060102T150405Z0700", "20060102T150405",
	}, func(layout string) bool { _, err := time.Parse(layout, v.Str()); return err == nil })
}
