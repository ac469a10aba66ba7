package reports

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Column is what a matrix is made of: one agent, and what it did.
type Column struct {
	// Name is the agent's, as a user gives it.
	Name string
	Run  results.Run
	// Again is a second run of a few of the scenarios. What differs is
	// volatile.
	Again results.Run
	// Omit are kinds of update and methods of which chance decides whether they
	// come at all: what they hold is not called volatile. * stands for any part.
	Omit []string
	// Chance are members of which chance decides what they hold or whether they
	// are there. They are not called volatile either: whether two runs differ in
	// them is chance, too.
	Chance []string
	// Known are the agent's known failures: their reasons stand in the notes.
	Known []agents.KnownFailure
	// Absent says why the agent did not run here, and how to change it; "" if
	// it ran.
	Absent string
}

// Matrix is several agents beside each other: what each requirement came to.
type Matrix struct {
	Columns []MatrixColumn
	Rows    []MatrixRow
	Notes   []MatrixNote
	opening string // the method that asks for a session
}

// MatrixColumn is one agent of a matrix.
type MatrixColumn struct {
	Name, Version string
	Absent        string
	Counts        results.Counts
	Everywhere    []string // the ids of what at least half of its scenarios show
	Flaky         int      // scenarios that are known to fail now and then
	Reached       []string // hosts it wanted to reach, as seen by the proxy
	Volatile      []string // what differs when the same is done twice
	Measures      Measures
}

// MatrixRow is what came of one requirement, for each agent.
type MatrixRow struct {
	Requirement rules.Requirement
	Cells       []MatrixCell
}

// MatrixCell is what came of one requirement for one agent.
type MatrixCell struct {
	// Outcome is pass, lint, warn, inconclusive, not reached, flaky or fail; ""
	// if nothing judged it.
	Outcome string
	Notes   []int // numbers of the notes that say why it is no pass, from 1
}

// MatrixNote says what stands behind cells that are no pass.
type MatrixNote struct {
	Number  int
	Agent   string
	Outcome string
	Source  string // the check or rule
	Title   string
	Known   string // why it is a known failure; "" if it is none
	Command string // what shows it again
}

// notReached is the outcome of a requirement whose check came after a line
// that failed.
const notReached = "not reached"

// nowAndThen is the outcome of what is known to fail sometimes: whether it did
// in this run says nothing.
const nowAndThen = "flaky"

// outcomes of cells, best first.
var outcomes = []string{"", notReached, results.Pass.String(), results.Lint.String(), results.Warn.String(),
	results.Inconclusive.String(), nowAndThen, results.Fail.String()}

// NewMatrix puts agents beside each other. Known failures count like others: a
// specification knows no baseline.
func NewMatrix(p Protocol, columns []Column) Matrix {
	m := Matrix{opening: p.Open}
	rows := map[string][]MatrixCell{}
	for i, c := range columns {
		m.Columns = append(m.Columns, p.describe(c))
		g := &gathering{rules: p.Rules, matrix: &m, column: c, numbers: map[string]int{}}
		cell := func(id string) *MatrixCell {
			if rows[id] == nil {
				rows[id] = make([]MatrixCell, len(columns))
			}
			return &rows[id][i]
		}
		for _, r := range c.Run.Results {
			if r.Verdict == results.Error {
				continue // the harness is at fault: what it saw proves nothing
			}
			g.result(r, cell)
		}
	}
	for _, q := range p.Rules.Requirements() {
		if cells := rows[q.ID]; cells != nil && q.Side != rules.OfClient {
			m.Rows = append(m.Rows, MatrixRow{Requirement: q, Cells: cells})
		}
	}
	slices.SortStableFunc(m.Rows, func(a, b MatrixRow) int { return cmp.Compare(a.Requirement.Tier, b.Requirement.Tier) })
	m.renumber()
	return m
}

// gathering collects the notes of one agent.
type gathering struct {
	rules   *rules.Set
	matrix  *Matrix
	column  Column
	numbers map[string]int // of notes by what they are about
}

// result adds what one scenario showed.
func (g *gathering) result(r results.Result, cell func(id string) *MatrixCell) {
	for id, times := range r.Support {
		// What happens in a scenario that fails now and then is up to chance.
		if times > 0 && !g.column.unsteady(r.ID) {
			cell(id).worsen(results.Pass.String(), 0)
		}
	}
	g.flakyRules(r, cell)
	for _, c := range r.Checks {
		outcome, note := c.Verdict.String(), 0
		if c.NotReached {
			outcome = notReached
		}
		if c.Verdict == results.Skip || c.Verdict == 0 {
			continue
		}
		if k, ok := g.column.flaky(r.ID, c.Slug); ok {
			outcome = nowAndThen
			note = g.note(c.ID, MatrixNote{Outcome: outcome, Source: c.ID, Title: g.asked(c, r),
				Known: k.Reason}, r)
		} else if c.Verdict != results.Pass {
			note = g.note(c.ID, MatrixNote{Outcome: outcome, Source: c.ID, Title: g.asked(c, r),
				Known: g.reason(r.ID, c.Known, r.Names(c)...)}, r)
		}
		for _, id := range c.Requirements {
			cell(id).worsen(outcome, note)
		}
	}
	for _, f := range r.Findings {
		if _, ok := g.column.flaky(r.ID, f.Names()...); ok || f.Class == results.Error || len(f.Requirements) == 0 {
			continue
		}
		note := g.note(f.Rule+" "+f.Point+" "+f.Class.String(),
			MatrixNote{Outcome: f.Class.String(), Source: f.Rule, Title: g.broken(f),
				Known: g.reason(r.ID, f.Known, f.Names()...)}, r)
		for _, id := range f.Requirements {
			cell(id).worsen(f.Class.String(), note)
		}
	}
}

// flakyRules takes the rules that are broken now and then in a scenario.
func (g *gathering) flakyRules(r results.Result, cell func(id string) *MatrixCell) {
	for _, k := range g.column.Known {
		id, point, _ := strings.Cut(k.ID, " ")
		rule, ok := g.rules.Rule(id)
		if !ok || !k.Flaky || !k.Selects(r.ID) || r.Verdict == results.Skip {
			continue
		}
		note := g.note(rule.ID+" "+nowAndThen, MatrixNote{Outcome: nowAndThen, Source: rule.ID,
			Title: rule.Sentence, Known: k.Reason}, r)
		broken := k.Requirements
		if len(broken) == 0 {
			broken = rule.Requirements()
			if p, ok := lists.Find(rule.Points, func(p rules.Point) bool { return p.ID == point }); ok {
				broken = p.Requirements
			}
		}
		for _, id := range broken {
			cell(id).worsen(nowAndThen, note)
		}
	}
}

// flaky is the entry that says of a check or rule that it fails now and then.
func (c Column) flaky(scenario string, names ...string) (agents.KnownFailure, bool) {
	return lists.Find(c.Known, func(k agents.KnownFailure) bool { return k.Flaky && k.Covers(scenario, names...) })
}

// unsteady reports whether a scenario itself is known to fail now and then. An
// entry for many scenarios says nothing about one.
func (c Column) unsteady(scenario string) bool {
	return slices.ContainsFunc(c.Known,
		func(k agents.KnownFailure) bool { return k.Flaky && k.Scenario == scenario && k.ID != "golden" })
}

// note gives the number of the note about something, and makes it if there is
// none: what many scenarios show is said once, with the first of them.
func (g *gathering) note(about string, n MatrixNote, r results.Result) int {
	if number, ok := g.numbers[about]; ok {
		return number
	}
	n.Number, n.Agent, n.Command = len(g.matrix.Notes)+1, g.column.Name, r.Rerun
	g.matrix.Notes = append(g.matrix.Notes, n)
	g.numbers[about] = n.Number
	return n.Number
}

func (g *gathering) reason(scenario string, known bool, names ...string) string {
	covers := func(k agents.KnownFailure) bool { return known && k.Covers(scenario, names...) }
	return lists.First(g.column.Known, covers).Reason
}

// asked says what a check asks. What came instead has ids and times in it, and
// a table must be the same again: the command shows it.
func (g *gathering) asked(c results.Check, r results.Result) string {
	return cmp.Or(c.Title, g.rules.Statement(c.Requirements), r.Title)
}

// broken says which point of a rule is broken, in the rule's words.
func (g *gathering) broken(f results.Finding) string {
	r, ok := g.rules.Rule(f.Rule)
	if !ok {
		// It is no rule about frames. After a colon stands what it saw here,
		// such as the path of a program.
		what, _, _ := strings.Cut(f.Message, ": ")
		return what
	}
	point := lists.First(r.Points, func(p rules.Point) bool { return p.ID == f.Point && p.Says != "" })
	return cmp.Or(point.Says, r.Sentence)
}

// worsen takes an outcome into a cell; of the notes it keeps those of the worst.
func (c *MatrixCell) worsen(outcome string, note int) {
	before, now := slices.Index(outcomes, c.Outcome), slices.Index(outcomes, outcome)
	if now < before {
		return
	}
	if now > before {
		c.Outcome, c.Notes = outcome, nil
	}
	if note > 0 && !slices.Contains(c.Notes, note) {
		c.Notes = append(c.Notes, note)
	}
}

// words are the cells for people, behind the first ones given.
func (r MatrixRow) words(first ...string) []string {
	return append(first, lists.Map(r.Cells, func(c MatrixCell) string { return c.word(true) })...)
}

// renumber leaves out the notes no cell speaks of, and numbers the rest in the
// order of their place in the table.
func (m *Matrix) renumber() {
	now := map[int]int{}
	var kept []MatrixNote
	for i := range m.Rows {
		for j := range m.Rows[i].Cells {
			cell := &m.Rows[i].Cells[j]
			for k, n := range cell.Notes {
				if now[n] == 0 {
					note := m.Notes[n-1]
					note.Number = len(kept) + 1
					now[n], kept = note.Number, append(kept, note)
				}
				cell.Notes[k] = now[n]
			}
			slices.Sort(cell.Notes)
		}
	}
	m.Notes = kept
}

// describe is what a matrix says of one agent beside its cells.
func (p Protocol) describe(c Column) MatrixColumn {
	m := MatrixColumn{Name: c.Name, Version: c.Run.Agent.Version, Absent: c.Absent, Counts: c.Run.Counts,
		Everywhere: everywhere(c.Run.Causes)}
	for _, r := range c.Run.Results {
		if c.unsteady(r.ID) && r.Verdict != results.Skip {
			m.Flaky++
			m.Counts.Add(&r, -1)
			m.Counts.Total++ // it ran
		}
		for _, f := range r.Findings {
			if f.Rule != results.EgressRule {
				continue
			}
			if host, _, _ := strings.Cut(f.Detail, ";"); !slices.Contains(m.Reached, host) {
				m.Reached = append(m.Reached, host)
			}
		}
	}
	slices.Sort(m.Reached)
	m.Measures = p.measure(c.Run)
	m.Volatile = slices.DeleteFunc(p.volatileFields(c.Run, c.Again, c.Omit), func(field string) bool {
		_, path, _ := strings.Cut(field, " ")
		return slices.ContainsFunc(strings.Split(path, "."),
			func(member string) bool { return slices.Contains(c.Chance, member) })
	})
	return m
}
