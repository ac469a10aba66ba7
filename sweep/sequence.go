package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Sequence is an order of acts in the turns of one or two sessions. Some acts
// lead a turn from its prompt to its end; others are additional. In the natural
// order, each turn takes its steps in sequence, and each step is awaited. Every
// other choice is a deviation.
type Sequence struct {
	Observed
	Turns []PlayedTurn
	Items []Item
	// Depth is the number of deviations.
	Depth int
	// Late is the name of the act on the first turn if that turn ends during
	// another turn, else "". The sequence then contains a cancel already.
	Late string
}

// Other is the name of the session other than the target's.
const Other = "the_other"

// PlayedTurn is a turn of a Sequence.
type PlayedTurn struct {
	Session string
	Text    script.Word
	Rest    []script.Word
	Says    fakellm.TurnNode
	Stops   []Stop
	Prefix  string // beginning of the names of its gates
	Whole   bool   // the turn is the target's complete turn, not only text
	Choice  string // how the agent's requests are answered
	Next    bool   // the session had an earlier turn
	// Deviates is the name of the deviation in answering requests, or "".
	Deviates string
	// Pace is the model's delay before each piece of its output.
	Pace time.Duration
	// Fails is the place, after the last stop, where the model fails once; nil
	// if it does not fail.
	Fails *fakellm.Place
}

// Stop is where a turn waits until an act continues it. It is a gate of the
// model (Gate) or a request of the agent (Nth).
type Stop struct {
	Gate *fakellm.Place
	Nth  int // number of the request, from 1
}

// Item is one act of a Sequence.
type Item struct {
	Kind ItemKind
	Turn int // index of the act's turn; for an additional act, the session's latest turn
	Stop int // index of the stop that the act continues
	Act  *Act
	Gap  Gap
	// Loose says that the script does not await the effect of the act.
	Loose bool
}

// ItemKind is the kind of an Item.
type ItemKind uint8

// The kinds of an Item.
const (
	Begins  ItemKind = iota // the prompt
	GoesOn                  // a gate is released or a request is answered
	Ends                    // the script awaits the end of the turn; no act
	Besides                 // an additional act that the turn does not need
)

// Gap is the time since the previous act. 0 means none. Together means that the
// agent is paused, so that both acts reach it at once.
type Gap time.Duration

// Together means that the agent is paused between the two acts.
const Together Gap = -1

// gaps lists the times that can be drawn.
var gaps = []Gap{0, Gap(time.Millisecond), Gap(5 * time.Millisecond), Gap(20 * time.Millisecond),
	Gap(100 * time.Millisecond), Together}

// Paces lists the delays of a slow model before each piece of its output.
var Paces = []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}

func (g Gap) String() string {
	if g == Together {
		return "together"
	}
	return time.Duration(g).String()
}

// name returns the name of an item that coverage counts.
func (o *Sequence) name(it Item) string {
	who := "another session's"
	if it.Kind != Besides {
		t := o.Turns[it.Turn]
		if t.Session == o.Seen.Session {
			who = "the"
		}
		if t.Next {
			who = "the next"
		}
	}
	switch it.Kind {
	case Begins:
		return who + " prompt"
	case GoesOn:
		if o.Turns[it.Turn].Stops[it.Stop].Gate == nil {
			return who + " answer"
		}
		return who + " model goes on"
	case Ends:
		return who + " end"
	}
	return it.Act.Name
}

// key returns a string that identifies an order by its acts. It ignores where
// the end of a turn is awaited among the acts of other turns, because the agent
// sees no difference.
func (o *Sequence) key() string {
	var b strings.Builder
	fmt.Fprint(&b, o.Script.ID, o.Seen.Nth, o.Late != "")
	for _, t := range o.Turns {
		fmt.Fprint(&b, t.Session, t.Choice, len(t.Stops), t.Pace, t.Fails != nil)
		for _, s := range t.Stops {
			if s.Gate != nil {
				fmt.Fprint(&b, *s.Gate)
			}
		}
	}
	for _, it := range o.Items {
		if it.Kind != Ends {
			fmt.Fprint(&b, " ", o.name(it), it.Turn, it.Stop, it.Gap, it.Loose)
		}
	}
	return b.String()
}

// Acts returns the names of the additional acts and of the other deviations.
func (o *Sequence) Acts() (out []string) {
	if o.Late != "" {
		out = append(out, o.Late)
	}
	for _, it := range o.Items {
		if it.Kind == Besides {
			out = append(out, it.Act.Name)
		}
	}
	for _, t := range o.Turns {
		if t.Deviates != "" {
			out = append(out, t.Deviates)
		}
		if t.Fails != nil {
			out = append(out, "the model fails")
		}
	}
	return out
}

// Others reports whether the sequence contains a turn of the other session.
func (o *Sequence) Others() bool { return o.last(Other) >= 0 }

// Nexts reports whether the sequence contains a second turn of the target's
// session.
func (o *Sequence) Nexts() bool { return o.last(o.Seen.Session) > 0 }

// last returns the index of a session's last turn, or -1 if it has none.
func (o *Sequence) last(session string) (at int) {
	at = -1
	for i, t := range o.Turns {
		if t.Session == session {
			at = i
		}
	}
	return at
}

// Builder starts the scenario of the sequence. Its title names the deviations.
// If there are none, the title contains the text nothing.
func (o *Sequence) Builder(nothing string) *Builder {
	title := cmp.Or(strings.Join(o.Acts(), ", "), nothing)
	return NewBuilder(Situation{Script: o.Script}, fmt.Sprintf("%s: around %s.", title, o.Seen.Turn.Text))
}

// Stops returns the stops in the first replies of the target's turn. These are
// the given gates, and each frame of the kind asks that came between the
// request for a reply and the next request.
func (s *Seen) Stops(gates []fakellm.Place, replies int, asks string) (out []Stop) {
	nth, at := 0, 0
	for r := range replies {
		for ; at < len(gates) && gates[at].Reply == r; at++ {
			out = append(out, Stop{Gate: &gates[at]})
		}
		for _, f := range s.Frames {
			if f.Kind == asks && f.Reply == r {
				nth++
				out = append(out, Stop{Nth: nth})
			}
		}
	}
	return out
}

// Asks reports whether the stop is a request of the agent.
func (s Stop) Asks() bool { return s.Gate == nil }

// possible returns the additional acts that the sequence can contain. The first
// act finds the most bugs, so it is repeated in the list to be drawn more
// often.
func (o *Sequence) possible() []*Act {
	const often = 4
	can := slices.DeleteFunc(slices.Clone(o.Script.asides.list), func(a *Act) bool { return !o.Script.asides.fits(o, a) })
	if o.Late != "" {
		return can[1:] // the sequence contains its cancel already
	}
	return append(slices.Repeat(can[:1], often-1), can...)
}
