package schedules

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// orderWriter writes the scenario of a sequence. It tracks the progress of each turn, which decides how the turn must
// end.
type orderWriter struct {
	*builder
	order    *sweep.Sequence
	state    []turnState
	asks     bool   // the editor answers permission requests by acts
	requests int    // number of requests sent by other acts
	two      bool   // a second prompt was sent
	owed     string // name of the unanswered permission request of a cancelled turn, or ""
	bad      bool   // an act is impossible at its place
}

// turnState is the progress of a turn.
type turnState struct {
	*sweep.PlayedTurn
	name      string // name of the prompt
	begun     bool
	ended     bool
	gone      int  // number of stops that were released
	asked     bool // a permission request is open
	cancelled cancelled
	contested bool // after a second prompt or $/cancel_request, the turn may continue in more than one way
}

// held reports whether the turn cannot end yet, because a gate lies ahead or a permission request is open.
func (t *turnState) held() bool {
	ahead := t.Stops[min(t.gone, len(t.Stops)):]
	return t.asked || slices.ContainsFunc(ahead, func(s sweep.Stop) bool { return !s.Asks() })
}

type cancelled uint8

const (
	notCancelled cancelled = iota
	maybeCancelled
	surelyCancelled
)

// following returns a writer with an empty scenario for a sequence.
func (v version) following(o *sweep.Sequence, b *sweep.Builder) *orderWriter {
	b.Situation = sweep.Situation{Script: o.Script, Seen: o.Seen, Point: sweep.Point{Kind: atSecond}}
	return &orderWriter{builder: v.begin(b), order: o}
}

// write returns the scenario of a sequence. keep has the lines that must not be removed. ok is false if an act is
// impossible at its place.
func (v version) write(o *sweep.Sequence) (a sweep.Archive, keep map[string]bool, ok bool) {
	w := v.following(o, o.Builder("turns beside each other"))
	for i, t := range o.Turns {
		w.state = append(w.state, turnState{PlayedTurn: &o.Turns[i], name: fmt.Sprintf("P%d", i+1)})
		w.asks = w.asks || slices.ContainsFunc(t.Stops, sweep.Stop.Asks)
	}
	w.Add("tag cancel")
	w.leadUp()
	for at := 0; at < len(o.Items); {
		to := at + 1
		for to < len(o.Items) && o.Items[to].Gap == sweep.Together {
			to++
		}
		w.group(o.Items[at:to])
		at = to
	}
	w.bad = w.bad || slices.ContainsFunc(w.state, func(t turnState) bool { return !t.ended })
	w.afterwards()
	a, keep = w.Archive()
	return a, keep, !w.bad
}

// leadUp writes the lines before the first act.
func (w *orderWriter) leadUp() {
	before := w.beside(before(w.Script, w.Seen.Turn))
	if !w.order.Others() {
		before = slices.DeleteFunc(before, func(l *script.Line) bool { return l.Says("session", "new", sweep.Other) })
	}
	w.Lines = append(w.Lines, before...)
	w.Turns = slices.Clone(w.Script.Spoken.Turns[:w.Seen.Nth])
	switch {
	case w.order.Late != "":
		w.Key("permit hold late")
	case w.asks:
		w.Key("permit hold")
	}
}

// group writes one act, or several acts that reach the agent at the same time.
func (w *orderWriter) group(items []sweep.Item) {
	if g := items[0].Gap; g > 0 {
		w.Add("pause %s", g)
	}
	if len(items) == 1 {
		w.item(items[0])
	} else {
		lines := w.Lines
		w.Lines = nil
		for _, it := range items {
			w.item(it)
		}
		block := script.New("together {").With(w.Lines...)
		w.Lines = append(lines, block)
		w.KeepLast()
	}
	if last := items[len(items)-1]; !last.Loose {
		w.settle(last)
	}
}

// item writes one act.
func (w *orderWriter) item(it sweep.Item) {
	switch t := &w.state[it.Turn]; it.Kind {
	case sweep.Besides:
		w.version.asides.Do(w, it.Act)
	case sweep.Begins:
		w.begin(t)
	case sweep.GoesOn:
		w.letGo(t, it.Stop)
	case sweep.Ends:
		w.end(t)
	}
}

func (w *orderWriter) begin(t *turnState) {
	if t.Next {
		w.restore()
	}
	says := t.Says
	if t.Pace > 0 {
		says = says.Paced(t.Pace)
	}
	if t.Fails != nil {
		says = says.With(*t.Fails, fakellm.NewStep("fail", "{status: 503, times: 1}"))
	}
	for i := len(t.Stops) - 1; i >= 0; i-- { // from the end, so that a new gate does not move other places
		if s := t.Stops[i]; s.Gate != nil {
			says = says.With(*s.Gate, sweep.Gate(t.gateName(i)))
		}
	}
	w.Prompt(t.Session, t.Text, t.Rest, t.name, says)
	w.KeepLast()
	t.begun = true
}

// gateName returns the name of the gate at a stop.
func (t *turnState) gateName(stop int) string { return fmt.Sprintf("%s%d", t.Prefix, stop+1) }

// letGo releases the gate or answers the permission request at stop n. In a cancelled turn it does nothing, because
// the editor has already answered permission requests with cancelled.
func (w *orderWriter) letGo(t *turnState, n int) {
	t.gone = n + 1
	s := t.Stops[n]
	switch {
	case t.cancelled != notCancelled:
	case t.asked && w.order.Late != "" && !t.Next:
		w.Key("cancel %s", t.Session)
		t.cancelled, t.asked, w.owed = surelyCancelled, false, t.ask(n)
	case s.Gate != nil:
		w.Key("release %s", t.gateName(n))
	case t.asked:
		w.Key("answer %s %s", t.ask(n), t.Choice)
		t.asked = false
	}
}

// pay answers the permission request that a cancelled turn has left open, if there is one.
func (w *orderWriter) pay() {
	if w.owed != "" {
		w.Key("answer %s cancelled", w.owed)
	}
	w.owed = ""
}

// ask returns the name that the script gives to the permission request at a stop.
func (t *turnState) ask(stop int) string { return fmt.Sprintf("%s_ASK%d", t.name, stop+1) }

// settle waits until the turn has reached its next stop after an act.
func (w *orderWriter) settle(it sweep.Item) {
	if it.Kind != sweep.Begins && it.Kind != sweep.GoesOn {
		return
	}
	t := &w.state[it.Turn]
	if t.cancelled != notCancelled || t.contested || t.gone >= len(t.Stops) {
		return
	}
	if t.Stops[t.gone].Gate != nil {
		w.Key("await gate %s", t.gateName(t.gone))
		return
	}
	template := "await permission session=%s as %s"
	if t.Next || t.Session != w.Seen.Session {
		template = "needs " + template // the agent may or may not ask again
	}
	w.Key(template, t.Session, t.ask(t.gone))
	t.asked = true
	if t.Next {
		w.pay()
	}
}

// end waits for the end of a turn and checks how it ends.
func (w *orderWriter) end(t *turnState) {
	t.ended = true
	session := script.Option("session", t.Session)
	switch {
	case t.contested:
		if t.asked {
			w.Add("answer %s %s", t.ask(t.gone), t.Choice)
		}
		w.Check("PROMPT-018", "both-are-answered")
		w.Add("await response %s", t.name)
		if w.two {
			w.Add("await response TWO")
		}
		return
	case w.owed != "" && t.Session == w.Seen.Session && !t.Next: // an agent may wait for the answer
		w.Check("", "ends-before-its-answer")
		w.Add("await response %s", t.name)
		return
	case t.cancelled == surelyCancelled:
		w.Check("CANCEL-001", "ends-as-cancelled")
		w.Add("await turn %s %s", w.stopped(), session)
		return
	case t.cancelled == maybeCancelled:
		w.Check("CANCEL-001", "ends")
		how := "any"
		if w.version.stateEnds || t.Fails != nil {
			how = "any|error" // the prompt may be cancelled before the agent accepts it
		}
		w.Add("await turn %s %s", how, session)
		return
	}
	if t.Fails != nil && t.gone == len(t.Stops) {
		w.Check("PROMPT-003", "ends")
		w.Add("needs await turn any|error %s", session) // the agent chooses how long it repeats the request
		return
	}
	refused := t.Whole && t.Choice != w.choice
	stop := "end_turn"
	switch {
	case refused:
		stop = "any" // an agent may end its turn after a rejection
	case t.Whole:
		stop = end(w.Seen)
	}
	w.Check("PROMPT-003", "ends-as-before")
	w.Add("await turn %s %s", stop, session)
	if t.Session != w.Seen.Session || !t.Whole {
		return
	}
	if refused {
		w.untouched(behindAny(w.Seen))
		return
	}
	if w.speaks() {
		w.Check("PROMPT-015", "says-the-same")
		w.Add("text ~ %s", script.Quote("^"+literal(w.Seen.Text)+"$"))
	}
	w.effective()
}

// effective writes checks for the effects of the target's turn.
func (w *orderWriter) effective() {
	if lines := w.order.Effective(); len(lines) > 0 {
		w.Check("", "has-its-effect")
		w.Lines = append(w.Lines, lines...)
	}
}

// open returns the turn that is running in a session, or nil.
func (w *orderWriter) open(session string) *turnState {
	for i := range w.state {
		if t := &w.state[i]; t.Session == session && t.begun && !t.ended {
			return t
		}
	}
	return nil
}

// afterwards sends one more prompt to each session. The turns of these prompts must end normally.
func (w *orderWriter) afterwards() {
	w.pay()
	if w.asks {
		w.Add("permit %s", w.choice)
	}
	w.oneMore(w.Seen.Session, "Are you still there?", "Still here", "AGAIN")
	if w.order.Others() {
		w.oneMore(sweep.Other, "And are you?", "So am I", "TOO")
	}
}

// oneMore sends a prompt to a session. The turn must end normally.
func (w *orderWriter) oneMore(session, text, answer, as string) {
	w.Check("PROMPT-014", "works-again")
	if w.version.stateEnds && w.contestedIn(session) {
		w.Prompt(session, w.Own(text), nil, as, sweep.Says(answer+"."))
		w.Add("await response %s", as)
		w.Add("await agent_message text~%s session=%s", script.Quote(answer), session)
		w.Add("await state idle session=%s", session)
		return
	}
	w.Prompt(session, w.Own(text), nil, "", sweep.Says(answer+"."))
	w.Add("await turn end_turn %s", script.Option("session", session))
}

// contestedIn reports whether some turn of the session may have continued in more than one way.
func (w *orderWriter) contestedIn(session string) bool {
	return slices.ContainsFunc(w.state, func(t turnState) bool { return t.contested && t.Session == session })
}
