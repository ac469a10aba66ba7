package schedules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// orderWriter writes the scenario of an order. It knows of each turn how far it has come,
// and so what must follow.
type orderWriter struct {
	*builder
	order    *order
	state    []turnState
	asks     bool   // permissions are held
	requests int    // that were sent besides
	two      bool   // a second prompt was sent
	owed     string // the line of a permission of a cancelled turn that is not answered
	bad      bool   // an act cannot be done where it stands
}

// turnState is how far a turn has come.
type turnState struct {
	*playedTurn
	name      string // of its prompt's line
	begun     bool
	ended     bool
	gone      int  // stops that were let go
	asked     bool // a permission is open
	cancelled cancelled
	contested bool // a second prompt or $/cancel_request leaves open how it goes on
}

type cancelled uint8

const (
	notCancelled cancelled = iota
	maybeCancelled
	surelyCancelled
)

// write returns the scenario of the order, and the lines that make it what it is; ok is
// false if one of its acts cannot be done where it stands.
func (o *order) write() (a sweep.Archive, keep map[string]bool, ok bool) {
	s := sweep.Situation{Script: o.Script, Seen: o.Seen, Point: sweep.Point{Kind: atSecond}}
	title := fmt.Sprintf("%s: around %s.", o.title(), o.Seen.Turn.Text)
	w := &orderWriter{builder: o.version.begin(sweep.NewBuilder(s, title)), order: o}
	for i := range o.turns {
		w.state = append(w.state, turnState{playedTurn: &o.turns[i], name: fmt.Sprintf("P%d", i+1)})
		w.asks = w.asks || slices.ContainsFunc(o.turns[i].stops, func(s stop) bool { return s.gate == nil })
	}
	w.Add("tag cancel")
	w.leadUp()
	for at := 0; at < len(o.items); {
		to := at + 1
		for to < len(o.items) && o.items[to].gap == together {
			to++
		}
		w.group(o.items[at:to])
		at = to
	}
	for i := range w.state {
		w.bad = w.bad || !w.state[i].ended
	}
	w.afterwards()
	a, keep = w.Archive()
	return a, keep, !w.bad
}

// title says what is done besides.
func (o *order) title() string {
	if acts := o.acts(); len(acts) > 0 {
		return strings.Join(acts, ", ")
	}
	return "turns beside each other"
}

// leadUp writes what comes before the first act.
func (w *orderWriter) leadUp() {
	before := w.beside(before(w.Script, w.Seen.Turn))
	if !w.order.uses {
		before = slices.DeleteFunc(before, func(l *script.Line) bool { return l.Says("session", "new", "the_other") })
	}
	w.Lines = append(w.Lines, before...)
	w.Turns = slices.Clone(w.Script.Spoken.Turns[:w.Seen.Nth])
	switch {
	case w.order.late:
		w.Key("permit hold late")
	case w.asks:
		w.Key("permit hold")
	}
}

// group writes acts that the agent finds together, or one.
func (w *orderWriter) group(items []item) {
	if g := items[0].gap; g > 0 {
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
	if last := items[len(items)-1]; !last.loose {
		w.settle(last)
	}
}

// item writes one act.
func (w *orderWriter) item(it item) {
	if it.kind == besides {
		it.act.write(w)
		return
	}
	t := &w.state[it.turn]
	switch it.kind {
	case begins:
		w.begin(t)
	case goesOn:
		w.letGo(t, it.stop)
	case isOver:
		w.end(t)
	}
}

func (w *orderWriter) begin(t *turnState) {
	if t.next {
		w.restore()
	}
	says := t.says
	if t.pace > 0 {
		says = says.Paced(t.pace)
	}
	if t.fails != nil {
		says = says.With(*t.fails, fakellm.NewStep("fail", "{status: 503, times: 1}"))
	}
	for i := len(t.stops) - 1; i >= 0; i-- { // from the last on, so that places stay where they are
		if s := t.stops[i]; s.gate != nil {
			says = says.With(*s.gate, sweep.Gate(t.gateName(i)))
		}
	}
	w.Prompt(t.session, t.text, t.rest, t.name, says)
	w.KeepLast()
	t.begun = true
}

// gateName is the name of the gate of a stop.
func (t *playedTurn) gateName(stop int) string { return fmt.Sprintf("%s%d", t.prefix, stop+1) }

// letGo releases a gate or answers a permission. A turn that was cancelled waits for
// neither: the editor answers its permissions with cancelled.
func (w *orderWriter) letGo(t *turnState, n int) {
	t.gone = n + 1
	s := t.stops[n]
	switch {
	case t.cancelled != notCancelled:
	case t.asked && w.order.late && !t.next:
		w.Key("cancel %s", t.session)
		t.cancelled, t.asked, w.owed = surelyCancelled, false, t.ask(n)
	case s.gate != nil:
		w.Key("release %s", t.gateName(n))
	case t.asked:
		w.Key("answer %s %s", t.ask(n), t.choice)
		t.asked = false
	}
}

// pay answers the permission of a cancelled turn, which the editor owes.
func (w *orderWriter) pay() {
	if w.owed != "" {
		w.Key("answer %s cancelled", w.owed)
	}
	w.owed = ""
}

// ask is the name of the line that awaits the permission of a stop.
func (t *turnState) ask(stop int) string { return fmt.Sprintf("%s_ASK%d", t.name, stop+1) }

// settle awaits what an act of a turn brings about: the stop at which it waits next.
func (w *orderWriter) settle(it item) {
	if it.kind != begins && it.kind != goesOn {
		return
	}
	t := &w.state[it.turn]
	if t.cancelled != notCancelled || t.contested || t.gone >= len(t.stops) {
		return
	}
	if t.stops[t.gone].gate != nil {
		w.Key("await gate %s", t.gateName(t.gone))
		return
	}
	template := "await permission session=%s as %s"
	if t.next || t.session != w.Seen.Session {
		template = "needs " + template // to ask again is up to the agent
	}
	w.Key(template, t.session, t.ask(t.gone))
	t.asked = true
	if t.next {
		w.pay()
	}
}

// leads reports whether the act of an item leads to a permission, which is awaited at
// once: its answer is an act of the order.
func (o *order) leads(it item) bool {
	next := 0
	switch it.kind {
	case goesOn:
		next = it.stop + 1
	case begins:
	default:
		return false
	}
	t := o.turns[it.turn]
	return next < len(t.stops) && t.stops[next].gate == nil
}

// end awaits the end of a turn, as it must be.
func (w *orderWriter) end(t *turnState) {
	t.ended = true
	session := script.Option("session", t.session)
	switch {
	case t.contested:
		if t.asked {
			w.Add("answer %s %s", t.ask(t.gone), t.choice)
		}
		w.Check("PROMPT-018", "both-are-answered")
		w.Add("await response %s", t.name)
		if w.two {
			w.Add("await response TWO")
		}
		return
	case w.owed != "" && t.session == w.Seen.Session && !t.next: // who waits for the answer does right
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
		if w.version.stateEnds || t.fails != nil {
			how = "any|error" // it may be taken back before it is part of the conversation
		}
		w.Add("await turn %s %s", how, session)
		return
	}
	if t.fails != nil && t.gone == len(t.stops) {
		w.Check("PROMPT-003", "ends")
		w.Add("needs await turn any|error %s", session) // how long an agent tries again is up to it
		return
	}
	refused := t.whole && t.choice != w.choice
	stop := "end_turn"
	switch {
	case refused:
		stop = "any" // an agent may end its turn with that
	case t.whole:
		stop = end(w.Seen)
	}
	w.Check("PROMPT-003", "ends-as-before")
	w.Add("await turn %s %s", stop, session)
	if t.session != w.Seen.Session || !t.whole {
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

// effective asks for the effects of the target's turn, which was left alone.
func (w *orderWriter) effective() {
	if lines := w.order.Effective(); len(lines) > 0 {
		w.Check("", "has-its-effect")
		w.Lines = append(w.Lines, lines...)
	}
}

// open is the turn of a session that runs, nil if none does.
func (w *orderWriter) open(session string) *turnState {
	for i := range w.state {
		if t := &w.state[i]; t.session == session && t.begun && !t.ended {
			return t
		}
	}
	return nil
}

// afterwards prompts each session once more, which must work.
func (w *orderWriter) afterwards() {
	w.pay()
	if w.asks {
		w.Add("permit %s", w.choice)
	}
	w.oneMore(w.Seen.Session, "Are you still there?", "Still here", "AGAIN")
	if w.order.uses {
		w.oneMore("the_other", "And are you?", "So am I", "TOO")
	}
}

// oneMore prompts a session, which must work.
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

// contestedIn reports whether it is open how a turn of a session ends.
func (w *orderWriter) contestedIn(session string) bool {
	return slices.ContainsFunc(w.state, func(t turnState) bool { return t.contested && t.session == session })
}
