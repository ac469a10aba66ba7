package main

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/rules"
)

// webPage is the reference of AG-UI: its words, rules, requirements, faults and liberties.
func webPage() string {
	p := agui.V1()
	var b strings.Builder
	b.WriteString("# AG-UI: words, rules, requirements\n\nThe [guide](../ag-ui.md) says how to use them.\n\n## Words\n")
	for _, c := range p.Words {
		page, err := p.Help(c.Name)
		if err != nil {
			panic(err) // it is the name of a word
		}
		fmt.Fprintf(&b, "\n### %s\n\n```\n%s```\n", c.Name, page)
	}
	b.WriteString("\n## Patterns\n\n| pattern | |\n|---|---|\n")
	for _, k := range p.Kinds {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimSpace(k.Name+" "+k.Arg), text(k.Help))
	}
	b.WriteString("\n## Rules\n" + rulesOf(p.Rules, rules.OfAgent) + "\n## Requirements\n")
	for _, q := range p.Rules.Requirements() {
		b.WriteString("\n" + requirementText(q))
	}
	b.WriteString("\n## Faults of the reference agent\n\n" +
		"| fault | what the agent does wrong | copied from | found by |\n|---|---|---|---|\n")
	for _, f := range faults.All(faults.AGUI) {
		copied := ""
		if repo, number, ok := strings.Cut(f.Copies, "#"); ok {
			copied = fmt.Sprintf("[%s](https://github.com/%s/issues/%s)", f.Copies, repo, number)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, text(f.Summary), copied, strings.Join(f.Reddens, ", "))
	}
	b.WriteString("\n## Liberties of the reference agent\n\n" +
		"| liberty | what the agent does | left open by |\n|---|---|---|\n")
	for _, l := range liberties.All(faults.AGUI) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", l.Name, text(l.Summary), l.Allows)
	}
	return b.String()
}
