package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/internal/bugs"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
)

// pages returns the reference pages that are generated from the program. The key is the path of a page below
// docs/reference. Most keys are also topics of help.
func pages(root *cobra.Command) map[string]string {
	return map[string]string{
		"commands":          commandsPage(root),
		"scenario-language": acp.V1().Reference(),
		"rules":             rulesPage(),
		"faults":            faultsPage(),
		"sabotage":          sabotagePage(),
		"personas":          personasPage(),
		"liberties":         libertiesPage(),
		"requirements":      requirementsPage(),
		"../bugs":           bugsPage(),
		"ag-ui":             webPage(),
		"acp-v2":            v2Page(),
	}
}

// commandsPage returns the reference of the command line.
func commandsPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\n```\n" + root.Long + "\n```\n")
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		if c != root {
			fmt.Fprintf(&b, "\n## %s\n\n```\n%s\n```\n\n%s\n", c.CommandPath(), c.UseLine(), sentence(c))
			if c.LocalFlags().HasAvailableFlags() {
				fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimRight(c.LocalFlags().FlagUsages(), "\n"))
			}
		}
		for _, sub := range c.Commands() {
			// help and completion are not in the reference.
			if sub.IsAvailableCommand() && sub.Name() != "completion" {
				add(sub)
			}
		}
	}
	add(root)
	return b.String()
}

// sentence returns the description of a command. Indented lines become code blocks.
func sentence(c *cobra.Command) string {
	if c.Long == "" {
		return strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	var b strings.Builder
	code, blank := false, ""
	for line := range strings.Lines(strings.TrimRight(c.Long, "\n") + "\n") {
		if strings.TrimSpace(line) == "" {
			blank += line
			continue
		}
		in := strings.HasPrefix(line, "  ")
		if code && !in {
			b.WriteString("```\n")
		}
		b.WriteString(blank)
		if in && !code {
			b.WriteString("```\n")
		}
		code, blank = in, ""
		b.WriteString(line)
	}
	if code {
		b.WriteString("```\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// faultsPage returns the page of the faults. Each fault shows that a rule or a check detects one kind of mistake.
func faultsPage() string {
	all := slices.Concat(faults.All(faults.ACPv1), faults.All(faults.Network))
	return page("faults") + lists.Text(all, func(f faults.Fault) string {
		found := lists.Map(f.Reddens, func(name string) string {
			if f.Swept() {
				return "a [sweep](../sweeping.md)"
			}
			return ruleLink(name, "rules.md")
		})
		return row("`"+f.Name+"`", text(f.Summary), reported(f.Copies), strings.Join(found, ", "))
	})
}

// reported returns a link to a public bug report. report has the form REPOSITORY#NUMBER; for "" the result is "".
func reported(report string) string {
	repo, number, ok := strings.Cut(report, "#")
	if !ok {
		return ""
	}
	return fmt.Sprintf("[%s](https://github.com/%s/issues/%s)", report, repo, number)
}

// ruleLink returns a link to a rule. It returns the name of a check unchanged.
func ruleLink(name, page string) string {
	if strings.Contains(name, "/") || strings.HasPrefix(name, "EXIT-") {
		return name
	}
	return fmt.Sprintf("[%s](%s#%s)", name, page, strings.ToLower(strings.TrimSuffix(name, "?")))
}

// requirementLinks returns links to requirements on their page.
func requirementLinks(ids []string) string {
	links := lists.Map(ids, func(id string) string {
		return fmt.Sprintf("[%s](requirements.md#%s)", id, strings.ToLower(id))
	})
	return strings.Join(links, ", ")
}

// bugsPage returns the page of reported bugs, with the checks and rules that find each.
func bugsPage() string {
	var rows strings.Builder
	total, found := map[string]int{}, map[string]int{}
	for _, bug := range bugs.All() {
		total[bug.Side]++
		with := ""
		if bug.NotJudged == "" {
			found[bug.Side]++
			with = "`" + strings.Join(bug.Faults, "`, `") + "`"
			if bug.By != bug.Side {
				with += " of an " + bug.By
			}
		}
		finders := lists.Map(bug.Found, func(f bugs.Finder) string {
			return ruleLink(f.Name, "reference/rules.md") + " (" + f.Class + ")"
		})
		fmt.Fprintf(&rows, "| %d | %s | %s %s | %s | %s |\n", bug.Number, text(bug.Project), text(bug.What),
			strings.Join(lists.Map(bug.Reports, reported), ", "), with, strings.Join(finders, ", ")+text(bug.NotJudged))
		if bug.Number == lastOfAgents {
			rows.WriteString("\n## Editors\n" + bugsHead)
		}
	}
	return fmt.Sprintf(page("bugs"), found["agent"], total["agent"], found["editor"], total["editor"]) +
		bugsHead + rows.String()
}

const (
	lastOfAgents = 148
	bugsHead     = "\n| | project | what went wrong | the same fault here | found by |\n|---|---|---|---|---|\n"
)

// libertiesPage returns the page of the liberties. A liberty is behavior that no rule and no check reports.
func libertiesPage() string {
	all := slices.Concat(liberties.All(faults.ACPv1), liberties.All(faults.Network))
	return page("liberties") + lists.Text(all, func(l liberties.Liberty) string {
		return row("`"+l.Name+"`", text(l.Summary), requirementLinks(strings.Fields(l.Allows)), text(l.Takes))
	})
}

func rulesPage() string {
	return page("rules") + bothSides(invariants.V1(), "About the", func(string) string { return "" })
}

// bothSides returns the rules about agents, then those about clients. more returns text to add after each rule.
func bothSides(set *rules.Set, title string, more func(rule string) string) string {
	return lists.Text([]rules.Side{rules.OfAgent, rules.OfClient}, func(side rules.Side) string {
		return fmt.Sprintf("\n## %s %s\n", title, side) + rulesOf(set, side, more)
	})
}

// rulesOf returns the rules of a set about one side. more returns text to add after each rule.
func rulesOf(set *rules.Set, side rules.Side, more func(rule string) string) string {
	list := lists.Where(set.Rules(), func(r rules.Rule) bool { return r.Side == side })
	return lists.Text(list, func(r rules.Rule) string { return "\n" + ruleText(r) + more(r.ID) })
}

func ruleText(r rules.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s\n\n", r.ID, text(r.Sentence))
	for _, p := range r.Points {
		name := "`" + p.ID + "`"
		if p.ID == "" {
			name = "`" + r.ID + "`"
		}
		fmt.Fprintf(&b, "- %s, %s: %s", name, p.Class, text(p.Says))
		if len(p.Requirements) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(p.Requirements, ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func requirementsPage() string {
	var b strings.Builder
	b.WriteString(page("requirements"))
	place := func(q rules.Requirement) (order int, title string) {
		if q.Side == rules.OfClient {
			return math.MaxInt, "Of editors"
		}
		return int(q.Tier), q.Tier.String()
	}
	all := slices.SortedStableFunc(slices.Values(invariants.V1().Requirements()), func(a, b rules.Requirement) int {
		before, _ := place(a)
		behind, _ := place(b)
		return cmp.Compare(before, behind)
	})
	last := ""
	for _, q := range all {
		if _, title := place(q); title != last {
			fmt.Fprintf(&b, "\n## %s\n", title)
			last = title
		}
		b.WriteString("\n" + requirementText(q))
	}
	return b.String()
}

func requirementText(q rules.Requirement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s\n\n- %s (%s)", q.ID, text(q.Statement), q.Level, q.Basis)
	if q.AppliesWhen != "" && q.AppliesWhen != "always" {
		fmt.Fprintf(&b, ", applies with `%s`", q.AppliesWhen)
	}
	if q.Kit != "" {
		fmt.Fprintf(&b, ", `%s` in acp-tck", q.Kit)
	}
	fmt.Fprintf(&b, "\n- specification: %s\n", text(q.Cite.String()))
	for _, list := range []struct {
		what string
		ids  []string
	}{{"rules", q.Rules}, {"checks", q.Checks}} {
		if len(list.ids) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", list.what, strings.Join(list.ids, ", "))
		}
	}
	if q.Excluded != "" {
		fmt.Fprintf(&b, "- not judged: %s\n", text(q.Excluded))
	}
	return b.String()
}

// text escapes a sentence for Markdown.
func text(s string) string {
	return strings.NewReplacer("<", "&lt;", "*", "\\*", "_", "\\_", "|", "\\|", "\n", " ").Replace(s)
}

// v2Page returns the reference page of ACP version 2: its rules, requirements, faults and liberties, and the scenario
// words that only version 2 has.
func v2Page() string {
	first, p, kept := acp.V1(), acp.V2(), invariants.Kept()
	return page("acp-v2") + wordsOf(p, first.Words, first.Kinds) + bothSides(p.Rules, "Rules about the", seenBy) +
		requirementsOf(p.Rules, kept) +
		"\n## Requirements of version 1 that hold unchanged\n\n" + requirementLinks(kept) + "\n" +
		differencesOf(faults.ACPv2, "breaks", func(f faults.Fault) string { return f.Breaks })
}

// explainV2 returns the page of a rule or a requirement of ACP version 2. ok is false if topic is neither.
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

// seenBy returns a command that shows a violation of a rule or a check of ACP version 2. The command runs the
// reference agent with the fault that violates the fewest other rules. If no fault violates name, seenBy returns "".
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

// webPage returns the reference of AG-UI: its words, rules, requirements, faults and liberties.
func webPage() string {
	p := agui.V1()
	return page("ag-ui") + wordsOf(p, nil, nil) +
		"\n## Rules\n" + rulesOf(p.Rules, rules.OfAgent, func(string) string { return "" }) +
		requirementsOf(p.Rules, nil) +
		differencesOf(faults.AGUI, "copied from", func(f faults.Fault) string { return reported(f.Copies) })
}

// requirementsOf returns the text of the requirements of a set, without those whose ids are in without.
func requirementsOf(set *rules.Set, without []string) string {
	list := lists.Where(set.Requirements(), func(q rules.Requirement) bool { return !slices.Contains(without, q.ID) })
	return "\n## Requirements\n" +
		lists.Text(list, func(q rules.Requirement) string { return "\n" + requirementText(q) })
}

// wordsOf returns the help of a protocol's commands and kinds of entries. It omits those in words and kinds, which
// another page describes.
func wordsOf(p *scenarios.Protocol, words []*scenarios.Command, kinds []language.Kind) string {
	var b strings.Builder
	b.WriteString("\n## Words\n")
	for _, c := range p.Words {
		if slices.ContainsFunc(words, func(x *scenarios.Command) bool { return x.Name == c.Name }) {
			continue
		}
		page, err := p.Help(c.Name)
		if err != nil {
			panic(err) // a word without a name is a bug
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

// differencesOf returns tables of the faults and liberties of the reference agent. column is the title of an extra
// column in the table of faults; about returns the text of that column.
func differencesOf(protocol, column string, about func(faults.Fault) string) string {
	return "\n## Faults of the reference agent\n\n" + head("fault", "what the agent does wrong", column, "found by") +
		lists.Text(faults.All(protocol), func(f faults.Fault) string {
			return row("`"+f.Name+"`", text(f.Summary), about(f), strings.Join(f.Reddens, ", "))
		}) +
		"\n## Liberties of the reference agent\n\n" + head("liberty", "what the agent does", "left open by") +
		lists.Text(liberties.All(protocol), func(l liberties.Liberty) string {
			return row("`"+l.Name+"`", text(l.Summary), l.Allows)
		})
}

// row returns a row of a Markdown table.
func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// head returns the header row and the separator row of a Markdown table.
func head(cells ...string) string {
	return row(cells...) + "|" + strings.Repeat("---|", len(cells)) + "\n"
}
