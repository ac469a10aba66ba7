package invariants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// oneResponse checks that each request of the editor gets exactly one response, under its id.
func oneResponse(w *watch) {
	v := w.version
	w.On(func(ev *event) {
		w.Saw("twice", "unknown-id", "id-type", "unanswered")
	}, agentAnswers()...)
	// An agent may answer an invalid request with an error, under the id that the request seems to have.
	unreadable := map[connID]bool{}
	w.On(func(ev *event) {
		note := func(v wire.Value) {
			if id := idOf(v.Get("id")); id != "" {
				rules.Remember(unreadable, rememberedRequests, connID{ev.conn, id}, true)
			}
		}
		note(ev.body)
		for item := range ev.body.Items() {
			note(item)
		}
	}, editorNoise)
	w.On(func(ev *event) {
		c := ev.conn
		if ev.ID == "null" || ev.ID == "" {
			return // NOTIFY-SILENT judges it
		}
		if ev.err.Exists() && unreadable[connID{c, ev.ID}] {
			return
		}
		object := string(ev.ID)
		if ev.Ref > 0 {
			w.find("twice", ev, object, []int{ev.Ref},
				"The agent answered request %s (%s) a second time.", ev.ID, ev.Method)
			return
		}
		if r := c.ids[rules.OfClient][otherType(ev.ID)]; r != nil {
			w.find("id-type", ev, object, []int{r.seq},
				"The response has id %s, but the request %s has id %s: the JSON types differ.", ev.ID, r.method, r.id)
			return
		}
		if c.initAsked > 0 {
			w.find("unknown-id", ev, object, nil, "The response with id %s answers no request of the client.", ev.ID)
		}
	}, agentAnswersNone)
	w.On(func(ev *event) {
		w.idInUse(rules.OfAgent, "null-id", "id-in-use", ev)
	}, agentRequests()...)
	w.AtEnd(func(end rules.End) {
		w.unanswered(end, rules.OfClient, func(r *request, a absence) {
			if r.verb == prompt && w.state.models.holds() {
				return // a gate holds the model of this prompt, or of another prompt for which this one waits
			}
			if r.mayWait() {
				return
			}
			f := w.Report(pick(a.quit, "unanswered-at-exit", "unanswered"), r.conn.n, r.session.name(), fmt.Sprint(r.seq),
				[]int{r.seq, a.at}, "The client's %s was not answered %s.", r.method, a.how)
			if a.quit || v.states {
				return
			}
			broken := []string{"RPC-005"}
			if r.verb == prompt {
				broken = append(broken, "PROMPT-003")
			} else if strings.HasPrefix(r.method, "_") {
				broken = append(broken, "EXT-003")
			}
			w.Narrow(f, broken...)
		})
	})
}

// mayWait reports whether a prompt may stay unanswered. It may if the editor owes the agent an answer, because
// permission requests may come one at a time. It also may if it was cancelled: CANCEL-REASON judges cancelled prompts.
func (r *request) mayWait() bool {
	a, _ := r.turn.stopper()
	return a != nil && !r.turn.concurrent || r.verb == prompt && r.session != nil && r.conn.asks(r.session)
}

// otherType returns the id with the other JSON type: a string becomes a number, anything else a string.
func otherType(id wire.ID) wire.ID {
	if s := string(id); len(s) > 1 && s[0] == '"' {
		return wire.ID(strings.Trim(s, `"`))
	}
	return `"` + id + `"`
}

// notifySilent checks that the agent never answers notifications.
func notifySilent(w *watch) {
	unreadable := map[*conn]int{}
	type notice struct {
		seq   int
		topic topic
	}
	last := map[*conn]notice{}
	w.On(func(ev *event) { unreadable[ev.conn] += max(1, ev.body.Len()) }, editorNoise)
	w.On(func(ev *event) { last[ev.conn] = notice{ev.Seq, ev.topic}; w.Saw("answered") }, cancelTold, editorTakesBack,
		editorOtherTold)
	judge := func(ev *event, message wire.Value) {
		// An agent that cannot parse a line does not know that the line was a notification.
		if code, _ := message.Path("error.code").Int(); code == -32700 {
			return
		}
		c := ev.conn
		if unreadable[c] > 0 {
			unreadable[c]--
			return
		}
		n := last[c]
		f := w.find("answered", ev, "", []int{n.seq},
			"The agent sent a response without a request id, as if it answered a notification.")
		broken := []string{"RPC-006"}
		switch n.topic {
		case cancelTold:
			broken = append(broken, "CANCEL-005")
		case editorTakesBack:
			broken = append(broken, "RCANCEL-002", "RCANCEL-007")
		case editorOtherTold:
			broken = append(broken, "EXT-005")
		}
		w.Narrow(f, broken...)
	}
	w.On(func(ev *event) {
		if ev.ID == "null" && ev.Ref == 0 {
			judge(ev, ev.JSON())
		}
	}, agentAnswersNone)
	w.On(func(ev *event) {
		b := ev.body
		if b.Get("jsonrpc").Is("2.0") && isAnswer(b) && !b.Get("id").Exists() &&
			b.Get("result").Exists() != b.Get("error").Exists() {
			judge(ev, b)
		}
	}, agentNoise)
}

// abortWords matches the text of an error that a cancel caused, and causeWords the text of one with another cause.
var (
	abortWords = lazy.Regexp(`(?i)abort|cancel`)
	causeWords = lazy.Regexp(`(?i)time(d )?-?out|conn|socket|network`)
)

// saysAborted reports whether an error says that its request was cancelled.
func saysAborted(err wire.Value) bool {
	text := string(err.Raw())
	return abortWords().MatchString(text) && !causeWords().MatchString(text)
}

// rcancelOwn checks the agent's $/cancel_request, and its answers to requests that the editor cancelled.
func rcancelOwn(w *watch) {
	// made has the agent's requests, each with the Seq of its latest answer. taken has, by connection, the Seq of the
	// latest request of the editor that the agent has answered: the agent has read everything before this request.
	made, taken := map[connID]int{}, map[*conn]int{}
	w.On(func(ev *event) { rules.Remember(made, rememberedRequests, connID{ev.conn, ev.ID}, 0) }, agentRequests()...)
	w.On(func(ev *event) {
		if _, ok := made[connID{ev.conn, ev.ID}]; ok {
			made[connID{ev.conn, ev.ID}] = ev.Seq
		}
	}, editorAnswers()...)
	w.On(func(ev *event) {
		w.Saw("not-own", "already-answered")
		id := idOf(ev.params.Get("requestId"))
		answer, own := made[connID{ev.conn, id}]
		switch {
		case ev.conn.ids[rules.OfAgent][id] != nil || len(made) >= rememberedRequests:
		case own && answer < taken[ev.conn]:
			w.find("already-answered", ev, string(id), []int{answer},
				"The agent cancelled its request %s after it had read the response.", id)
		case own: // the cancel and the answer may have crossed
		default:
			w.find("not-own", ev, string(id), nil,
				"The agent cancelled request %s, which it never made.", cmp.Or(string(id), "without an id"))
		}
	}, agentTakesBack)
	w.On(func(ev *event) {
		taken[ev.conn] = max(taken[ev.conn], ev.request.seq)
		if ev.request.back == nil {
			return
		}
		w.Saw("error-code", "aborted")
		stopped, _ := ev.request.turn.stopper()
		if t := ev.request.turn; t != nil && w.state.models.failedIn(t) > 0 {
			return // the model's failure may be the cause
		}
		// The agent may refuse the request or demand a login first, even if the editor cancels the request.
		refused := slices.Contains([]int64{-32601, -32602, -32002}, ev.code()) ||
			ev.Method == "session/new" && ev.code() == -32000
		if ev.err.Exists() && ev.code() != -32800 && !refused && stopped == nil {
			w.find(pick(saysAborted(ev.err), "aborted", "error-code"), ev, fmt.Sprint(ev.request.seq),
				[]int{ev.request.seq, ev.request.back.seq}, "The cancelled %s failed with code %d instead of -32800.", ev.Method,
				ev.code())
		}
	}, agentAnswers()...)
}
