package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
)

// webPage is the reference of AG-UI: its words, rules, requirements, faults and liberties.
func webPage() string {
	p := agui.V1()
	var b strings.Builder
	b.WriteString("# AG-UI: words, rules, requirements\n\nThe [guide](../ag-ui.md) says how to use them.\n" +
		wordsOf(p, nil, nil) + "\n## Rules\n" + rulesOf(p.Rules, rules.OfAgent) + "\n## Requirements\n")
	for _, q := range p.Rules.Requirements() {
		b.WriteString("\n" + requirementText(q))
	}
	b.WriteString(differencesOf(faults.AGUI, "copied from", func(f faults.Fault) string { return reported(f.Copies) }))
	return b.String()
}

// wordsOf lists the words and patterns of a protocol, without those of another one.
func wordsOf(p *scenarios.Protocol, words []*scenarios.Command, kinds []language.Kind) string {
	var b strings.Builder
	b.WriteString("\n## Words\n")
	for _, c := range p.Words {
		if slices.ContainsFunc(words, func(x *scenarios.Command) bool { return x.Name == c.Name }) {
			continue
		}
		page, err := p.Help(c.Name)
		if err != nil {
			panic(err) // it is the name of a word
		}
		fmt.Fprintf(&b, "\n### %s\n\n```\n%s```\n", c.Name, page)
	}
	b.WriteString("\n## Patterns\n\n| pattern | |\n|---|---|\n")
	for _, k := range p.Kinds {
		same := func(x language.Kind) bool { return x.Name == k.Name && x.Help == k.Help }
		if !slices.ContainsFunc(kinds, same) {
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimSpace(k.Name+" "+k.Arg), text(k.Help))
		}
	}
	return b.String()
}

// differencesOf lists the faults and liberties of the reference agent. about is what a column says
// of each fault.
func differencesOf(protocol, column string, about func(faults.Fault) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Faults of the reference agent\n\n"+
		"| fault | what the agent does wrong | %s | found by |\n|---|---|---|---|\n", column)
	for _, f := range faults.All(protocol) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, text(f.Summary), about(f), strings.Join(f.Reddens, ", "))
	}
	b.WriteString("\n## Liberties of the reference agent\n\n" +
		"| liberty | what the agent does | left open by |\n|---|---|---|\n")
	for _, l := range liberties.All(protocol) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", l.Name, text(l.Summary), l.Allows)
	}
	return b.String()
}
