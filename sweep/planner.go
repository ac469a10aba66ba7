package sweep

import (
	"fmt"
	"math/rand/v2"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// Planner is what can be done in the turns of scenarios of one protocol. A protocol fills in
// how turns are found, how they are read out of a run and led up to, and what their points
// are; its table of acts fills in the rest. A nil function means that the protocol has no
// such thing.
type Planner struct {
	// Protocol is the name that scenarios begin with; "" for the protocol that none names.
	Protocol string
	// Prompt is the command that begins a turn, Noun what a turn is called.
	Prompt, Noun string
	// Renamed are requirements that have another id in this version of the protocol, or none.
	Renamed map[string]string
	// Turns finds the turns of a script that can be swept, and says why others cannot be.
	Turns func(s *Script) (notes []string)
	// Natural returns the replacement scenario: the script without its mid-turn acts.
	Natural func(s *Script) Archive
	// Look reads one turn out of a run; ok is false if the run did not get there.
	Look func(s *Script, turn Turn, t *transcript.Transcript, effects []Effect) (seen *Seen, ok bool)
	// Points lists the points of a turn, the likeliest first, alone and beside turns of
	// others. It says how many more are the same for the agent.
	Points func(o Observed, others []*Script, r *rand.Rand) (list []Point, same int)
	// Shared returns what a schedule must have in common with those it can share a process
	// with; "" if it can with none.
	Shared func(s Situation, a Archive) string
	// Chain returns the scenario of several schedules in one process, one after the other,
	// and the lines without which it would be another.
	Chain func(parts []Schedule) (a Archive, keep map[string]bool)
	// Doubts returns the questions that a run raises and its script does not ask; nil if none
	// can be raised.
	Doubts func(s Situation) func(t *transcript.Transcript, effects []Effect) map[string]bool
	// Doubtful reports whether the run of a chain raised such a question.
	Doubtful func(parts []Schedule, t *transcript.Transcript) bool
	// Choose draws which turns of a script take part in a sequence of acts; ok is false if none
	// can. Write returns the scenario of a sequence, and the lines that make it what it is; ok
	// is false if one of its acts cannot be done where it stands.
	Choose func(o *Sequence, s *Script, r *rand.Rand) (ok bool)
	Write  func(o *Sequence) (a Archive, keep map[string]bool, ok bool)
	// State reports whether a frame, by the word that its canonical text begins with, tells of
	// state, so that its place among the others means nothing.
	State func(word string) bool

	acts   []*Act
	fits   func(s Situation) bool
	write  func(s Situation) (Archive, map[string]bool)
	asides asides
}

// asides are what can be done besides in a sequence.
type asides struct {
	list []*Act
	fits func(o *Sequence, a *Act) bool
}

// Besides completes a Planner with a table of acts that turns do not need. begin is what their
// conditions are asked of.
func (t *Acts[B]) Besides(p *Planner, begin func(o *Sequence) B) {
	p.asides = asides{t.List, func(o *Sequence, a *Act) bool { return t.hold(begin(o), a.at) }}
}

// Plan completes a Planner with a table of acts. begin adds to a Builder what the protocol
// needs, and lead writes what comes before the act.
func (t *Acts[B]) Plan(p Planner, begin func(*Builder) B, lead func(B)) *Planner {
	p.acts = t.List
	p.fits = func(s Situation) bool { return t.Fits(begin(&Builder{Situation: s})) }
	p.write = func(s Situation) (Archive, map[string]bool) {
		b := begin(NewBuilder(s, fmt.Sprintf("%s: %s of %s.", s.Act.Name, s.Point.Name, s.Seen.Turn.Text)))
		lead(b)
		t.Write(b)
		return b.built().Archive()
	}
	return &p
}

// Actions are the names of all acts.
func (p *Planner) Actions() (names []string) {
	return lists.Map(p.acts, func(a *Act) string { return a.Name })
}

// Base reads a scenario that is to be swept, and says what of it cannot be. If its script
// acts in some of its turns, the scenario without that is swept instead.
func (p *Planner) Base(commands map[string]*scenarios.Command, id string, text []byte) (s *Script, notes []string) {
	s, notes = p.read(commands, id, text)
	if p.Natural == nil || len(notes) == 0 && len(s.Turns) > 0 {
		return s, notes
	}
	instead := p.Natural(s).Text()
	if other, rest := p.read(commands, id, instead); len(other.Turns) > len(s.Turns) {
		other.instead = instead
		return other, rest
	}
	return s, notes
}

// Instead is the scenario that is run and swept instead of the one that was read; nil if
// that one is.
func (s *Script) Instead() []byte { return s.instead }

// Observe reads what happens in the turns out of the transcript of a run and the files that it
// changed. It says which turns the run did not get to.
func (s *Script) Observe(t *transcript.Transcript, effects []Effect) (notes []string) {
	for _, turn := range s.Turns {
		seen, ok := s.Look(s, turn, t, effects)
		if !ok {
			notes = append(notes, s.Unswept(s.Lines[turn.Line], s.Noun+" on", "the baseline did not get there"))
			continue
		}
		s.Reached = append(s.Reached, Observed{s, seen})
	}
	return notes
}

// Wanted says which schedules are asked for.
type Wanted struct {
	Action func(name string) bool
	Point  func(name, state string) bool
	// Drawn returns the random numbers of a turn.
	Drawn func(turn int) *rand.Rand
}

// Schedules lists what can be done in the turns, alone and beside those of others, and says
// how many more are the same as one of them.
func (s *Script) Schedules(others []*Script, w Wanted) (list []Schedule, same int) {
	for _, o := range s.Reached {
		points, alike := s.Points(o, others, w.Drawn(o.Seen.Turn.Nth))
		for _, a := range s.acts {
			if !w.Action(a.Name) || a.Needs != "" && !o.Seen.Able[a.Needs] {
				continue
			}
			for _, p := range points {
				at := Situation{Script: s, Seen: o.Seen, Point: p, Act: a}
				if s.fits(at) && w.Point(p.Name, p.State) {
					list = append(list, at.planned())
				}
			}
			same += alike
		}
	}
	return list, same
}

// planned is the situation as a schedule.
func (s Situation) planned() Schedule {
	p, planner := s.Point, s.Script.Planner
	out := Schedule{
		Scenario: s.Script.ID, Turn: s.Seen.Turn.Nth, Turns: len(s.Script.Turns),
		Point: p.Name, State: p.State, Action: s.Act.Name, Act: s.Act.Kind,
		Rank: p.Rank + s.Act.Rank, Place: int(p.Kind), Kinds: s.Seen.kinds(), Apart: p.Apart, Races: p.Races, At: s,
		Write: func(probes map[string]bool) (Archive, map[string]bool) {
			asked := s // schedules are written by several goroutines
			asked.Probes = probes
			return planner.write(asked)
		},
	}
	if planner.Doubts != nil {
		out.Doubts = planner.Doubts(s)
	}
	if planner.Shared != nil {
		out.Shared = func() string {
			a, _ := planner.write(s)
			return planner.Shared(s, a)
		}
	}
	return out
}
