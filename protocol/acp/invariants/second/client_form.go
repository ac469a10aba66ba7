package second

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// gone are the methods of a client of version 1 that version 2 does not have.
var gone = []string{"authenticate", "logout", "session/load", "session/set_mode"}

// clientShape judges the form of a client's messages.
func clientShape() *rule {
	r := ofClient("V2-CLIENT-SHAPE", "Every message of the client has the form of the schema.")
	noise := r.Fail("noise", "a line of the client is no message", "STDIO-002")
	broken := r.Fail("broken", "a message of the client breaks the schema", "V2-SHAPE-002")
	empty := r.Fail("empty-prompt", "a prompt has no content", "V2-PRM-011")
	first := r.Fail("first-version", "the client calls a method of version 1", "V2-SHAPE-002")
	lossy := r.Warn("lossy", "a value does not fit, and readers lose it", "V2-SHAPE-002")
	style := r.Lint("unknown", "a message of the client has what the schema does not know", "V2-SHAPE-002")
	r.see = func(w *watch, ev *event) {
		if !ev.editor() {
			return
		}
		w.Saw(noise, broken, lossy, style)
		switch {
		case ev.Kind == transcript.Malformed:
			if len(ev.Raw) > 0 {
				w.find(noise, ev, "", nil, "A line of the client is no message: %s.", ev.Problem)
			}
			return
		case slices.Contains(gone, ev.Method) && ev.Kind == transcript.Request:
			w.Saw(first)
			w.find(first, ev, ev.Method, nil, "The client sent %s, which version 2 does not have.", ev.Method)
			return
		case ev.asks("session/prompt"):
			w.Saw(empty)
			if list := ev.params.Get("prompt"); list.Kind() == wire.Array && list.Len() == 0 {
				w.find(empty, ev, "", nil, "The client sent a prompt without content.")
				return
			}
		}
		schema.V2().Check(direction(ev.Entry), ev.Message(), ev.Method, func(p schema.Problem) {
			point, text := style, "%s %s."
			switch {
			case p.Path == "id":
				return // of an answer the agent chose it; of a request V2-CLIENT-IDS says it
			case p.Severity == schema.Fatal:
				point = broken
			case p.Severity == schema.Lossy:
				point, text = lossy, "%s, which readers lose, %s."
			}
			w.find(point, ev, ev.Method+" "+p.Path, nil, text, p.Path, p.Message)
		})
	}
	return r
}

// clientIDs judges the ids of a client's requests.
func clientIDs() *rule {
	r := ofClient("V2-CLIENT-IDS", "The ids of the client's requests are not null, and not in use.")
	null := r.Fail("null", "a request has the id null", "V2-RPC-006")
	twice := r.Fail("in-use", "the id is that of a request that is open", "V2-RPC-006")
	r.see = func(w *watch, ev *event) {
		if !ev.editor() || ev.Kind != transcript.Request {
			return
		}
		w.Saw(null, twice)
		if ev.ID == "null" {
			w.find(null, ev, "", nil, "The request %s has the id null.", ev.Method)
		}
		for _, open := range ev.conn.open {
			if open.ofClient && open.id == ev.ID && ev.ID != "null" {
				w.find(twice, ev, "", []int{open.seq}, "The id %s is that of a request that is still open.", ev.ID)
			}
		}
	}
	return r
}

// clientAnswer judges that a client answers what the agent asks.
func clientAnswer() *rule {
	r := ofClient("V2-CLIENT-ANSWER", "Each request of the agent is answered once, while the agent lives.")
	twice := r.Fail("twice", "a request of the agent was answered twice", "RPC-022")
	unknown := r.Fail("unknown-id", "an answer names no request of the agent", "RPC-022")
	missing := r.Fail("unanswered", "a request of the agent was never answered", "RPC-022")
	r.see = func(w *watch, ev *event) {
		if !ev.editor() || ev.Kind != transcript.Response {
			return
		}
		w.Saw(twice, unknown, missing)
		switch {
		case ev.asked != nil || ev.ID == "null" || ev.conn.shared[ev.ID]:
		case ev.Ref > 0:
			w.find(twice, ev, string(ev.ID), []int{ev.Ref}, "The agent's %s was answered a second time.", ev.Method)
		case ev.conn.asked > 0:
			w.find(unknown, ev, string(ev.ID), nil, "The client answered request %s, which the agent never made.", ev.ID)
		}
	}
	r.over = func(w *watch, c *conn, end rules.End) {
		if !end.Clean || c.gone > 0 { // nobody is there who could take the answer
			return
		}
		for _, q := range c.unanswered() {
			w.Saw(missing)
			if waited := w.Last().At - q.at; waited >= w.Config().Patience && !c.shared[q.id] {
				w.Report(missing, c.n, q.session.name(), fmt.Sprint(q.seq), []int{q.seq},
					"The agent's %s was not answered within %s.", q.method, waited.Round(time.Second))
			}
		}
	}
	return r
}

// clientPaths judges the folders that a client names.
func clientPaths() *rule {
	r := ofClient("V2-CLIENT-PATHS", "The folders that the client names are absolute.")
	cwd := r.Fail("cwd", "the cwd of a session is not absolute", "SESSION-005")
	roots := r.Fail("directories", "an additional directory is not absolute", "DIRS-002")
	filter := r.Fail("filter", "the cwd of a list is not absolute", "LIST-016")
	r.see = func(w *watch, ev *event) {
		if !ev.editor() || ev.Kind != transcript.Request || !strings.HasPrefix(ev.Method, "session/") {
			return
		}
		point := cwd
		if ev.Method == "session/list" {
			point = filter
		}
		check := func(point int, v wire.Value) {
			if v.Kind() != wire.String {
				return
			}
			w.Saw(point)
			if !absolute(v.Str()) {
				w.find(point, ev, v.Str(), nil, "%s names the folder %q, which is not absolute.", ev.Method, v.Str())
			}
		}
		check(point, ev.params.Get("cwd"))
		for dir := range ev.params.Get("additionalDirectories").Items() {
			check(roots, dir)
		}
	}
	return r
}
