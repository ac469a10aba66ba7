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

// Sabotaged is the outcome of runs of one agent with the mutations of package sabotage.
type Sabotaged struct {
	Agent   string `yaml:"agent"`
	Version string `yaml:"version"`
	// Tool is the commit of acp-test.
	Tool string          `yaml:"tool"`
	Rows map[string]*Row `yaml:"rows"`
}

// Further values of Row.How, which apply to mutations in addition to named, seen and missed.
const (
	idle   = "not applied"
	clean  = "clean" // a legal change without a finding
	blamed = "blamed"
)

// play runs the scenarios with the tag matrix with each mutation, and prints the agent's rows.
func play(agent string, suites func(out string, more ...string) results.Run) {
	s := Sabotaged{Agent: agent, Rows: map[string]*Row{}}
	usual := causes{}
	for range 2 { // two runs, so that occasional causes also count as usual
		run := suites(filepath.Join(agent, fmt.Sprint("as-it-is-", s.Version)), "--tag", "matrix")
		usual.add(run)
		s.Version = run.Agent.Version
	}
	for _, m := range sabotage.All() {
		run := suites(filepath.Join(agent, m.Name), "--tag", "matrix", "--sabotage", m.Name)
		row := rowOf(run, usual)
		row.Seconds = int(run.Duration.Seconds())
		row.How = found(m, row, strings.Contains(strings.Join(run.Notes, "\n"), "was not applied"))
		s.Rows[m.Name] = row
		fmt.Fprintf(os.Stderr, "%s: %s %s %v\n", m.Name, row.How, row.Class, row.By)
	}
	fmt.Print(string(must.Get(yaml.Marshal([]Sabotaged{s}))))
}

// found returns the value of Row.How for a mutation. If the mutation breaks a MUST, "named" requires class fail;
// otherwise any class is enough.
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

// share counts mutations that were applied: all is the number of those that break a requirement, and named is how
// many of these were named. wrong is the number of legal mutations that were blamed.
func share(rows map[string]*Row, of func(sabotage.Mutation) bool) (named, all, wrong int) {
	for _, m := range lists.Where(sabotage.All(), of) {
		row := rows[m.Name]
		switch {
		case row == nil || row.How == idle:
		case m.Legal && row.How == blamed:
			wrong++
		case m.Legal:
		default:
			all++
			if row.How == "named" {
				named++
			}
		}
	}
	return named, all, wrong
}

const aboutSabotage = `<!-- Written by go run ./ci/transfer -->
# Sabotaged agents

[Sabotage](reference/sabotage.md) changes messages between an agent and its editor, one kind of change in each run.
This page shows how the 40 scenarios of the [matrix](matrix.md) and the rules judged each change on agents that
others wrote. *Named*: found at class fail where the change breaks a MUST, and in any class where it breaks a SHOULD
or only hurts users. *Seen*: found in a lower class. A change that was never made does not count.
"go run ./ci/transfer -sabotage AGENT -tool acp-test" measures again.

The changes marked *held* were written without knowledge of rules and scenarios. Their first figure comes from
recordings of three agents, each changed at one place by ci/mutate, before anything was fixed. A response that is
missing at the end of a recording looks like a recording that ended early; no rule can tell these apart.

| recordings of | held ones named at first |
|---|---|
| gemini-cli 0.61.0 | 68 of 82 |
| opencode 1.18.33 | 69 of 85 |
| claude-agent-acp 0.101.0 | 72 of 88 |

`

// sabotagePage returns docs/sabotage.md.
func sabotagePage(list []Sabotaged) string {
	var b strings.Builder
	b.WriteString(aboutSabotage)
	if len(list) == 0 {
		return strings.TrimRight(b.String(), "\n") + "\n"
	}
	b.WriteString("| agent | version | program | held ones named | all named | legal ones blamed |\n" +
		"|---|---|---|---|---|---|\n")
	held := func(m sabotage.Mutation) bool { return m.Held }
	for _, s := range list {
		ofHeld, allHeld, _ := share(s.Rows, held)
		named, all, wrong := share(s.Rows, func(sabotage.Mutation) bool { return true })
		fmt.Fprintf(&b, "| %s | %s | `%s` | %d of %d | %d of %d | %d |\n", s.Agent, s.Version, s.Tool, ofHeld, allHeld, named,
			all, wrong)
	}
	b.WriteString("\n| change | breaks |")
	for _, s := range list {
		fmt.Fprintf(&b, " %s |", s.Agent)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(list)) + "\n")
	for _, m := range sabotage.All() {
		fmt.Fprintf(&b, "| `%s` | %s |", m.Name, cmp.Or(m.Breaks, map[bool]string{true: "nothing", false: "users"}[m.Legal]))
		for _, s := range list {
			fmt.Fprintf(&b, " %s |", toldBy(s.Rows[m.Name]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// toldBy returns the text of a table cell for a row.
func toldBy(row *Row) string {
	switch {
	case row == nil:
		return "–"
	case len(row.By) > 0:
		return row.How + " (" + cell(row.By[0]) + ")"
	}
	return row.How
}
