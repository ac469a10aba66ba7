package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed intro.md
var intro string

// page returns docs/wild.md.
func page(d *Data) string {
	var b strings.Builder
	strata := []struct {
		title, about string
		is           func(Pair) bool
	}{
		{"Chosen from the public record",
			"Bugs that people reported, chosen before any run: their misses are what a user would miss.",
			func(p Pair) bool { return p.Bug != "" }},
		{"Found by the scenarios",
			"Nobody reported these bugs: scenarios ran over versions, and each change between two ran again.",
			func(p Pair) bool { return p.Bug == "" }},
	}
	fmt.Fprintf(&b, intro, times(d))
	for _, s := range strata {
		told, all := 0, 0
		var rows strings.Builder
		for _, p := range d.Pairs {
			if !s.is(p) {
				continue
			}
			v := d.verdict(p)
			all++
			if v.tells() {
				told++
			}
			what := strings.Join(strings.Fields(p.What+" "+link(p.Bug)+" "+p.Later), " ")
			fmt.Fprintf(&rows, "| %s | %s | %s → %s | `%s#%s` | %s |\n", what,
				p.Package, p.Bad, p.Good, p.Scenario, p.Finder, v)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s %d pairs, %d flagged before and silent after.\n\n", s.title, s.about, all,
			told)
		fmt.Fprintf(&b, "| what | package | versions | told by | seen |\n|---|---|---|---|---|\n%s", rows.String())
	}
	b.WriteString("\n## Over time\n\n" +
		"For each package, one column per version and one line per finding: `x` flagged, `~` flagged\n" +
		"in some runs, `.` judged and silent, a space if the version was not run or could not be judged.\n")
	for _, pkg := range packages(d) {
		b.WriteString(picture(d, pkg))
	}
	fmt.Fprintf(&b, "\n## Not reproduced\n\n%d more bugs were chosen from the record before any run,\n"+
		"but did not become a pair.\n", len(d.Missing))
	b.WriteString("\n| bug | why |\n|---|---|\n")
	for _, m := range d.Missing {
		fmt.Fprintf(&b, "| %s | %s |\n", link(m.Bug), m.Why)
	}
	return b.String()
}

// times returns the lowest number of repeats of any pair's scenario, as the text "N times".
func times(d *Data) string {
	least := 0
	for _, p := range d.Pairs {
		if v := d.verdict(p); v.bad != nil && v.good != nil && (least == 0 || min(v.bad.Of, v.good.Of) < least) {
			least = min(v.bad.Of, v.good.Of)
		}
	}
	return fmt.Sprintf("%d times", least)
}

// link returns a Markdown link to a report, or bug unchanged if it names no report.
func link(bug string) string {
	if strings.HasPrefix(bug, "https:") {
		return fmt.Sprintf("[changelog](%s)", bug)
	}
	repository, number, ok := strings.Cut(bug, "#")
	if !ok {
		return bug
	}
	return fmt.Sprintf("[%s](https://github.com/%s/issues/%s)", bug, repository, number)
}

func packages(d *Data) []string {
	all := map[string]bool{}
	for _, m := range d.Measured {
		all[m.Package] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// picture returns the timeline of a package: a line for each finder, a column for each version.
func picture(d *Data, pkg string) string {
	type cause struct{ scenario, finder string }
	var causes []cause
	for _, p := range d.Pairs {
		if c := (cause{p.Scenario, p.Finder}); p.Package == pkg && !slices.Contains(causes, c) {
			causes = append(causes, c)
		}
	}
	slices.SortFunc(causes, func(a, b cause) int {
		return cmp.Or(strings.Compare(a.scenario, b.scenario), strings.Compare(a.finder, b.finder))
	})
	var versions []*Measured
	wide := 0
	for _, m := range d.Measured {
		if m.Package == pkg && len(m.Scenarios) > 0 {
			versions = append(versions, m)
			wide = max(wide, len(m.Version))
		}
	}
	slices.SortFunc(versions, func(a, b *Measured) int { return compare(a.Version, b.Version) })
	if len(causes) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n```\n", pkg)
	for i := range wide { // column headings are written from top to bottom
		var line strings.Builder
		for _, m := range versions {
			line.WriteByte(fmt.Sprintf("%*s", wide, m.Version)[i])
			line.WriteByte(' ')
		}
		fmt.Fprintln(&b, strings.TrimRight(line.String(), " "))
	}
	for _, c := range causes {
		for _, m := range versions {
			fmt.Fprintf(&b, "%c ", mark(m.Scenarios[c.scenario], c.finder))
		}
		fmt.Fprintf(&b, " %s#%s\n", c.scenario, c.finder)
	}
	b.WriteString("```\n")
	return b.String()
}

func mark(s *Seen, finder string) rune {
	switch {
	case s == nil:
		return ' '
	case s.Flagged[finder] > 0 && s.Flagged[finder] == s.Of:
		return 'x'
	case s.Flagged[finder] > 0:
		return '~'
	case s.Silent[finder] > 0:
		return '.'
	}
	return ' '
}
