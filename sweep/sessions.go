package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Grammar draws complete sessions that suit one agent.
type Grammar interface {
	// Draw returns the session with this key. Equal keys give equal sessions.
	Draw(k Key) DrawnSession
	// Pairs lists the pairs that sessions can cover, for example a state of a turn
	// and an act, or a way into a session and a setting.
	Pairs() [][2]string
	// AskMode returns the agent's mode in which it asks for permission. It returns
	// "" if the agent's initial mode asks.
	AskMode() string
}

// Generator learns an agent's behavior from simple turns. It returns a grammar
// of sessions for that agent.
type Generator struct {
	// Questions returns the scenarios of the simple turns, by name.
	Questions func(p *agents.Profile) map[string]Archive
	// More returns additional simple turns, which depend on the first grammar.
	More func(g Grammar) map[string]Archive
	// Learn learns from the transcripts of the simple turns. learned is a
	// paragraph about them for the user.
	Learn func(seen map[string]*transcript.Transcript) (g Grammar, learned string)
}

// DrawnSession is a session that a grammar has drawn. It is a scenario that
// only rules judge.
type DrawnSession struct {
	Key
	Archive
	// Covers lists the pairs that the session covers.
	Covers [][2]string
	// Smaller returns the sessions that have one part fewer.
	Smaller func() []DrawnSession
}

// SessionState is the State of drawn sessions.
const SessionState = results.DrawnSession

// Explore runs sessions that a grammar draws, instead of schedules of
// scenarios. It runs Max sessions or, if Max is 0, as many as the budget
// allows. If again is not nil, it runs only that session, Max times.
func (w *Sweeper) Explore(ctx context.Context, g Grammar, again *Key) (Outcome, error) {
	if w.Engine.Out == "" {
		return Outcome{}, errors.New("exploring needs a folder for transcripts")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newSweep(ctx, w)
	s.Choice = ByPriority // what runs show is not compared
	temp, err := s.engine.MakeTemp()
	if err != nil {
		return Outcome{}, err
	}
	defer temp.Close()
	began := time.Now()
	explore, settle, done := s.budgeted(ctx)
	defer done()
	s.sessions(explore, s.drawnSessions(g, again))
	explored := time.Now()
	findings := s.reduce(settle)
	m := s.sessionMap(g)
	m.Exploring, m.Settling = explored.Sub(began), time.Since(explored)
	run := s.engine.NewRun()
	run.Started, run.Interrupted, run.Sweep = began, ctx.Err() != nil, m
	addFound(&run, findings)
	s.notes = append(s.notes, s.undecided()...)
	s.notes = append(s.notes, s.byChance()...)
	if s.Write != "" && settle.Err() == nil {
		if err := s.writeShortest(settle); err != nil {
			return Outcome{}, err
		}
	}
	run.Notes = append(run.Notes, s.notes...)
	run.Duration = time.Since(began)
	out := Outcome{Run: run, Findings: findings, Notes: s.notes}
	out.judge(&s.engine)
	if len(findings) == 0 && m.Explored > 0 && m.Explored == m.Skipped+m.Inconclusive {
		out.Run.Exit = 2 // nothing could be judged
	}
	return out, nil
}

// drafts is how many drafts are drawn for each session. The draft whose pairs
// are newest runs. If no draft has an untried pair, up to moreDrafts are drawn.
const drafts, moreDrafts = 16, 64

// drawnSessions draws sessions one by one. Each should cover pairs that earlier
// sessions did not.
func (s *sweep) drawnSessions(g Grammar, again *Key) iter.Seq[Schedule] {
	return func(yield func(Schedule) bool) {
		for n := 1; s.Max == 0 || n <= s.Max; n++ {
			if p := s.Shard; p != nil && n%p.Of != p.Index%p.Of {
				continue
			}
			var best DrawnSession
			if again != nil {
				best = g.Draw(*again)
			} else {
				best = s.draft(g, n)
			}
			sch := s.ofSession(best)
			if sch.nth = n; again != nil {
				sch.Number = n // each run has its own folder
			}
			s.cover.plays(sch)
			if !yield(sch) {
				return
			}
		}
	}
}

// draft draws the n-th session. It returns the best of several drafts.
func (s *sweep) draft(g Grammar, n int) (best DrawnSession) {
	worth, untried := -1.0, false
	for v := 0; v < drafts || !untried && v < moreDrafts; v++ {
		d := g.Draw(Key{Seed: s.engine.Seed, N: n, Variant: v})
		x, news := s.cover.value(pairNames(d.Covers))
		if x > worth || news && !untried {
			best, worth = d, x
		}
		untried = untried || news
	}
	return best
}

func pairNames(pairs [][2]string) (names []string) {
	return lists.Map(pairs, func(p [2]string) string { return p[0] + ": " + p[1] })
}

// ofSession converts a drawn session to a schedule.
func (s *sweep) ofSession(d DrawnSession) Schedule {
	return Schedule{
		Scenario: SessionState, Drawn: d.Key.String(), Point: SessionState, State: SessionState, Action: "session",
		Act: "session", Tried: pairNames(d.Covers), Covers: d.Covers,
		Write: func(map[string]bool) (Archive, map[string]bool) { return d.Archive, map[string]bool{} },
		Simpler: func() (out []Schedule) {
			for _, smaller := range d.Smaller() {
				if len(smaller.Lines) < len(d.Lines) || len(smaller.Model) < len(d.Model) {
					out = append(out, s.ofSession(smaller))
				}
			}
			return out
		},
	}
}

// sessions runs drawn sessions while later ones are drawn.
func (s *sweep) sessions(ctx context.Context, list iter.Seq[Schedule]) {
	var done atomic.Int64
	each(ctx, s, list, func(sch Schedule) {
		res, began := s.runText(ctx, s.hasty, sch.text(), sch.id())
		if began && s.rash(res) {
			res, began = s.runText(s.whole, s.engine, sch.text(), sch.id())
		}
		if !began || s.whole.Err() != nil {
			return
		}
		if s.Twice {
			s.playAgain(ctx, sch, res)
		}
		s.recordSession(sch, res)
		s.progress("explore", int(done.Add(1)), s.Max, sch.Drawn, res.Verdict)
	})
}

// rash reports whether a run with shortened waits shows a finding that no run
// with full waits has shown.
func (s *sweep) rash(res results.Result) bool {
	cut := slices.ContainsFunc(res.Vain, func(v results.Vain) bool { return v.Cut })
	shown := rulesOf(found(res))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range shown {
		s.patient[rule] = s.patient[rule] || !cut
	}
	return cut && slices.ContainsFunc(shown, func(rule string) bool { return !s.patient[rule] })
}

// recordSession adds a session's sightings and covered pairs to the sweep. It
// removes the files of a session without findings.
func (s *sweep) recordSession(sch Schedule, res results.Result) {
	cell := s.cell(sch, res)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, ranSession{sch, cell, res.Reason})
	shown := cell.Finding != "" || cell.Verdict != results.Pass && cell.Verdict != results.Skip
	if !shown && res.Verdict != results.Error {
		// Failing to remove files is no reason to stop.
		_ = confined.RemoveAll(filepath.Join(s.engine.Out, filepath.FromSlash(res.ID)))
	}
}

// ranSession is a session that ran, and its result.
type ranSession struct {
	Schedule
	cell   results.SweepCell
	reason string // why it was skipped or is inconclusive
}

// undecided returns the most frequent reasons why sessions were skipped or
// inconclusive, the most frequent first.
func (s *sweep) undecided() []string {
	const most = 5
	count := map[string]int{}
	words := map[results.Verdict]string{results.Skip: "skipped", results.Inconclusive: "inconclusive"}
	for _, r := range s.ran {
		if word := words[r.cell.Verdict]; word != "" {
			reason := ofSession().ReplaceAllString(r.reason, "")
			count[word+": "+named().ReplaceAllString(reason, "${1}·")]++
		}
	}
	reasons := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a, b))
	})
	return lists.Map(reasons[:min(most, len(reasons))], func(r string) string {
		return printable.Plural(count[r], "session", "sessions") + " " + r
	})
}

// ofSession matches the conditions that limit a line to one session or call.
var ofSession = lazy.Regexp(` (session=|about~)\S+`)

// named matches the numbered names in a drawn session.
var named = lazy.Regexp(`((?:\b|-)(?:go|nota|s|g|P|ASK|REQ)|#)\d+x?`)

// sessionMap returns the results of the sweep, with the pairs that the sessions
// covered.
func (s *sweep) sessionMap(g Grammar) *results.Sweep {
	m := &results.Sweep{Explored: s.explored, Inconclusive: s.unsure, PairsOf: map[string]int{}}
	tried := map[[2]string]bool{}
	worst := map[[2]string]results.SweepCell{}
	for _, r := range s.ran {
		if r.cell.Verdict == results.Skip {
			m.Skipped++
			continue
		}
		for _, p := range r.Covers {
			tried[p] = true
			c := r.cell
			c.Point, c.State, c.Action = p[0], p[0], p[1]
			if old, ok := worst[p]; !ok || blame(c.Verdict) > blame(old.Verdict) {
				worst[p] = c
			}
		}
	}
	for _, p := range g.Pairs() {
		m.Points, m.Actions = lists.With(m.Points, p[0]), lists.With(m.Actions, p[1])
		m.Pairs++
		if c, ok := worst[p]; ok {
			m.PairsTried++
			m.Cells = append(m.Cells, c)
		} else {
			m.Untried = append(m.Untried, p[0]+": "+p[1])
		}
	}
	m.PairsOf[SessionState] = m.Pairs
	if s.Shard != nil {
		m.Tried = &results.SweepTried{Pairs: pairNames(slices.Collect(maps.Keys(tried)))}
	}
	return m
}

// value returns how new some pairs are. An untried pair adds 1; a pair that was
// tried n times adds less the larger n is, and nothing from 4 on. untried reports
// whether one of the pairs is untried.
func (c *coverage) value(pairs []string) (sum float64, untried bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range pairs {
		if n := c.pairs[p]; n < 4 {
			sum += 1 / float64(1+n*n*4)
			untried = untried || n == 0
		}
	}
	return sum, untried
}

// Key returns the text of the key of the session that shows the finding. It
// returns "" if the finding is not from a drawn session.
func (f Finding) Key() string {
	if f.schedule.State == SessionState {
		return f.schedule.Drawn
	}
	return ""
}

// Key identifies a drawn session by the seed, the number of the session, the
// number of its draft (Variant), and the parts that are left out of it.
type Key struct {
	Seed       int64
	N, Variant int
	// Without lists the parts that are left out, by the grammar's names.
	Without []string
}

// String returns the key in the format of ParseKey, for example 1.143.2, or
// 1.143.2-0-3a if two parts are left out.
func (k Key) String() string {
	return strings.Join(append([]string{fmt.Sprintf("%d.%d.%d", k.Seed, k.N, k.Variant)}, k.Without...), "-")
}

// Random returns the random number generator for one part of the session. Its
// numbers do not depend on the other parts.
func (k Key) Random(part int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d.%d.%d/%d", k.Seed, k.N, k.Variant, part)
	return rand.New(rand.NewPCG(h.Sum64(), uint64(part)))
}

var keyForm = lazy.Regexp(`^(-?\d+)\.(\d+)\.(\d+)((?:-[0-9a-z]+)*)$`)

// ParseKey parses a key in the format of Key.String.
func ParseKey(text string) (k Key, err error) {
	m := keyForm().FindStringSubmatch(text)
	if m == nil {
		return k, fmt.Errorf("%q is not the key of a session: want SEED.NUMBER.DRAFT, such as 1.143.2, "+
			"as a finding shows it", text)
	}
	k.Seed, _ = strconv.ParseInt(m[1], 10, 64)
	k.N, _ = strconv.Atoi(m[2])
	k.Variant, _ = strconv.Atoi(m[3])
	if m[4] != "" {
		k.Without = strings.Split(m[4][1:], "-")
	}
	return k, nil
}

// playAgain runs a session a second time, and records whether the agent behaved
// differently.
func (s *sweep) playAgain(ctx context.Context, sch Schedule, first results.Result) {
	id := sch.id() + "-again"
	res, began := s.runText(ctx, s.engine, sch.text(), id)
	if !began {
		return
	}
	difference := s.difference(sch.id(), id, first, res)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twice++
	if difference != "" {
		s.chance = append(s.chance, sch.Drawn+": "+difference)
		return
	}
	// Failing to remove files is no reason to stop.
	_ = confined.RemoveAll(filepath.Join(s.engine.Out, filepath.FromSlash(id)))
}

// difference describes the agent's messages that are not equally frequent in
// two runs of a session: requests, answers and ends of turns. It returns "" if
// there are none. It ignores text and the order of messages.
func (s *sweep) difference(a, b string, first, second results.Result) string {
	if first.Verdict == results.Error || second.Verdict == results.Error {
		return ""
	}
	one, two := s.acts(a), s.acts(b)
	var only []string
	for _, act := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(one), two...)))) {
		same := func(other string) bool { return other == act }
		if x, y := lists.Count(one, same), lists.Count(two, same); x != y {
			only = append(only, fmt.Sprintf("%s %d times, then %d times", act, x, y))
		}
	}
	return strings.Join(only, "; ")
}

// acts returns the names of the requests, responses and ends of turns that the
// agent sent in a run.
func (s *sweep) acts(id string) (out []string) {
	t, _, err := logged(s.engine.Out, id)
	if err != nil {
		return nil
	}
	for e := range t.All() {
		if e.Source != transcript.Agent {
			continue
		}
		switch code := e.JSON().Path("error.code"); {
		case e.Kind == transcript.Request:
			out = append(out, e.Method)
		case e.Kind != transcript.Response:
		case code.Exists():
			out = append(out, e.Method+" refused with "+code.Text())
		default:
			end, _ := s.engine.Protocol.TurnEnd(e)
			out = append(out, strings.TrimSpace(e.Method+" answered "+end))
		}
	}
	return out
}

// byChance returns notes about the sessions whose two plays differed.
func (s *sweep) byChance() (notes []string) {
	if !s.Twice {
		return nil
	}
	const most = 5
	notes = append(notes, fmt.Sprintf("%d of %d sessions differed between two runs with the same input: "+
		"the agent itself behaves randomly", len(s.chance), s.twice))
	slices.Sort(s.chance)
	return append(notes, s.chance[:min(most, len(s.chance))]...)
}
