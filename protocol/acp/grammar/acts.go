package grammar

import (
	"github.com/acp-test/acp-test/scenarios/script"
)

// act is something that an editor does while a turn is open.
type act struct {
	weight int
	name   string
	// needs is a capability; "" needs none.
	needs string
	// can reports whether it can be done; nil: in each state.
	can func(w *writer, t *turn) bool
	do  func(w *writer, t *turn)
}

// acts are what an editor does at each open state. A table that a test reads.
func acts() []act {
	return []act{
		{6, "cancel", "", running, func(w *writer, t *turn) {
			w.add("cancel %s", t.name)
			t.stop("CANCEL-001")
		}},
		{1, "cancel twice", "", running, func(w *writer, t *turn) {
			w.add("cancel %s", t.name)
			w.add("cancel %s", t.name)
			t.stop("CANCEL-001")
		}},
		{2, "$/cancel_request", "", takesBack, func(w *writer, t *turn) {
			w.add("cancel-request %s", t.prompt)
			t.contested = true
		}},
		{2, "second prompt", "", ends, func(w *writer, t *turn) {
			name := w.name("P")
			w.prompt(t.convo, name)
			w.turns = append(w.turns, turnOf(w.last()))
			t.later, t.contested = append(t.later, name), true
		}},
		{3, "close", "sessionCapabilities.close", once, func(w *writer, t *turn) {
			w.wait(t, "session close %s wait=no as %s", "C")
			t.stop("CLOSE-002")
			t.gone = true
		}},
		{2, "delete", "sessionCapabilities.delete", ends, func(w *writer, t *turn) {
			w.wait(t, "session delete %s wait=no as %s", "D")
			t.contested, t.gone, t.solid = true, true, false
		}},
		{2, "load", "loadSession", loads, func(w *writer, t *turn) {
			w.wait(t, "session load %s wait=no as %s", "L")
			t.loaded = true
		}},
		{2, "list", "sessionCapabilities.list", nil, func(w *writer, t *turn) {
			w.add("request session/list '{}' as %s", w.name("R"))
		}},
		{2, "set mode", "", func(w *writer, t *turn) bool {
			return w.Mode != "" && t.mode == "" && !t.gone
		}, func(w *writer, t *turn) {
			w.sets(t, "session/set_mode", `"modeId": "`+w.Mode+`"`)
		}},
		{2, "set option", "", func(w *writer, t *turn) bool {
			return len(w.Options) > 0 && !t.gone
		}, func(w *writer, t *turn) {
			o := pick(w.r, w.Options)
			w.sets(t, "session/set_config_option", `"configId": "`+o.ID+`", "value": "`+o.Current+`"`)
		}},
		{2, "new session", "", nil, func(w *writer, _ *turn) {
			w.newConvo()
		}},
		{4, "turn in another session", "", apart, func(w *writer, t *turn) {
			w.freeTurn(w.convo())
		}},
		{3, "held turn in another session", "", apart, func(w *writer, t *turn) {
			w.anyHeld(w.convo())
		}},
		{1, "slow reader", "", nil, func(w *writer, _ *turn) { w.add("stall 30ms") }},
		{1, "unknown request", "", nil, func(w *writer, t *turn) {
			w.add("request _example/nothing '{}' as %s", w.name("R"))
		}},
		{1, "unknown session", "", nil, func(w *writer, t *turn) {
			w.add("request session/prompt %s as %s",
				script.Quote(`{"sessionId": "no-such-session", "prompt": [{"type": "text", "text": "Anyone?"}]}`), w.name("R"))
		}},
		{1, "kill", "", alone, func(w *writer, t *turn) { w.loses(t, "kill") }},
		{1, "end of input", "", alone, func(w *writer, t *turn) { w.loses(t, "close-stdin", "await exit") }},
	}
}

func running(_ *writer, t *turn) bool { return !t.gone }

// takesBack: the answer that the editor owes for a permission is open once its prompt is taken back.
func takesBack(_ *writer, t *turn) bool {
	return ends(nil, t) && t.state != "permission open" && t.state != "question open"
}

// once: what comes of it depends on nothing else that was done in the turn.
func once(_ *writer, t *turn) bool { return t.stopped == "" && !t.contested && !t.loaded }

// ends: the turn comes to an end although it is not stopped.
func ends(_ *writer, t *turn) bool { return once(nil, t) && !t.endless }

func loads(w *writer, t *turn) bool { return w.has("ways") && t.solid && once(w, t) }

// apart: another session can work meanwhile.
func apart(w *writer, _ *turn) bool { return w.has("several") && w.Together && len(w.open) == 1 }

// alone: nothing else runs that would end with the process.
func alone(w *writer, t *turn) bool {
	return w.has("process") && len(w.open) == 1 && len(t.later) == 0 && w.stops == 0 && once(w, t)
}

// act draws an act at the state of a turn and does it.
func (w *writer) act(t *turn) {
	if t.lost {
		return
	}
	var from []weighted[act]
	for _, a := range acts() {
		off := a.needs != "" && !w.able(a.needs) || a.can != nil && !a.can(w, t)
		from = append(from, weighted[act]{a.weight, a, off})
	}
	if a, ok := choose(w.r, from); ok {
		w.covered(t.state, a.name)
		a.do(w, t)
	}
}

// wait writes a request whose answer is awaited once the turn has ended.
func (w *writer) wait(t *turn, template, prefix string) {
	name := w.name(prefix)
	w.add(template, t.name, name)
	t.later = append(t.later, name)
}

// sets sends a request that gives the session a setting that it has.
func (w *writer) sets(t *turn, method, params string) {
	name := w.name("R")
	session := script.Variable("SESSION(" + t.name + ")")
	all := script.Join(script.Quote(`{"sessionId": "`), session, script.Quote(`", `+params+`}`))
	w.add("request %s %s as %s", method, all, name)
	t.later = append(t.later, name)
}

// loses ends the process of a turn and starts another one.
func (w *writer) loses(t *turn, lines ...string) {
	w.lost(append(lines, "restart")...)
	w.stops++
	t.lost = true
}

// stop notes that the agent was told to stop the turn.
func (t *turn) stop(requirement string) {
	if t.stopped == "" {
		t.stopped = requirement
	}
}
