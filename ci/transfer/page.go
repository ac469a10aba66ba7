package main

import (
	"fmt"
	"strings"
)

const intro = `<!-- Written by go run ./ci/transfer -->
# Mistakes in agents of other hands

Four agents in ci/agents were written from the specification alone, in JavaScript, Python, Go and TypeScript. Each
has switches for mistakes as their maintainers could make them. The mistakes come in batches of twenty, written from
the specification and from public reports without sight of scenarios, rules or other faults. A batch is committed
before anything runs on it. Then all suites run, and this page keeps what the **first** run said, whatever it was:
*named* for the right reason, *seen* for another one, or *missed*. What a batch missed is mended by kind, such as by a
law that judges each run, and never by a scenario for that mistake.

The rows are in ci/transfer/batches.yaml, the mistakes in ci/agents/*/faults.yaml. A test holds that a batch is older
than its first run, and that no row changes afterwards. "go run ./ci/transfer -run N -tool acp-test" runs a batch again.

`

// page is docs/transfer.md.
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

// cell is a text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}
