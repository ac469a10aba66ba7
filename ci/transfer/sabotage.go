package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/sabotage"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/goccy/go-yaml"
)

// Sabotaged is what runs of an agent said of the mutations of package sabotage.
type Sabotaged struct {
	Agent   string `yaml:"agent"`
	Version string `yaml:"version"`
	// Tool is the commit of the program that played the held mutations first; their first rows stay.
	Tool  string          `yaml:"tool"`
	First map[string]*Row `yaml:"first"`
	// Now are the rows of all mutations, with the program as it is.
	Now map[string]*Row `yaml:"now"`
}

// The words of Row.How for a mutation, besides named, seen and missed.
const (
	idle   = "not applied"
	clean  = "clean" // nobody was blamed for what is legal
	blamed = "blamed"
)

// play runs the scenarios of the matrix with each mutation that fits, and prints the rows of an agent.
func play(agent string, suites func(out string, more ...string) results.Run) {
	s := Sabotaged{Agent: agent, First: map[string]*Row{}, Now: map[string]*Row{}}
	usual := map[string]results.Verdict{}
	for range 2 { // what shows now and then is usual
		run := suites(filepath.Join(agent, fmt.Sprint("as-it-is-", s.Version)), "--tag", "matrix")
		for _, c := range run.Causes {
			usual[c.ID] = max(usual[c.ID], c.Class)
		}
		s.Version = run.Agent.Version
	}
	for _, m := range sabotage.All() {
		run := suites(filepath.Join(agent, m.Name), "--tag", "matrix", "--sabotage", m.Name)
		row := rowOf(run, usual)
		row.Seconds = int(run.Duration.Seconds())
		row.How = found(m, row, strings.Contains(strings.Join(run.Notes, "\n"), "was not applied"))
		s.Now[m.Name] = row
		fmt.Fprintf(os.Stderr, "%s: %s %s %v\n", m.Name, row.How, row.Class, row.By)
	}
	fmt.Print(string(must.Get(yaml.Marshal([]Sabotaged{s}))))
}

// found says how a mutation was found: named means at class fail where it breaks a MUST, else in any class.
func found(m sabotage.Mutation, row *Row, notApplied bool) string {
	q, _ := invariants.V1().Requirement(m.Breaks)
	switch {
	case notApplied:
		return idle
	case m.Legal && row.Causes == 0:
		return clean
	case m.Legal:
		return blamed
	case row.Causes == 0:
		return "missed"
	case q.Level == "must" && row.Class != results.Fail.String():
		return "seen"
	}
	return "named"
}

// share counts what was named of what came about, legal ones apart.
func share(rows map[string]*Row, of func(sabotage.Mutation) bool) (named, of2, blamedToo int) {
	for _, m := range lists.Where(sabotage.All(), of) {
		row := rows[m.Name]
		switch {
		case row == nil || row.How == idle:
		case m.Legal && row.How == blamed:
			blamedToo++
		case m.Legal:
		default:
			of2++
			if row.How == "named" {
				named++
			}
		}
	}
	return named, of2, blamedToo
}

const aboutSabotage = `<!-- Written by go run ./ci/transfer -->
# Sabotaged agents

[Sabotage](reference/sabotage.md) changes what an agent and its editor say to each other, one kind of change a run.
This page tells what the 40 scenarios of the [matrix](matrix.md) and the rules said of each change on agents that
others wrote. *Named*: found at class fail where the change breaks a MUST, and in any class where it breaks a SHOULD
or hurts users only. *Seen*: found in a lower class. The **first** figure is that of the changes that were written
without a look at rules and scenarios, before anything was mended; it stays. Changes that did not come about do not
count. "go run ./ci/transfer -sabotage AGENT -tool acp-test" measures again.

`

// sabotagePage is docs/sabotage.md.
func sabotagePage(list []Sabotaged) string {
	var b strings.Builder
	b.WriteString(aboutSabotage)
	b.WriteString("| agent | version | first: held ones named | now: all named | legal ones blamed |\n" +
		"|---|---|---|---|---|\n")
	held := func(m sabotage.Mutation) bool { return m.Held }
	for _, s := range list {
		first, ofFirst, _ := share(s.First, held)
		now, ofNow, blamedNow := share(s.Now, func(sabotage.Mutation) bool { return true })
		fmt.Fprintf(&b, "| %s | %s | %d of %d (`%s`) | %d of %d | %d |\n", s.Agent, s.Version, first, ofFirst, s.Tool,
			now, ofNow, blamedNow)
	}
	b.WriteString("\n| change | breaks |")
	for _, s := range list {
		fmt.Fprintf(&b, " %s |", s.Agent)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(list)) + "\n")
	for _, m := range sabotage.All() {
		fmt.Fprintf(&b, "| `%s` | %s |", m.Name, cmp.Or(m.Breaks, map[bool]string{true: "nothing", false: "users"}[m.Legal]))
		for _, s := range list {
			fmt.Fprintf(&b, " %s |", toldBy(s.Now[m.Name], s.First[m.Name]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// toldBy is a row in a cell, with the first one where that was another.
func toldBy(now, first *Row) string {
	if now == nil {
		return "–"
	}
	text := now.How
	if len(now.By) > 0 {
		text += " (" + cell(now.By[0]) + ")"
	}
	if first != nil && first.How != now.How {
		text += ", at first " + first.How
	}
	return text
}
