package schedules

import (
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// mostGates is the maximum number of gates in one turn of a sequence.
const mostGates = 3

// choose draws the turns of a scenario that take part in a sequence, and the gates that hold the model. It returns
// false if no turn of the scenario is suitable.
func (v version) choose(o *sweep.Sequence, s *sweep.Script, r *rand.Rand) bool {
	can := slices.DeleteFunc(slices.Clone(s.Reached), func(o sweep.Observed) bool {
		return o.Seen.End == "" || of(o.Seen).refused || o.Seen.Requests == 0
	})
	if len(can) == 0 {
		return false
	}
	o.Observed = can[r.IntN(len(can))]
	c := chooser{o, r, sweep.Plain(s.Spoken.Turns[o.Seen.Nth]), askedOnce(o)}
	if len(c.places()) == 0 {
		return false
	}
	first := c.turn("a", o.Seen.Turn.Text)
	c.deviate(&first)
	o.Turns = []sweep.PlayedTurn{first}
	own := (&sweep.Builder{Situation: sweep.Situation{Script: s}}).Own
	if r.IntN(2) == 0 {
		other := sweep.PlayedTurn{Session: sweep.Other, Text: own("Keep talking elsewhere."),
			Says: fakellm.NewTurn(fakellm.NewReply(fakellm.Text("Part one. ", "Part two. "))), Prefix: "b"}
		all := other.Says.Places()
		other.Stops = []sweep.Stop{{Gate: &all[0]}, {Gate: &all[1]}, {Gate: &all[2]}}[r.IntN(2):]
		o.Turns = append(o.Turns, other)
	}
	if !again(o) || r.IntN(2) != 0 {
		return true
	}
	next := c.turn("c", own("Once more, please."))
	next.Next = true
	o.Turns = append(o.Turns, next)
	if c.asks && first.Deviates == "" && r.IntN(6) == 0 && !v.stateEnds { // version 2: no idle state names its prompt
		answerLate(o)
	}
	return true
}

// askedOnce reports whether the sequence can contain the answers to the turn's permission requests as acts. This
// requires that the editor gives the same answer to all of them.
func askedOnce(o *sweep.Sequence) bool {
	n := of(o.Seen)
	return n.asked > 0 && (n.choice == "allow_once" || n.choice == "reject_once") && len(permits(o.Script)) <= 1
}

// again reports whether the turn can run a second time: its prompt must not use the option blocks, it must create no
// file, and the scenario must be able to restore the files that it changes.
func again(o *sweep.Sequence) bool {
	return !inBlocks(o.Seen.Turn) && !slices.ContainsFunc(of(o.Seen).effects, func(e sweep.Effect) bool {
		return e.What != "changed" || !o.Script.Holds(e.File)
	})
}

// chooser draws the turns of the target's session.
type chooser struct {
	*sweep.Sequence
	r     *rand.Rand
	model fakellm.TurnNode
	asks  bool // the editor's answers to permission requests are acts
}

// places returns the places at which a gate can hold the model. It omits replies that the agent did not request.
func (c chooser) places() []fakellm.Place {
	return slices.DeleteFunc(c.model.Places(), func(p fakellm.Place) bool { return p.Reply >= c.Seen.Requests })
}

// turn returns the target's turn with gates at drawn places.
func (c chooser) turn(prefix string, text script.Word) sweep.PlayedTurn {
	var gates []fakellm.Place
	places := c.places()
	n := 1 + c.r.IntN(mostGates)
	at := c.r.Perm(len(places))
	at = at[:min(n, len(at))]
	slices.Sort(at)
	gates = append(gates, lists.Map(at, func(i int) fakellm.Place { return places[i] })...)
	stops := c.Seen.Stops(gates, c.Seen.Requests, permission)
	if !c.asks {
		stops = slices.DeleteFunc(stops, sweep.Stop.Asks)
	}
	return sweep.PlayedTurn{Session: c.Seen.Session, Text: text, Rest: c.Seen.Rest, Says: c.model, Stops: stops,
		Prefix: prefix, Whole: true, Choice: of(c.Seen).choice}
}

// deviate changes some drawn turns so that they differ from the baseline: a rejection, a failure of the model, or a
// slow reply.
func (c chooser) deviate(t *sweep.PlayedTurn) {
	if c.asks && t.Choice == "allow_once" && c.r.IntN(4) == 0 {
		refuse(c.Seen, t)
	} else if c.r.IntN(8) == 0 {
		fail(c.Seen, t, fakellm.Place{Reply: c.r.IntN(c.Seen.Requests)}, c.asks)
	}
	if c.r.IntN(8) == 0 {
		t.Pace = sweep.Paces[c.r.IntN(len(sweep.Paces))]
	}
}

// refuse makes the editor reject the permission request of a turn. It removes the later stops, because an agent may
// end its turn after the rejection. It does nothing if the turn does not have exactly one permission request.
func refuse(s *sweep.Seen, t *sweep.PlayedTurn) {
	if at := slices.IndexFunc(t.Stops, sweep.Stop.Asks); at >= 0 && of(s).asked == 1 {
		t.Choice, t.Deviates, t.Stops = "reject_once", "reject", t.Stops[:at+1]
	}
}

// fail makes the model fail once, at the beginning of a reply. It removes the later stops, because an agent may repeat
// the request or end its turn.
func fail(s *sweep.Seen, t *sweep.PlayedTurn, at fakellm.Place, asks bool) {
	var gates []fakellm.Place
	for _, s := range t.Stops {
		if s.Gate != nil && s.Gate.Reply < at.Reply {
			gates = append(gates, *s.Gate)
		}
	}
	t.Stops = slices.DeleteFunc(s.Stops(gates, at.Reply, permission), func(s sweep.Stop) bool { return s.Asks() && !asks })
	t.Stops, t.Fails = append(t.Stops, sweep.Stop{Gate: &at}), &at
}

// answerLate makes the editor answer the first turn's first permission request during the next turn.
func answerLate(o *sweep.Sequence) {
	first, next := &o.Turns[0], o.Turns[len(o.Turns)-1]
	at := slices.IndexFunc(first.Stops, sweep.Stop.Asks)
	if at >= 0 && first.Fails == nil && slices.ContainsFunc(next.Stops, sweep.Stop.Asks) {
		first.Stops, o.Late = first.Stops[:at+1], "cancel + answer in the next turn"
	}
}
