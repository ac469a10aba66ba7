package reports

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/wire"
)

// writeTAP writes TAP version 14: one test point per scenario, with its problems as a YAML block.
func writeTAP(run results.Run, w io.Writer) error {
	var b bytes.Buffer
	spread := unknownEverywhere(run.Causes)
	fmt.Fprintf(&b, "TAP version 14\n1..%d\n", len(run.Results)+len(spread))
	for i, r := range run.Results {
		title, text := explain(r)
		ok, directive := "ok", ""
		switch {
		case r.Verdict == results.Skip:
			directive = " # SKIP " + tapText(title)
		case r.Apart:
		case r.Verdict == results.Fail && r.Known:
			ok, directive = "not ok", " # TODO known failure: "+tapText(title)
		case r.Verdict == results.Inconclusive && !run.Strict:
			directive = " # SKIP inconclusive: " + tapText(title)
		case r.Verdict != results.Pass:
			ok = "not ok"
		}
		fmt.Fprintf(&b, "%s %d - %s%s\n", ok, i+1, tapText(name(r)), directive)
		if ok == "not ok" {
			fmt.Fprintf(&b, "  ---\n  severity: %s\n  duration_ms: %d\n  file: %q\n  message: |\n", r.Verdict,
				r.Duration.Milliseconds(), r.File)
			for line := range strings.SplitSeq(strings.TrimRight(harmless(text), "\n"), "\n") {
				b.WriteString("    " + strings.ReplaceAll(line, "\t", "    ") + "\n")
			}
			b.WriteString("  ...\n")
		}
	}
	for i, c := range spread {
		fmt.Fprintf(&b, "not ok %d - %s %s\n", len(run.Results)+i+1, tapText(c.ID), tapText(c.Title))
	}
	if run.Interrupted {
		b.WriteString("Bail out! interrupted\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// tapText escapes a description. In TAP, an unescaped number sign would begin a directive.
func tapText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "#", `\#`).Replace(harmless(firstLine(s)))
}

// writeGitHub writes workflow commands for GitHub Actions. GitHub shows each as an annotation at the line of a
// scenario. It shows only ten annotations of a kind per step, so the worst problems are written first.
func writeGitHub(run results.Run, w io.Writer) error {
	var b bytes.Buffer
	for _, level := range []string{"error", "warning", "notice"} {
		for _, r := range run.Results {
			for _, p := range problems(r) {
				if annotation(p) == level {
					title := r.ID
					if p.id != "" && p.id != r.ID {
						title = p.id
						if !strings.HasPrefix(p.id, r.ID) {
							title = r.ID + " " + p.id
						}
					}
					message := strings.Join(append([]string{p.title}, p.why...), "\n")
					fmt.Fprintf(&b, "::%s file=%s,line=%d,title=%s::%s\n", level, property(r.File), max(p.line, 1), property(title),
						data(harmless(message)))
				}
			}
		}
	}
	for _, s := range run.Stale {
		fmt.Fprintf(&b, "::error title=stale::%s\n", data(harmless(s)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func annotation(p problem) string {
	switch {
	case p.known || p.class == results.Lint:
		return "notice"
	case p.class == results.Fail || p.class == results.Error:
		return "error"
	case p.class == results.Warn || p.class == results.Inconclusive:
		return "warning"
	}
	return ""
}

// data escapes a message, and property a property, for GitHub's workflow commands.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(harmless(s))
}

// mostRows is the maximum number of causes, failures and changes in a step summary, each.
const mostRows = 50

// writeMarkdown writes a step summaryin Markdown, with the verdict, the failures and their causes, and the table of
// requirements. It cuts long lists, because GitHub accepts at most a megabyte.
func writeMarkdown(run results.Run, w io.Writer) error {
	var b bytes.Buffer
	mark := map[results.Verdict]string{results.Pass: "✅", results.Fail: "❌", results.Error: "💥",
		results.Inconclusive: "❔"}[run.Verdict]
	fmt.Fprintf(&b, "## %s %s: %s\n\n", mark, markdown(run.Agent.String()), run.Verdict)
	fmt.Fprintf(&b, "%s, %s\n", counts(run), short(run.Duration))
	if c := run.Conformance; c != nil {
		fmt.Fprintf(&b, "\n**%s**\n", markdown(c.Verdict))
	}
	markdownCauses(&b, run.Causes)
	failed := slices.DeleteFunc(slices.Clone(run.Results), func(r results.Result) bool {
		return r.Verdict != results.Fail && r.Verdict != results.Error || r.Known || r.Apart
	})
	for _, r := range failed[:min(mostRows, len(failed))] {
		markdownFailure(&b, r)
	}
	restOf(&b, len(failed))
	if len(run.Flaky) > 0 {
		b.WriteString("\n### Flaky\n\n")
		for _, t := range run.Flaky {
			fmt.Fprintf(&b, "- %s passed %d of %d times\n", markdown(t.ID), t.Passed, t.Of)
		}
	}
	if run.Against != nil {
		markdownChanges(&b, run.Against)
	}
	for _, list := range []struct {
		title string
		items []string
	}{{"Stale", run.Stale}, {"Notes", run.Notes}} {
		if len(list.items) > 0 {
			fmt.Fprintf(&b, "\n### %s\n\n", list.title)
			for _, item := range list.items {
				fmt.Fprintf(&b, "- %s\n", markdown(firstLine(item)))
			}
		}
	}
	if run.Conformance != nil {
		markdownRequirements(&b, run.Conformance)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// restOf writes the number of a list's items that are not shown, if there are any. n is the length of the list.
func restOf(b *bytes.Buffer, n int) {
	if n > mostRows {
		fmt.Fprintf(b, "\nand %d more\n", n-mostRows)
	}
}

func markdownCauses(b *bytes.Buffer, causes []results.Cause) {
	if len(causes) == 0 {
		return
	}
	b.WriteString("\n| | cause | seen |\n|---|---|---|\n")
	for _, c := range causes[:min(mostRows, len(causes))] {
		class := c.Class.String()
		if c.Known {
			class = "known"
		}
		what := strings.TrimSpace(markdown(c.ID) + " " + markdown(firstLine(c.Title)))
		fmt.Fprintf(b, "| %s | %s | %s |\n", class, what, markdown(in(c.Scenarios, 3)))
	}
	restOf(b, len(causes))
}

func markdownFailure(b *bytes.Buffer, r results.Result) {
	fmt.Fprintf(b, "\n### %s %s\n\n", markdown(shownVerdict(r)), markdown(name(r)))
	if r.File != "" {
		fmt.Fprintf(b, "%s, %s\n\n", code(r.File), short(r.Duration))
	}
	for _, p := range problems(r) {
		if p.known || p.class <= results.Skip {
			continue
		}
		fmt.Fprintf(b, "- **%s** %s\n", markdown(label(p)), markdown(firstLine(p.title)))
		for _, why := range p.why[:min(3, len(p.why))] {
			fmt.Fprintf(b, "  - %s\n", code(firstLine(why)))
		}
	}
	if r.Rerun != "" {
		fmt.Fprintf(b, "\nRun again: %s\n", code(r.Rerun))
	}
}

func markdownChanges(b *bytes.Buffer, a *results.Against) {
	fmt.Fprintf(b, "\n### Changed since %s\n\n", markdown(a.Run))
	for _, c := range a.Changes[:min(mostRows, len(a.Changes))] {
		fmt.Fprintf(b, "- %s\n", markdown(change(c)))
		if c.Diff != "" {
			b.WriteString(fenced("diff", cut(c.Diff, 40), "  "))
		}
	}
	if len(a.Changes) == 0 {
		b.WriteString("nothing\n")
	}
	restOf(b, len(a.Changes))
}

func markdownRequirements(b *bytes.Buffer, c *results.Conformance) {
	b.WriteString("\n<details><summary>Requirements</summary>\n\n| id | tier | level | verdict | evidence | reason |" +
		"\n|---|---|---|---|---|---|\n")
	for _, q := range c.Requirements {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %d | %s |\n", markdown(q.ID), markdown(q.Tier), markdown(q.Level),
			markdown(q.Verdict.String()), q.Evidence, markdown(firstLine(q.Reason)))
	}
	b.WriteString("\n</details>\n")
}

// escaped returns a replacer that escapes all characters with a special meaning in Markdown.
var escaped = sync.OnceValue(func() *strings.Replacer {
	pairs := []string{"<", "&lt;", "&", "&amp;"}
	for _, sign := range strings.Split("\\`*_{}[]>()#!|~@", "") {
		pairs = append(pairs, sign, `\`+sign)
	}
	return strings.NewReplacer(pairs...)
})

// markdown escapes a text for use anywhere in a Markdown file.
func markdown(s string) string {
	return escaped().Replace(harmless(strings.ReplaceAll(s, "\n", " ")))
}

// code returns a code span. Its fence has one backquote more than the longest row of backquotes in the text.
func code(s string) string {
	s = wire.Clip(harmless(strings.ReplaceAll(s, "\n", " ")), 300)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// fenced returns a code block. Its fence has at least three backquotes, and more than any row of backquotes in the
// text.
func fenced(language, text, indent string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s%s\n", indent, fence, language)
	for line := range strings.SplitSeq(strings.TrimRight(harmless(text), "\n"), "\n") {
		b.WriteString(indent + line + "\n")
	}
	b.WriteString(indent + fence + "\n")
	return b.String()
}

// badgeOf returns the text on a badge for a protocol version.
func badgeOf(version string) string {
	if _, err := strconv.Atoi(version); err == nil {
		return "ACP v" + version
	}
	return strings.ToUpper(version)
}

// badge is the template of a badge in SVG.
//
//go:embed page/badge.svg
var badge string

// writeBadge writes a badge in SVG with the protocol, its version and the result.
func writeBadge(run results.Run, w io.Writer) error {
	c := run.Counts
	left, right := badgeOf(run.Protocol), fmt.Sprintf("%d/%d pass", c.Pass+c.Apart+c.Known, c.Total-c.Skip)
	if c := run.Conformance; c != nil {
		right = strings.ToLower(c.Verdict)
	}
	color := cmp.Or(map[results.Verdict]string{results.Pass: "#2e7d32", results.Fail: "#c62828",
		results.Error: "#6a1b9a", results.Inconclusive: "#b26a00"}[run.Verdict], "#616161")
	// Fonts differ, so the attribute textLength makes the text as wide as its box.
	a, b := 10+7*utf8.RuneCountInString(left), 10+7*utf8.RuneCountInString(right)
	left, right = html.EscapeString(harmless(left)), html.EscapeString(harmless(right))
	_, err := fmt.Fprintf(w, badge, a+b, a, b, left, right, color, a-10, a+5, b-10)
	return err
}
