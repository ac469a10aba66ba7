package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
)

// v2Page is the reference of version 2 of ACP: what its scenarios have that those of
// version 1 have not, its rules, requirements, faults and liberties.
func v2Page() string {
	first, p := acp.V1(), acp.V2()
	var b strings.Builder
	b.WriteString("# ACP v2: words, rules, requirements\n\nThe [guide](../acp-v2.md) says how to use them. A scenario " +
		"of version 2 has the words and patterns of [version 1](scenario-language.md) as well.\n" +
		wordsOf(p, first.Words, first.Kinds))
	for _, side := range []rules.Side{rules.OfAgent, rules.OfClient} {
		fmt.Fprintf(&b, "\n## Rules about the %s\n", side)
		for _, r := range p.Rules.Rules() {
			if r.Side == side {
				b.WriteString("\n" + ruleText(r) + seenBy(r.ID))
			}
		}
	}
	b.WriteString("\n## Requirements\n")
	kept := invariants.Kept()
	for _, q := range p.Rules.Requirements() {
		if !slices.Contains(kept, q.ID) {
			b.WriteString("\n" + requirementText(q))
		}
	}
	b.WriteString("\n## Requirements of version 1 that hold as they are\n\n" + requirementLinks(kept) + "\n" +
		differencesOf(faults.ACPv2, "breaks", func(f faults.Fault) string { return f.Breaks }))
	return b.String()
}

// explainV2 is what there is to say of a rule or a requirement of version 2, ok is
// false if it is none.
func explainV2(topic string) (page string, ok bool) {
	set := acp.V2().Rules
	if r, ok := set.Rule(topic); ok {
		if now := set.Renamed(topic); now != "" {
			page = now + ".\n\n"
		}
		return page + ruleText(r) + examplesOf(set, r.ID, everyPoint) + seenBy(r.ID), true
	}
	q, ok := set.Requirement(topic)
	if !ok {
		return "", false
	}
	shown := examplesAbout(set, q)
	for _, name := range slices.Concat(q.Checks, q.Rules) {
		if seen := seenBy(name); seen != "" {
			return requirementText(q) + shown + seen, true
		}
	}
	return requirementText(q) + shown, true
}

// seenBy says how to see a rule or a check of version 2 broken: by the fault of the
// reference agent that breaks the least beside it. "" if there is none.
func seenBy(name string) string {
	finds := slices.DeleteFunc(faults.All(faults.ACPv2), func(f faults.Fault) bool {
		return !slices.Contains(f.Reddens, name)
	})
	if len(finds) == 0 {
		return ""
	}
	f := slices.MinFunc(finds, func(a, b faults.Fault) int { return cmp.Compare(len(a.Reddens), len(b.Reddens)) })
	in := strings.Join(f.Scenarios, "|")
	if id, _, ok := strings.Cut(name, "#"); ok {
		in = id
	} else if len(f.Scenarios) > 1 {
		in = "(" + in + ")"
	}
	return fmt.Sprintf("\nAn agent that %s breaks it:\n\n```\n"+
		"acp-test run --protocol acp-v2 --fault %s --run '^%s$'\n```\n", text(f.Summary), f.Name, in)
}

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
