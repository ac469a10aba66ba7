// Transfer measures the suites on agents written by others. It runs all suites, and conversations drawn at random, on
// an agent with one mistake at a time. It writes docs/transfer.md from the rows of batches.yaml.
//
//	go run ./ci/transfer                        docs/transfer.md
//	go run ./ci/transfer -run 4 -tool PROGRAM   runs batch 4 with a program, and prints rows for
//	                                            batches.yaml, in which a reader says how each was found
//	go run ./ci/transfer -sabotage AGENT        runs an agent with each mutation of package sabotage, and
//	                                            prints rows for sabotage.yaml, of which docs/sabotage.md is made
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
	"strings"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/goccy/go-yaml"
)

func main() {
	agent := flag.String("sabotage", "", "play each mutation on the agent with this profile")
	number := flag.Int("run", 0, "run the batch with this number")
	tool := flag.String("tool", "acp-test", "the program")
	out := flag.String("out", "acp-test-transfer", "the folder for the results of the runs")
	jobs := flag.String("j", "2", "the number of scenarios to run at once")
	sessions := flag.Int("sessions", 100, "the number of conversations to draw in addition to a batch's suites")
	flag.Parse()
	must.Main("transfer", 1, func() {
		suites := func(to string, more ...string) results.Run {
			args := append([]string{"run", "--no-smoke", "-j", *jobs}, more...)
			return played(*tool, filepath.Join(*out, to), args...)
		}
		if *agent != "" {
			play(*agent, func(out string, more ...string) results.Run {
				return suites(out, append(more, "--agent", *agent)...)
			})
			return
		}
		drawn := func(to string, more ...string) results.Run {
			to = filepath.Join(*out, to+"-drawn")
			args := []string{"explore", "--sessions", fmt.Sprint(*sessions), "--confirm", "1", "-j", *jobs,
				"--repro", filepath.Join(to, "repro")}
			return played(*tool, to, append(args, more...)...)
		}
		batches, faults := load(".")
		if *number == 0 {
			must.Do(os.WriteFile("docs/transfer.md", []byte(page(batches, faults)+accusedPage(accused("."))), 0o644))
			must.Do(os.WriteFile("docs/sabotage.md", []byte(sabotagePage(sabotaged("."))), 0o644))
			return
		}
		for agent, list := range faults {
			b := Batch{Batch: *number, Agent: agent, First: map[string]*Row{}}
			if list = b.of(faults); len(list) > 0 {
				b.run(list, func(out string, more ...string) results.Run {
					more = append(more, "--agent", b.Agent)
					run, further := suites(out, more...), drawn(out, more...)
					run.Causes = verdict.Causes(append(run.Results, further.Results...))
					run.Duration += further.Duration
					return run
				})
				return
			}
		}
		must.Fail("there is no batch %d", *number)
	})
}

// run runs the agent with each fault of the batch and prints the rows.
func (b Batch) run(list []Fault, runs func(out string, more ...string) results.Run) {
	usual := map[string]causes{}
	for _, f := range list {
		in := []string{}
		if f.Protocol != "" {
			in = []string{"--protocol", f.Protocol}
		}
		if usual[f.Protocol] == nil {
			usual[f.Protocol] = causes{}
			usual[f.Protocol].add(runs(b.Agent+f.Protocol, in...))
		}
		run := runs(b.Agent+"-"+f.Name, append(in, "--env", "FAULT="+f.Name)...)
		row := rowOf(run, usual[f.Protocol])
		row.Seconds = int(run.Duration.Seconds())
		fmt.Print(string(must.Get(yaml.Marshal(map[string]*Row{f.Name: row}))))
	}
}

// played runs the program and returns its results. If the folder out already contains results, it returns these. If
// the program dies without results, it returns an empty run.
func played(tool, out string, args ...string) (run results.Run) {
	file := filepath.Join(out, "results.json")
	if _, err := os.Stat(file); err != nil {
		c := exec.Command(tool, append(args, "-q", "--out", out)...)
		c.Stderr = os.Stderr
		if err := c.Run(); c.ProcessState == nil {
			must.Do(err) // the program did not start
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "transfer: %s wrote no results: %v\n", tool, err)
		return run
	}
	must.Do(json.Unmarshal(raw, &run))
	return run
}

// causes contains the causes that an agent shows without a fault, by id.
type causes map[string]results.Cause

func (all causes) add(run results.Run) {
	for _, c := range run.Causes {
		c.Class = max(c.Class, all[c.ID].Class)
		c.Scenarios = append(c.Scenarios, all[c.ID].Scenarios...)
		all[c.ID] = c
	}
}

// rowOf returns the row of a run. It counts the causes that are new: without a fault, the agent does not show them,
// or shows them only in other scenarios or with a lesser class. The row names the new causes of the worst class.
func rowOf(run results.Run, usual causes) *Row {
	more := slices.DeleteFunc(slices.Clone(run.Causes), func(c results.Cause) bool {
		before, was := usual[c.ID]
		elsewhere := slices.ContainsFunc(c.Scenarios, func(s string) bool {
			return !strings.HasPrefix(s, "explore/") && !slices.Contains(before.Scenarios, s)
		})
		return was && c.Class <= before.Class && !elsewhere || c.Class < rules.Lint
	})
	slices.SortStableFunc(more, func(a, b results.Cause) int {
		if a.Class == results.Error || b.Class == results.Error { // failures are more informative than errors
			return cmp.Compare(a.Class, b.Class)
		}
		return cmp.Compare(b.Class, a.Class)
	})
	row := &Row{How: "missed", Causes: len(more)}
	for _, c := range more {
		if c.Class == more[0].Class && len(row.By) < 4 {
			row.How, row.Class = "seen", c.Class.String()
			row.By = append(row.By, cmp.Or(c.ID, c.Title))
		}
	}
	return row
}

// Fault is a mistake in an agent that its environment variable FAULT turns on.
type Fault struct {
	Name   string `yaml:"name"`
	What   string `yaml:"what"`   // what a user or an editor notices, and when
	Source string `yaml:"source"` // the bug report or the requirement
	Breaks string `yaml:"breaks"` // must, should or quality
	Where  string `yaml:"where"`  // the agent's function with the mistake
	Batch  int    `yaml:"batch"`
	// Protocol is the protocol in which the mistake shows; "" means the profile's protocol.
	Protocol string `yaml:"protocol,omitempty"`
}

// Batch is a group of faults and the results of the first run with each. The authors of the faults had not seen the
// scenarios and rules.
type Batch struct {
	Batch int    `yaml:"batch"`
	Agent string `yaml:"agent"`
	// Faults is the commit that added the faults. Tool is the commit of acp-test in the first run.
	Faults string          `yaml:"faults"`
	Tool   string          `yaml:"tool"`
	First  map[string]*Row `yaml:"first"`
}

// Row is the result of the first run for one fault. Causes that the agent shows without a fault are not included.
type Row struct {
	// How is "named" if the findings give the right reason, "seen" if they give another reason, "missed" if there are
	// no findings.
	How string `yaml:"how"`
	// Class is the worst class of the findings. By lists the first causes of this class.
	Class   string   `yaml:"class,omitempty"`
	By      []string `yaml:"by,omitempty,flow"`
	Causes  int      `yaml:"causes"` // number of causes
	Seconds int      `yaml:"seconds"`
}

// folder contains the data files. The agents are in ci/agents.
const folder = "ci/transfer"

func load(root string) (batches []Batch, faults map[string][]Fault) {
	read(filepath.Join(root, folder, "batches.yaml"), &batches)
	faults = map[string][]Fault{}
	for _, file := range must.Get(filepath.Glob(filepath.Join(root, "ci/agents/*/faults.yaml"))) {
		var list []Fault
		read(file, &list)
		faults[filepath.Base(filepath.Dir(file))] = list
	}
	return batches, faults
}

func sabotaged(root string) (list []Sabotaged) {
	read(filepath.Join(root, folder, "sabotage.yaml"), &list)
	return list
}

func read(file string, into any) {
	if err := yaml.UnmarshalWithOptions(must.Get(os.ReadFile(file)), into, yaml.Strict()); err != nil {
		must.Fail("%s: %w", file, err)
	}
}

// of returns the faults that belong to the batch.
func (b Batch) of(faults map[string][]Fault) (all []Fault) {
	return lists.Where(faults[b.Agent], func(f Fault) bool { return f.Batch == b.Batch })
}

const intro = `<!-- Written by go run ./ci/transfer -->
# Mistakes in agents written by others

The agents in ci/agents were written from the specification alone, in JavaScript, Python, Go and TypeScript. Two are
servers of AG-UI, one supports both versions of ACP, and one is a patched public agent. Each has switches for mistakes
that maintainers could make. Mistakes come in batches of twenty, written from the specification and public reports
without knowledge of scenarios or rules. Up to batch 37, the writers avoided kinds of mistakes that earlier batches had.
Since batch 38, the hash of a commit selects the reports and requirements, so kinds can repeat. A batch is committed
before anything runs on it. Then all suites run, since batch 16 also at least 100 drawn conversations. This page keeps
the result of the **first** run: *named* for the right reason, *seen* for another reason, or *missed*. A missed mistake
leads to a general fix, such as a law that judges every run, and never to a scenario for that mistake alone.

The rows are in ci/transfer/batches.yaml, the mistakes in ci/agents/*/faults.yaml. A test checks that a batch is older
than its first run, and that no row changes afterwards. "go run ./ci/transfer -run N -tool acp-test" repeats a batch.

`

// page returns docs/transfer.md without its section on false findings.
func page(batches []Batch, faults map[string][]Fault) string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString("| batch | agent | mistakes | program | MUST: named at class fail | named | seen | missed |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, batch := range batches {
		list := batch.of(faults)
		how, must, failed := map[string]int{}, 0, 0
		for _, f := range list {
			row := batch.First[f.Name]
			how[row.How]++
			if f.Breaks == "must" {
				must++
				if row.How == "named" && row.Class == "fail" {
					failed++
				}
			}
		}
		fmt.Fprintf(&b, "| [%d](#batch-%[1]d) | %s | `%s` | `%s` | %d of %d | %d | %d | %d |\n", batch.Batch, batch.Agent,
			batch.Faults, batch.Tool, failed, must, how["named"], how["seen"], how["missed"])
	}
	for _, batch := range batches {
		fmt.Fprintf(&b, "\n## Batch %d\n\n| mistake | breaks | first run | class | by | causes | seconds |\n"+
			"|---|---|---|---|---|---|---|\n", batch.Batch)
		for _, f := range batch.of(faults) {
			row := batch.First[f.Name]
			fmt.Fprintf(&b, "| **%s** %s (%s) | %s | %s | %s | %s | %d | %d |\n", f.Name, cell(f.What), cell(f.Source), f.Breaks,
				row.How, row.Class, cell(strings.Join(row.By, ", ")), row.Causes, row.Seconds)
		}
	}
	return b.String()
}

// cell escapes a text for a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}
