package reports

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MatrixFormats are the names that WriteMatrix takes.
func MatrixFormats() []string { return []string{"text", "markdown", "html"} }

// WriteMatrix writes a matrix in one of the MatrixFormats.
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
		return fmt.Errorf("there is no form of a matrix named %q: there are %s", format, strings.Join(MatrixFormats(), ", "))
	}
	_, err := io.WriteString(w, text)
	return err
}

// word is a cell for people, with the numbers of its notes.
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

// matrixLegend says what the words in cells mean.
const matrixLegend = `ok: seen to hold. FAIL: broken. n/r: not reached, because an earlier line of
the scenario failed. flaky: known to break now and then. ?: could not be judged.
warn, lint: broken, where the specification only advises or says nothing. –:
nothing judged it.`

// matrixText is the matrix for a terminal: the requirements that do not hold
// for all agents.
func matrixText(m Matrix) string {
	var b strings.Builder
	table := [][]string{append([]string{""}, names(m)...)}
	table = append(table, aboutAgents(m)...)
	held := 0
	for _, row := range m.Rows {
		if row.held() {
			held++
			continue
		}
		line := []string{row.Requirement.ID}
		for _, c := range row.Cells {
			line = append(line, c.word(true))
		}
		table = append(table, line)
	}
	b.WriteString(columns(table))
	fmt.Fprintf(&b, "\n%s hold for every agent that was asked.\n%s\n",
		plural(held, "more requirement", "more requirements"), matrixLegend)
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "\n%3d  %s  %s  %s  %s\n", n.Number, n.Outcome, n.Agent, n.Source, harmless(firstLine(n.Title)))
		if n.Known != "" {
			fmt.Fprintf(&b, "     known: %s\n", harmless(firstLine(n.Known)))
		}
		fmt.Fprintf(&b, "     %s\n", n.Command)
	}
	return b.String()
}

// held reports whether no agent broke it.
func (r MatrixRow) held() bool {
	for _, c := range r.Cells {
		if c.Outcome != "" && c.Outcome != "pass" {
			return false
		}
	}
	return true
}

func names(m Matrix) (all []string) {
	for _, c := range m.Columns {
		all = append(all, c.Name)
	}
	return all
}

// aboutAgents are the rows that say how the scenarios went.
func aboutAgents(m Matrix) [][]string {
	rows := []struct {
		name string
		of   func(MatrixColumn) string
	}{
		{"version", func(c MatrixColumn) string { return harmless(c.Version) }},
		{"scenarios run", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Total - c.Counts.Skip) }},
		{"passed", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Pass) }},
		{"failed", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Fail) }},
		{"failed as known", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Known) }},
		{"flaky", func(c MatrixColumn) string { return strconv.Itoa(c.Flaky) }},
		{"not judged", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Inconclusive + c.Counts.Error) }},
		{"skipped", func(c MatrixColumn) string { return strconv.Itoa(c.Counts.Skip) }},
	}
	var table [][]string
	for _, r := range rows {
		line := []string{r.name}
		for _, c := range m.Columns {
			if c.Absent != "" {
				line = append(line, "–")
			} else {
				line = append(line, r.of(c))
			}
		}
		table = append(table, line)
	}
	return table
}

// measured are the rows that differ from machine to machine.
func measured(m Matrix) [][]string {
	rows := []struct {
		name string
		of   func(Measures) string
	}{
		{"start-up", func(x Measures) string { return about(x.Start) }},
		{m.opening, func(x Measures) string { return about(x.Open) }},
		{"cancel to end of turn", func(x Measures) string { return about(x.Cancel) }},
		{"model requests of a text turn", func(x Measures) string { return orDash(x.TextTurn) }},
		{"model requests of a turn with a tool call", func(x Measures) string { return orDash(x.ToolTurn) }},
		{"other model requests", func(x Measures) string { return orDash(strings.Join(x.Side, ", ")) }},
	}
	var table [][]string
	for _, r := range rows {
		if r.name == "" {
			continue
		}
		line := []string{r.name}
		for _, c := range m.Columns {
			line = append(line, harmless(r.of(c.Measures)))
		}
		table = append(table, line)
	}
	return table
}

func orDash(s string) string {
	return cmp.Or(s, "–")
}

// columns aligns a table.
func columns(table [][]string) string {
	var widths []int
	for _, line := range table {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range table {
		var text strings.Builder
		for i, cell := range line {
			text.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	return b.String()
}
