package reports

import (
	"fmt"
	"strings"
)

// measuredHeading begins the part of the page that is not the same again.
const measuredHeading = "## Measured"

// matrixMarkdown is the matrix as a page. All before measuredHeading is the same
// for every run that had the same verdicts.
func matrixMarkdown(m Matrix) string {
	var b strings.Builder
	b.WriteString("# Agents beside each other\n\nWhat became of each requirement of the specification, agent by agent. " +
		"`acp-test matrix`\nmakes this page.\n\n")
	fmt.Fprintf(&b, "%s\nNumbers lead to the [notes](#notes), and those to the command that shows it.\n\n## Agents\n\n",
		matrixLegend)
	markdownTable(&b, append([][]string{append([]string{""}, names(m)...)}, aboutAgents(m)...))
	for _, c := range m.Columns {
		if c.Absent != "" {
			fmt.Fprintf(&b, "\n%s did not run: %s\n", c.Name, markdown(c.Absent))
		}
	}
	tier := ""
	var table [][]string
	flush := func() {
		if len(table) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n", tier)
			markdownTable(&b, append([][]string{append([]string{"requirement", ""}, names(m)...)}, table...))
			table = nil
		}
	}
	for _, row := range m.Rows {
		q := row.Requirement
		if q.Tier.String() != tier {
			flush()
			tier = q.Tier.String()
		}
		link := fmt.Sprintf("[%s](reference/requirements.md#%s)", q.ID, strings.ToLower(q.ID))
		table = append(table, row.words(link, markdown(q.Statement)))
	}
	flush()
	b.WriteString("\n## Notes\n\n")
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "%d. %s, %s, `%s`: %s\n", n.Number, n.Agent, n.Outcome, n.Source, markdown(n.Title))
		if n.Known != "" {
			fmt.Fprintf(&b, "   Known: %s\n", markdown(n.Known))
		}
		fmt.Fprintf(&b, "   `%s`\n", n.Command)
	}
	b.WriteString("\n## Whom they want to reach\n\nWhat the [proxy](network.md) refused. Connections that go round it " +
		"are not seen.\n\n")
	listed(&b, m, func(c MatrixColumn) []string { return c.Reached }, "nobody")
	b.WriteString("\n## Volatile fields\n\nFields of their messages that differ when the same is done twice.\n\n")
	listed(&b, m, func(c MatrixColumn) []string { return c.Volatile }, "none")
	b.WriteString("\n" + measuredHeading + "\n\nTimes are medians. This part is of one machine and one day.\n\n")
	markdownTable(&b, append([][]string{append([]string{""}, names(m)...)}, measured(m)...))
	return b.String()
}

func listed(b *strings.Builder, m Matrix, of func(MatrixColumn) []string, none string) {
	for _, c := range m.Columns {
		if c.Absent != "" {
			continue
		}
		text := none
		if items := of(c); len(items) > 0 {
			text = "`" + strings.Join(items, "`, `") + "`"
		}
		fmt.Fprintf(b, "- %s: %s\n", c.Name, harmless(text))
	}
}

// markdownTable writes rows, the first of which is the head. Cells are Markdown.
func markdownTable(b *strings.Builder, rows [][]string) {
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
}
