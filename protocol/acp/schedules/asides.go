package schedules

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// aside is something that an editor may do while turns run, and that they do not need.
// Each waits for nothing, so that the agent can stand still meanwhile.
type aside struct {
	name  string
	needs func(o *order) bool // nil is always
	write func(w *orderWriter)
	slow  bool // it takes time
}

// asides lists them. None is a reason for a correct agent to end a turn otherwise than it
// would, but for those that the writer knows of: a cancel, a second prompt, a prompt that
// is taken back.
func asides() []*aside {
	return []*aside{
		{name: "cancel", write: func(w *orderWriter) { w.cancel(w.Seen.Session) }},
		{name: "cancel of another session", needs: hasOther, write: func(w *orderWriter) { w.cancel("the_other") }},
		{name: "set mode", needs: func(o *order) bool { return of(o.Seen).mode != "" }, write: func(w *orderWriter) {
			w.request("session/set_mode", script.Quote(`{"sessionId": "`), w.sessionID(),
				script.Quote(`", "modeId": "`+w.mode+`"}`))
		}},
		{name: "set option", needs: func(o *order) bool { return of(o.Seen).option[0] != "" }, write: func(w *orderWriter) {
			kind := ""
			if w.version.stateEnds {
				kind = `, "type": "id"`
			}
			w.request("session/set_config_option", script.Quote(`{"sessionId": "`), w.sessionID(),
				script.Quote(`", "configId": "`+w.option[0]+`", "value": "`+w.option[1]+`"`+kind+`}`))
		}},
		{name: "new session", write: func(w *orderWriter) {
			w.request("session/new", script.Quote(`{"cwd": "`), script.Variable("WORK"), script.Quote(`", "mcpServers": []}`))
		}},
		{name: "list", needs: func(o *order) bool { return o.Seen.Able["list"] },
			write: func(w *orderWriter) { w.request("session/list", script.Quote("{}")) }},
		{name: "slow reader", slow: true, write: func(w *orderWriter) { w.Add("stall 30ms") }},
		{name: "second prompt", needs: func(o *order) bool { return !hasNext(o) }, write: secondInOrder},
		{name: "$/cancel_request", needs: func(o *order) bool { return !hasNext(o) }, write: takenBack},
	}
}

// possible are the acts that the order can have besides; a cancel, after which most goes
// wrong, is drawn more often than another.
func (o *order) possible() []*aside {
	const often = 4
	can := slices.DeleteFunc(asides(), func(a *aside) bool { return a.needs != nil && !a.needs(o) })
	if o.late {
		return can[1:] // it has its cancel
	}
	return append(slices.Repeat(can[:1], often-1), can...)
}

// hasOther reports whether a turn of the other session is part of the order, hasNext
// whether a second turn of the target's is.
func hasOther(o *order) bool { return o.uses }

func hasNext(o *order) bool { return o.last(o.Seen.Session) > 0 }

// last is the index of the last turn of a session.
func (o *order) last(session string) (at int) {
	at = -1
	for i, t := range o.turns {
		if t.session == session {
			at = i
		}
	}
	return at
}

// cancel cancels the turn of a session that runs, or what is idle.
func (w *orderWriter) cancel(session string) {
	w.Key("cancel %s", session)
	t := w.open(session)
	if t == nil || t.cancelled != notCancelled {
		return
	}
	t.cancelled = maybeCancelled
	if !t.contested && t.held(t.gone, t.asked) {
		t.cancelled = surelyCancelled
	}
	t.asked = false // the editor answers what is open
}

// request sends a request that the editor need not make, and does not wait. The parts
// of its params are one word.
func (w *orderWriter) request(method string, params ...script.Word) {
	if w.open(w.Seen.Session) == nil && !w.begun() {
		w.bad = true // no session is open yet
		return
	}
	w.requests++
	w.Add("request %s %s as %s", method, script.Join(params...), fmt.Sprint("R", w.requests))
}

// sessionID is the id of the target's session.
func (w *orderWriter) sessionID() script.Word {
	return script.Variable("SESSION(" + w.Seen.Session + ")")
}

// begun reports whether the target's session was prompted.
func (w *orderWriter) begun() bool {
	for _, t := range w.state {
		if t.begun && t.session == w.Seen.Session {
			return true
		}
	}
	return false
}

// secondInOrder prompts a session whose turn runs. The agent may refuse that, work on it
// later, or instead: nothing more is awaited of the first turn but its answer.
func secondInOrder(w *orderWriter) {
	t := w.open(w.Seen.Session)
	if t == nil || t.contested {
		w.bad = true
		return
	}
	w.contest(t)
	w.Prompt(w.Seen.Session, w.Own("And another thing."), nil, "TWO", sweep.Says("Noted."))
	w.KeepLast()
	w.two = true
}

// takenBack takes the prompt back by its id, which an agent may ignore.
func takenBack(w *orderWriter) {
	t := w.open(w.Seen.Session)
	if t == nil || t.contested || t.asked {
		w.bad = true
		return
	}
	w.contest(t)
	w.Key("cancel-request %s", t.name)
}

// contest notes that it is open how a turn goes on.
func (w *orderWriter) contest(t *turnState) {
	t.contested = true
	if w.asks {
		w.Add("permit %s", w.choice)
	}
}
