// Transfer runs all suites on agents of other hands, each run with one mistake, and writes
// docs/transfer.md from the rows of batches.yaml.
//
//	go run ./ci/transfer                        docs/transfer.md
//	go run ./ci/transfer -run 4 -tool PROGRAM   runs batch 4 with a program, and prints rows for
//	                                            batches.yaml, in which a reader says how each was found
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
)

func main() {
	number := flag.Int("run", 0, "run the batch with this number")
	tool := flag.String("tool", "acp-test", "the program")
	out := flag.String("out", "acp-test-transfer", "the folder for the results of the runs")
	jobs := flag.String("j", "2", "how many scenarios run at once")
	flag.Parse()
	must.Main("transfer", 1, func() {
		batches, faults := load(".")
		if *number == 0 {
			must.Do(os.WriteFile("docs/transfer.md", []byte(page(batches, faults)), 0o644))
			return
		}
		for agent, list := range faults {
			b := Batch{Batch: *number, Agent: agent, First: map[string]*Row{}}
			if list = b.of(faults); len(list) > 0 {
				b.run(list, func(fault, to string) results.Run {
					return suites(*tool, agent, fault, filepath.Join(*out, to), *jobs)
				})
				return
			}
		}
		must.Fail("there is no batch %d", *number)
	})
}

// run prints the rows of a batch.
func (b Batch) run(list []Fault, suites func(fault, out string) results.Run) {
	usual := map[string]results.Verdict{}
	for _, c := range suites("", b.Agent).Causes {
		usual[c.ID] = max(usual[c.ID], c.Class)
	}
	for _, f := range list {
		run := suites(f.Name, b.Agent+"-"+f.Name)
		row := rowOf(run, usual)
		row.Seconds = int(run.Duration.Seconds())
		fmt.Print(string(must.Get(yaml.Marshal(map[string]*Row{f.Name: row}))))
	}
}

// suites runs all suites on an agent with a fault, unless the results are there already.
func suites(tool, agent, fault, out, jobs string) (run results.Run) {
	args := []string{"run", "--agent", agent, "--out", out, "-q", "-j", jobs, "--no-smoke"}
	if fault != "" {
		args = append(args, "--env", "FAULT="+fault)
	}
	file := filepath.Join(out, "results.json")
	if _, err := os.Stat(file); err != nil {
		c := exec.Command(tool, args...)
		c.Stderr = os.Stderr
		if err := c.Run(); c.ProcessState == nil {
			must.Do(err) // it never ran
		}
	}
	must.Do(json.Unmarshal(must.Get(os.ReadFile(file)), &run))
	return run
}

// rowOf makes the row of a run. It counts the causes that the agent without a fault does not
// have, and names those of the worst class.
func rowOf(run results.Run, usual map[string]results.Verdict) *Row {
	more := slices.DeleteFunc(slices.Clone(run.Causes), func(c results.Cause) bool {
		before, was := usual[c.ID]
		return was && c.Class <= before || c.Class < rules.Lint
	})
	slices.SortStableFunc(more, func(a, b results.Cause) int { return cmp.Compare(b.Class, a.Class) })
	row := &Row{How: "missed", Causes: len(more)}
	for _, c := range more {
		if c.Class == more[0].Class && len(row.By) < 4 {
			row.How, row.Class = "seen", c.Class.String()
			row.By = append(row.By, cmp.Or(c.ID, c.Title))
		}
	}
	return row
}
