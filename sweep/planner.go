package sweep

import (
	"fmt"
	"math/rand/v2"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// Planner describes what an editor can do during the turns of one protocol's
// scenarios. The protocol provides functions that find turns, read them from a
// run, lead up to them and list their points. The rest comes from its table of
// acts. A nil function means that the protocol lacks the feature.
type Planner struct {
	// Protocol is the protocol name in the first line of scenarios. "" means the
	// default protocol, whose scenarios omit the line.
	Protocol string
	// Prompt is the command that starts a turn. Noun is the protocol's word for a
	// turn.
	Prompt, Noun string
	// Renamed maps a requirement to its id in this version of the protocol. The id
	// is "" if this version lacks the requirement.
	Renamed map[string]string
	// Turns finds the turns of a script that can be swept. notes explain why other
	// turns cannot be swept.
	Turns func(s *Script) (notes []string)
	// Natural returns the replacement scenario: the script without its acts in the
	// middle of turns.
	Natural func(s *Script) Archive
	// Look reads one turn from a run. ok is false if the run did not reach the
	// turn.
	Look func(s *Script, turn Turn, t *transcript.Transcript, effects []Effect) (seen *Seen, ok bool)
	// Points lists the points of a turn, alone and combined with turns of other
	// scripts. The most likely to find a bug come first. same is the number of
	// points that were omitted because they make no difference to the agent.
	Points func(o Observed, others []*Script, r *rand.Rand) (list []Point, same int)
	// Shared returns a key for the schedule. Schedules with equal keys can share a
	// process. If the key is "", the schedule needs its own process.
	Shared func(s Situation, a Archive) string
	// Chain returns a scenario that runs several schedules in one process, one
	// after the other. keep has the lines that must stay when it is shortened.
	Chain func(parts []Schedule) (a Archive, keep map[string]bool)
	// Doubts returns a function that finds the questions that a run raises but its
	// script does not ask. The function is nil if there can be none.
	Doubts func(s Situation) func(t *transcript.Transcript, effects []Effect) map[string]bool
	// Doubtful reports whether a chain raised a question that its script does not
	// ask.
	Doubtful func(parts []Schedule, t *transcript.Transcript) bool
	// Choose draws which turns of a script take part in a sequence of acts; ok is
	// false if none can. Write returns the scenario of a sequence, and the lines
	// that must stay when it is shortened. Its ok is false if an act is impossible
	// at its place.
	Choose func(o *Sequence, s *Script, r *rand.Rand) (ok bool)
	Write  func(o *Sequence) (a Archive, keep map[string]bool, ok bool)
	// State reports whether a frame is a state update, whose place among other
	// frames has no meaning. word is the first word of its canonical text.
	State func(word string) bool

	acts   []*Act
	fits   func(s Situation) bool
	write  func(s Situation) (Archive, map[string]bool)
	asides asides
}

// asides are the additional acts that a sequence can contain, besides the acts
// of its turns.
type asides struct {
	list []*Act
	fits func(o *Sequence, a *Act) bool
}

// Besides adds a table of additional acts to a Planner. begin returns the
// Builder on which the conditions of the acts are evaluated.
func (t *Acts[B]) Besides(p *Planner, begin func(o *Sequence) B) {
	p.asides = asides{t.List, func(o *Sequence, a *Act) bool { return t.hold(begin(o), a.at) }}
}

// Plan returns a Planner with a table of acts. begin adds the protocol's data
// to a Builder. lead writes the lines before the act.
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

// Actions returns the names of all acts.
func (p *Planner) Actions() (names []string) {
	return lists.Map(p.acts, func(a *Act) string { return a.Name })
}

// Base parses a scenario to sweep. notes explain which parts cannot be swept.
// If the script acts in the middle of some turns, Base may return the
// replacement scenario without those acts.
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

// Instead returns the text of the replacement scenario, or nil if the original
// is swept.
func (s *Script) Instead() []byte { return s.instead }

// Observe reads the turns from the transcript of a baseline run and from the
// list of files that it changed. notes name the turns that the run did not
// reach.
func (s *Script) Observe(t *transcript.Transcript, effects []Effect) (notes []string) {
	for _, turn := range s.Turns {
		seen, ok := s.Look(s, turn, t, effects)
		if !ok {
			notes = append(notes, s.Unswept(s.Lines[turn.Line], s.Noun+" on", "the baseline run did not reach it"))
			continue
		}
		s.Reached = append(s.Reached, Observed{s, seen})
	}
	return notes
}

// Wanted selects the schedules to list.
type Wanted struct {
	Action func(name string) bool
	Point  func(name, state string) bool
	// Drawn returns the random number generator of a turn.
	Drawn func(turn int) *rand.Rand
}

// Schedules lists the schedules of the turns, alone and combined with turns of
// other scripts. same is the number of schedules that were omitted because they
// equal a listed one.
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

// planned converts the situation to a schedule.
func (s Situation) planned() Schedule {
	p, planner := s.Point, s.Script.Planner
	out := Schedule{
		Scenario: s.Script.ID, Turn: s.Seen.Turn.Nth, Turns: len(s.Script.Turns),
		Point: p.Name, State: p.State, Action: s.Act.Name, Act: s.Act.Kind,
		Rank: p.Rank + s.Act.Rank, Place: int(p.Kind), Kinds: s.Seen.kinds(), Apart: p.Apart, Races: p.Races, At: s,
		Write: func(probes map[string]bool) (Archive, map[string]bool) {
			asked := s // a copy, because several goroutines write schedules
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
