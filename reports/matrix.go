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

// Column is the input for one agent's column in a matrix: the agent's runs.
type Column struct {
	// Name is the name by which the user knows the agent.
	Name string
	Run  results.Run
	// Again is a second run of some of the scenarios. Fields whose values differ between the two runs are volatile.
	Again results.Run
	// Omit lists kinds of updates and methods that occur only in some runs. Their fields are not listed as volatile.
	// * matches any text.
	Omit []string
	// Chance lists members whose value or presence is random. They are not listed as volatile either, because it is
	// random whether two runs differ in them.
	Chance []string
	// Known lists the agent's known failures. Their reasons appear in the notes.
	Known []agents.KnownFailure
	// Absent is the reason why the agent did not run here, and how to change that; "" if it ran.
	Absent string
}

// Matrix compares several agents: it has the outcome of each requirement for each agent.
type Matrix struct {
	Columns []MatrixColumn
	Rows    []MatrixRow
	Notes   []MatrixNote
	opening string // method that opens a session
}

// MatrixColumn is one agent of a matrix.
type MatrixColumn struct {
	Name, Version string
	Absent        string
	Counts        results.Counts
	Everywhere    []string // ids of the causes in at least half of the scenarios
	Flaky         int      // number of scenarios with a known flaky failure
	Reached       []string // hosts that the agent tried to reach through the proxy
	Volatile      []string // fields that differ between identical runs
	Measures      Measures
}

// MatrixRow is the outcome of one requirement for each agent.
type MatrixRow struct {
	Requirement rules.Requirement
	Cells       []MatrixCell
}

// MatrixCell is the outcome of one requirement for one agent.
type MatrixCell struct {
	// Outcome is pass, lint, warn, inconclusive, not reached, flaky or fail; "" if no check or rule judged the
	// requirement.
	Outcome string
	Notes   []int // numbers of the notes that explain the outcome, from 1
}

// MatrixNote explains why the cells that refer to it do not have the outcome pass.
type MatrixNote struct {
	Number  int
	Agent   string
	Outcome string
	Source  string // id of the check or rule
	Title   string
	Known   string // reason if it is a known failure, else ""
	Command string // the command that reproduces it
}

// notReached is the outcome of a requirement whose check follows a line that failed.
const notReached = "not reached"

// nowAndThen is the outcome for a known flaky failure, even if the failure did not occur in this run.
const nowAndThen = "flaky"

// outcomes lists the outcomes of cells, from best to worst.
var outcomes = []string{"", notReached, results.Pass.String(), results.Lint.String(), results.Warn.String(),
	results.Inconclusive.String(), nowAndThen, results.Fail.String()}

// NewMatrix returns the comparison of agents. Known failures count like other failures, because the specification
// makes no exceptions for them.
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
				continue // an error of the harness says nothing about the agent
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

// gathering collects the outcomes and notes for one agent.
type gathering struct {
	rules   *rules.Set
	matrix  *Matrix
	column  Column
	numbers map[string]int // numbers of the notes, by key
}

// result adds the outcomes of one scenario to the cells.
func (g *gathering) result(r results.Result, cell func(id string) *MatrixCell) {
	for id, times := range r.Support {
		// A rule that was satisfied in a flaky scenario may fail in the next run, so it does not count as a pass.
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

// flakyRules adds the known flaky failures of rules in one scenario to the cells.
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

// flaky returns the known flaky failure that covers one of the names in a scenario. A name is the id of a check or
// rule.
func (c Column) flaky(scenario string, names ...string) (agents.KnownFailure, bool) {
	return lists.Find(c.Known, func(k agents.KnownFailure) bool { return k.Flaky && k.Covers(scenario, names...) })
}

// unsteady reports whether a known flaky failure names exactly this scenario. An entry whose glob covers several
// scenarios does not count.
func (c Column) unsteady(scenario string) bool {
	return slices.ContainsFunc(c.Known,
		func(k agents.KnownFailure) bool { return k.Flaky && k.Scenario == scenario && k.ID != "golden" })
}

// note returns the number of the note with the key about. If there is none, it adds n as a new note, with the command
// that reruns r. Later scenarios with the same key use the same note.
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

// asked returns the text of the requirement that a check tests. The text does not contain the observed value, because
// the value's ids and times would differ from run to run. The note's command shows the value.
func (g *gathering) asked(c results.Check, r results.Result) string {
	return cmp.Or(c.Title, g.rules.Statement(c.Requirements), r.Title)
}

// broken returns the text of the rule's point that a finding is about.
func (g *gathering) broken(f results.Finding) string {
	r, ok := g.rules.Rule(f.Rule)
	if !ok {
		// The finding does not come from a rule about frames. Drop the text after the colon, such as a program's
		// path, because it varies between runs.
		what, _, _ := strings.Cut(f.Message, ": ")
		return what
	}
	point := lists.First(r.Points, func(p rules.Point) bool { return p.ID == f.Point && p.Says != "" })
	return cmp.Or(point.Says, r.Sentence)
}

// worsen records another outcome in a cell. The cell has the worst outcome so far, and the notes of that outcome.
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

// words returns the texts in first, followed by the texts of the row's cells.
func (r MatrixRow) words(first ...string) []string {
	return append(first, lists.Map(r.Cells, func(c MatrixCell) string { return c.word(true) })...)
}

// renumber removes notes to which no cell refers, and numbers the others in the order of the table.
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

// describe returns an agent's column without the outcomes in its cells.
func (p Protocol) describe(c Column) MatrixColumn {
	m := MatrixColumn{Name: c.Name, Version: c.Run.Agent.Version, Absent: c.Absent, Counts: c.Run.Counts,
		Everywhere: everywhere(c.Run.Causes)}
	for _, r := range c.Run.Results {
		if c.unsteady(r.ID) && r.Verdict != results.Skip {
			m.Flaky++
			m.Counts.Add(&r, -1)
			m.Counts.Total++ // keep counting it as run
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
