package schedules

import (
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/sweep"
)

// mostGates is at how many gates a turn of an order is held at most.
const mostGates = 3

// choose draws which turns of a scenario take part in a sequence, and where they are held.
func (v version) choose(o *sweep.Sequence, s *sweep.Script, r *rand.Rand) bool {
	can := slices.DeleteFunc(slices.Clone(s.Reached), func(o sweep.Observed) bool {
		return o.Seen.End == "" || of(o.Seen).refused || o.Seen.Requests == 0
	})
	if len(can) == 0 {
		return false
	}
	o.Observed = can[r.IntN(len(can))]
	model := sweep.Plain(o.Script.Spoken.Turns[o.Seen.Nth])
	places := slices.DeleteFunc(model.Places(), func(p fakellm.Place) bool { return p.Reply >= o.Seen.Requests })
	if len(places) == 0 {
		return false
	}
	gates := func() []fakellm.Place {
		var out []fakellm.Place
		n := 1 + r.IntN(mostGates)
		for _, i := range r.Perm(len(places))[:min(n, len(places))] {
			out = append(out, places[i])
		}
		slices.SortFunc(out, func(a, b fakellm.Place) int {
			return slices.Index(places, a) - slices.Index(places, b)
		})
		return out
	}
	choice := of(o.Seen).choice
	asks := of(o.Seen).asked > 0 && slices.Contains([]string{"allow_once", "reject_once"}, choice) &&
		len(permits(o.Script)) <= 1
	stops := func() []sweep.Stop {
		out := o.Seen.Stops(gates(), o.Seen.Requests, permission)
		if !asks {
			out = slices.DeleteFunc(out, sweep.Stop.Asks)
		}
		return out
	}
	first := sweep.PlayedTurn{Session: o.Seen.Session, Text: o.Seen.Turn.Text, Rest: o.Seen.Rest, Says: model,
		Stops: stops(), Prefix: "a", Whole: true, Choice: choice}
	if asks && choice == "allow_once" && r.IntN(4) == 0 {
		refuse(o.Seen, &first)
	} else if r.IntN(8) == 0 {
		fail(o.Seen, &first, fakellm.Place{Reply: r.IntN(o.Seen.Requests)}, asks)
	}
	if r.IntN(8) == 0 {
		first.Pace = sweep.Paces[r.IntN(len(sweep.Paces))]
	}
	o.Turns = []sweep.PlayedTurn{first}
	own := (&sweep.Builder{Situation: sweep.Situation{Script: o.Script}}).Own
	if r.IntN(2) == 0 {
		other := sweep.PlayedTurn{Session: sweep.Other, Text: own("Keep talking elsewhere."),
			Says: fakellm.NewTurn(fakellm.NewReply(fakellm.Text("Part one. ", "Part two. "))), Prefix: "b"}
		all := other.Says.Places()
		other.Stops = []sweep.Stop{{Gate: &all[0]}, {Gate: &all[1]}, {Gate: &all[2]}}[r.IntN(2):]
		o.Turns = append(o.Turns, other)
	}
	// A file that is new the first time is not new the next.
	again := !inBlocks(o.Seen.Turn) && !slices.ContainsFunc(of(o.Seen).effects, func(e sweep.Effect) bool {
		return e.What != "changed" || !o.Script.Holds(e.File)
	})
	if again && r.IntN(2) == 0 {
		next := sweep.PlayedTurn{Session: o.Seen.Session, Text: own("Once more, please."), Rest: o.Seen.Rest, Says: model,
			Stops: stops(), Prefix: "c", Whole: true, Choice: choice, Next: true}
		o.Turns = append(o.Turns, next)
		if asks && first.Choice == choice && r.IntN(6) == 0 && !v.stateEnds { // whose ends the answers do not tell
			answerLate(o)
		}
	}
	return true
}

// refuse has the permission of a turn refused, and leaves out the stops behind it: an agent
// may end its turn there. Of several permissions none is refused.
func refuse(s *sweep.Seen, t *sweep.PlayedTurn) {
	if at := slices.IndexFunc(t.Stops, sweep.Stop.Asks); at >= 0 && of(s).asked == 1 {
		t.Choice, t.Deviates, t.Stops = "reject_once", "reject", t.Stops[:at+1]
	}
}

// fail has the model fail once at the beginning of a reply, when that is let go. What
// comes behind it is no stop: an agent may ask again, or end its turn.
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

// answerLate has the first permission of the first turn answered in the next turn.
func answerLate(o *sweep.Sequence) {
	first, next := &o.Turns[0], o.Turns[len(o.Turns)-1]
	at := slices.IndexFunc(first.Stops, sweep.Stop.Asks)
	if at >= 0 && first.Fails == nil && slices.ContainsFunc(next.Stops, sweep.Stop.Asks) {
		first.Stops, o.Late = first.Stops[:at+1], "cancel + answer in the next turn"
	}
}
