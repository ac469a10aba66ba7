package reports

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
)

// WriteMatrix writes a matrix in the format "text", "markdown" or "html".
func WriteMatrix(format string, m Matrix, w io.Writer) error {
	text := ""
	switch format {
	case "text":
		text = matrixText(m)
	case "markdown":
		text = matrixMarkdown(m)
	case "html":
		return matrixPage(m, w)
	default:
		return fmt.Errorf("there is no matrix format %q: the formats are text, markdown, html", format)
	}
	_, err := io.WriteString(w, text)
	return err
}

// word returns the text of a cell. If numbers is set, the numbers of the cell's notes follow.
func (c MatrixCell) word(numbers bool) string {
	short := map[string]string{"": "–", "pass": "ok", "inconclusive": "?", notReached: "n/r", "fail": "FAIL"}
	word, ok := short[c.Outcome]
	if !ok {
		word = c.Outcome
	}
	if numbers {
		for i, n := range c.Notes {
			word += [...]string{" ", ","}[min(i, 1)] + strconv.Itoa(n)
		}
	}
	return word
}

// matrixLegend explains the words in the cells.
const matrixLegend = `ok: seen to hold. FAIL: broken. n/r: not reached, because an earlier line of
the scenario failed. flaky: known to break now and then. ?: could not be judged.
warn, lint: broken, where the specification only advises or says nothing. –:
nothing judged it.`

// matrixText returns the matrix for a terminal. It shows only the requirements that some agent does not satisfy.
func matrixText(m Matrix) string {
	var b strings.Builder
	table := [][]string{append([]string{""}, names(m)...)}
	table = append(table, aboutAgents(m)...)
	held := 0
	for _, row := range m.Rows {
		if !slices.ContainsFunc(row.Cells, func(c MatrixCell) bool { return c.Outcome != "" && c.Outcome != "pass" }) {
			held++
			continue
		}
		table = append(table, row.words(row.Requirement.ID))
	}
	b.WriteString(columns(table))
	fmt.Fprintf(&b, "\n%s hold for every tested agent.\n%s\n",
		printable.Plural(held, "more requirement", "more requirements"), matrixLegend)
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "\n%3d  %s  %s  %s  %s\n", n.Number, n.Outcome, n.Agent, n.Source, harmless(firstLine(n.Title)))
		if n.Known != "" {
			fmt.Fprintf(&b, "     known: %s\n", harmless(firstLine(n.Known)))
		}
		fmt.Fprintf(&b, "     %s\n", n.Command)
	}
	return b.String()
}

func names(m Matrix) (all []string) {
	return lists.Map(m.Columns, func(c MatrixColumn) string { return c.Name })
}

// aboutAgents returns the rows about the agents as a whole, such as their versions and counts.
func aboutAgents(m Matrix) [][]string {
	spread := ""
	if slices.ContainsFunc(m.Columns, func(c MatrixColumn) bool { return len(c.Everywhere) > 0 }) {
		spread = "wrong everywhere"
	}
	return rowsOf(m, []columnRow{
		{"version", func(c MatrixColumn) string { return c.Version }},
		{"scenarios run", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Total - c.Counts.Skip) }},
		{spread, func(c MatrixColumn) string { return cmp.Or(strings.Join(c.Everywhere, ", "), "–") }},
		{"passed", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Pass + c.Counts.Apart) }},
		{"failed", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Fail) }},
		{"failed as known", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Known) }},
		{"flaky", func(c MatrixColumn) string { return strconv.Itoa(c.Flaky) }},
		{"not judged", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Inconclusive + c.Counts.Error) }},
		{"skipped", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Skip) }},
	})
}

// columnRow is a row with one value for each agent.
type columnRow struct {
	name string // "" omits the row
	of   func(MatrixColumn) string
}

// rowsOf returns the rows as texts. An absent agent gets a dash.
func rowsOf(m Matrix, rows []columnRow) (table [][]string) {
	for _, r := range rows {
		line := []string{r.name}
		for _, c := range m.Columns {
			if c.Absent != "" {
				line = append(line, "–")
			} else {
				line = append(line, harmless(r.of(c)))
			}
		}
		if r.name != "" {
			table = append(table, line)
		}
	}
	return table
}

// measured returns the rows with measurements, which differ from machine to machine.
func measured(m Matrix) [][]string {
	return rowsOf(m, []columnRow{
		{"start-up", func(c MatrixColumn) string { return about(c.Measures.Start) }},
		{m.opening, func(c MatrixColumn) string { return about(c.Measures.Open) }},
		{"cancel to end of turn", func(c MatrixColumn) string { return about(c.Measures.Cancel) }},
		{"model requests of a text turn", func(c MatrixColumn) string { return cmp.Or(c.Measures.TextTurn, "–") }},
		{"model requests of a turn with a tool call",
			func(c MatrixColumn) string { return cmp.Or(c.Measures.ToolTurn, "–") }},
		{"other model requests", func(c MatrixColumn) string { return cmp.Or(strings.Join(c.Measures.Side, ", "), "–") }},
	})
}

var trailing = lazy.Regexp(` +\n`)

// columns returns a table as text with aligned columns. All rows must have the same number of cells.
func columns(table [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, line := range table {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	w.Flush()
	return trailing().ReplaceAllString(b.String(), "\n")
}

//go:embed page/matrix.html
var matrixTemplate string

// matrixPage writes the matrix as an HTML page without scripts. The template escapes texts from agents.
func matrixPage(m Matrix, w io.Writer) error {
	t, err := template.New("matrix").Funcs(template.FuncMap{
		"safe": harmless, "agents": aboutAgents, "measured": measured,
		"word":   func(c MatrixCell) string { return c.word(false) },
		"style":  func() template.CSS { return template.CSS(inspector.Style()) },
		"legend": func() string { return matrixLegend },
	}).Parse(matrixTemplate)
	if err != nil {
		return err
	}
	return t.Execute(w, m)
}

// measuredHeading is the heading of the part of the page that differs from run to run.
const measuredHeading = "## Measured"

// matrixMarkdown returns the matrix as a Markdown page. Runs with the same verdicts produce the same page, up to
// measuredHeading.
func matrixMarkdown(m Matrix) string {
	var b strings.Builder
	b.WriteString("# Agents compared\n\nThe outcome of each requirement of the specification, agent by agent. " +
		"`acp-test matrix`\nmakes this page.\n\n")
	fmt.Fprintf(&b, "%s\nA number leads to its [note](#notes), which gives the command that shows it.\n"+
		"`acp-test help ID` explains a requirement.\n\n## Agents\n\n",
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
		table = append(table, row.words(q.ID, markdown(q.Statement)))
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
	b.WriteString("\n## Refused connections\n\nHosts that the proxy refused. Connections that bypass the proxy " +
		"are not seen.\n\n")
	listed(&b, m, func(c MatrixColumn) []string { return c.Reached }, "nobody")
	b.WriteString("\n## Volatile fields\n\nFields that differ when an agent does the same thing twice.\n\n")
	listed(&b, m, func(c MatrixColumn) []string { return c.Volatile }, "none")
	b.WriteString("\n" + measuredHeading + "\n\nTimes are medians, measured on one machine on one day.\n\n")
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

// markdownTable writes a Markdown table. The first row is the header, and the cells are Markdown.
func markdownTable(b *strings.Builder, rows [][]string) {
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
}
