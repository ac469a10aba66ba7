package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Version is the version of the format of results.json, which Write writes and Read reads. It is increased when a
// program that reads the old format would misunderstand the new one. docs/schema/results.schema.json describes the
// format.
const Version = 1

// format is one report format.
type format struct {
	name  string
	file  string // default file name
	about string
	write func(results.Run, io.Writer) error
}

// formats returns all report formats. p describes the run's protocol for the HTML page.
func formats(p inspector.Protocol) []format {
	return []format{
		{"json", "results.json", "everything, for programs", writeJSON},
		{"junit", "junit.xml", "JUnit XML, for CI systems", writeJUnit},
		{"html", "report.html", "one page for people, with every transcript",
			func(run results.Run, w io.Writer) error { return writeHTML(p, run, w) }},
		{"markdown", "summary.md", "a summary for a pull request or a CI job", writeMarkdown},
		{"tap", "results.tap", "TAP version 14", writeTAP},
		{"github", "annotations.txt", "GitHub workflow commands that mark lines of scenarios", writeGitHub},
		{"badge", "badge.svg", "a badge with the verdict", writeBadge},
		{"text", "report.txt", "what the console shows", writeText},
		{"durations", "durations.txt", "how long each scenario took, to cut equal shards", writeDurations},
	}
}

// Formats returns the names that Write accepts.
func Formats() []string {
	return lists.Map(formats(inspector.Protocol{}), func(f format) string { return f.name })
}

// File returns the default file name and the description of a format, or "" for an unknown format.
func File(name string) (file, about string) {
	f := lists.First(formats(inspector.Protocol{}), func(f format) bool { return f.name == name })
	return f.file, f.about
}

// Write writes a run in one of the Formats. The html format also reads the transcripts in run.Out that
// Result.Artifacts lists, and shows them according to p. If a transcript cannot be read, the page shows a message
// instead. Write returns an error if the format is unknown or the writer fails.
func Write(p inspector.Protocol, name string, run results.Run, w io.Writer) error {
	f, ok := lists.Find(formats(p), func(f format) bool { return f.name == name })
	if !ok {
		return fmt.Errorf("there is no report format %q: the formats are %s", name, strings.Join(Formats(), ", "))
	}
	if err := f.write(run, w); err != nil {
		return fmt.Errorf("writing the %s report: %w", name, err)
	}
	return nil
}

func writeJSON(run results.Run, w io.Writer) error {
	run.Version = Version
	if run.Results == nil {
		run.Results = []results.Result{} // the schema requires a list
	}
	if run.Agent.Command == nil {
		run.Agent.Command = []string{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(run)
}

// Read reads results.json. It returns an error if the file has another Version.
func Read(r io.Reader) (results.Run, error) {
	var run results.Run
	data, err := io.ReadAll(r)
	if err != nil {
		return run, fmt.Errorf("reading results: %w", err)
	}
	var of struct{ Version *int }
	if err := json.Unmarshal(data, &of); err != nil {
		return run, fmt.Errorf("reading results: %w", err)
	}
	switch {
	case of.Version == nil:
		return run, fmt.Errorf("reading results: the file has no version, so it is not a results.json of acp-test")
	case *of.Version != Version:
		return run, fmt.Errorf("reading results: file version %d, this program reads version %d", *of.Version, Version)
	}
	if err := json.Unmarshal(data, &run); err != nil {
		return run, fmt.Errorf("reading results: %w", err)
	}
	for i, r := range run.Results {
		if r.Failure != nil { // older files have no FailureClass
			run.Results[i].FailureClass = cmp.Or(r.FailureClass, r.Verdict)
		}
	}
	return run, nil
}

// problem is something that went wrong in a scenario, in the form that all reports use.
type problem struct {
	class results.Verdict
	id    string // id of the check or rule; "golden"; "" for the scenario itself
	title string // one sentence
	line  int    // line in the scenario file; 0 if unknown
	known bool
	// consequence is true if the problem follows from another problem.
	consequence bool
	// placed is true if the body contains the position.
	placed bool
	body   func(indent string) string
	why    []string // up to three lines: what was expected, observed, and why
}

// head returns the first line of a problem. It adds the position if the body does not contain it, and the class if
// the problem is inconclusive although the scenario's verdict is not.
func (p problem) head(r results.Result, indent string) string {
	head := strings.TrimSpace(p.id + "  " + firstLine(p.title))
	if p.class == results.Inconclusive && r.Verdict != p.class && !p.consequence {
		head = "inconclusive: " + head
	}
	if p.placed {
		return indent + head + "\n"
	}
	at := r.File
	if p.line > 0 {
		at = fmt.Sprintf("%s:%d", r.File, p.line)
	}
	return indent + head + "\n" + block(indent, "where", at)
}

// problems returns the problems of a result, the worst first. They include known failures, warnings and lints.
func problems(r results.Result) []problem {
	var all []problem
	if f := r.Failure; f != nil {
		all = append(all, problem{class: r.FailureClass, title: f.Error(), known: r.Known, body: f.Text,
			line: lineOf(f.Where), placed: f.Where != "", why: causes(f)})
	}
	for _, c := range r.Checks {
		if p, ok := checkProblem(c); ok {
			all = append(all, p)
		}
	}
	all = append(all, lists.Map(r.Findings, findingProblem)...)
	if g := r.Golden; g != nil && g.State == "differs" {
		what := "golden"
		if g.Recording {
			what = "recording"
		}
		title, meant := "the messages differ from the "+what, ""
		if g.Skipped != "" {
			title += ": " + g.Skipped
			meant = "delete the golden, or list it as a known failure (check: golden)"
		}
		all = append(all, problem{class: results.Fail, id: what, title: title, known: g.Known,
			body: func(indent string) string {
				return block(indent, what, g.Path, "difference", cut(g.Diff, 24), "if meant", meant)
			},
			why: append([]string{"differs from " + g.Path}, changed(g.Diff)...)})
	} else if g != nil && g.State == "new" && g.Diff != "" {
		all = append(all, problem{class: results.Fail, id: "golden", title: firstLine(g.Diff), known: g.Known,
			body: func(string) string { return "" }})
	}
	told := len(all) > 0
	if r.Verdict == results.Error {
		// A check that was not reached does not explain an error, so the reason must also be shown.
		told = slices.ContainsFunc(all, func(p problem) bool { return p.class == results.Error && !p.consequence })
	}
	if !told && r.Reason != "" && r.Verdict != results.Pass {
		all = append(all, problem{class: r.Verdict, title: r.Reason,
			body: func(string) string { return "" }})
	}
	slices.SortStableFunc(all, worseFirst)
	return all
}

// worseFirst compares two problems for sorting: the most severe come first, known failures last. Consequences come
// last among problems of the same kind.
func worseFirst(a, b problem) int {
	if a.known || b.known {
		return cmp.Or(after(a.known, b.known), after(a.consequence, b.consequence))
	}
	return cmp.Or(cmp.Compare(b.class, a.class), after(a.consequence, b.consequence))
}

// after compares two flags for sorting: false comes before true.
func after(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// minor reports whether the problem does not affect the verdict, because it is a known failure, a warning or a lint.
func (p problem) minor() bool { return p.known || p.class <= results.Warn }

func checkProblem(c results.Check) (problem, bool) {
	if c.Verdict == results.Pass || c.Verdict == 0 {
		return problem{}, false
	}
	p := problem{class: c.Verdict, id: c.ID, line: c.Line, known: c.Known, title: c.Title}
	switch {
	case c.NotReached:
		p.title, p.consequence = "not reached: an earlier line failed", true
		if c.Title != "" {
			p.title = c.Title + " (not reached: an earlier line failed)"
		}
		p.body = func(indent string) string {
			return block(indent, "requirement", strings.Join(c.Requirements, " "), "because",
				cmp.Or(c.Reason, "an earlier line failed, so it was not reached"))
		}
	case c.Failure != nil:
		if p.title == "" {
			p.title = c.Failure.Error()
		}
		p.body, p.why, p.placed = c.Failure.Text, causes(c.Failure), c.Failure.Where != ""
	default:
		p.title = cmp.Or(p.title, c.Reason)
		p.why = []string{c.Reason}
		p.body = func(indent string) string {
			return block(indent, "requirement", strings.Join(c.Requirements, " "), "because", c.Reason)
		}
	}
	return p, true
}

func findingProblem(f results.Finding) problem {
	title := f.Message
	if f.Count > 1 {
		title += fmt.Sprintf(" (%d places)", f.Count)
	}
	return problem{class: f.Class, id: f.Rule, title: title, known: f.Known, why: nonEmpty(f.Detail, f.Citation),
		body: func(indent string) string {
			return block(indent, "requirement", strings.Join(f.Requirements, " "), "citation", f.Citation,
				"detail", cut(f.Detail, 12), "session", f.Session, "frames", strings.Join(f.Tail, "\n"))
		}}
}

// writeDurations writes the longest duration of each scenario. They are sorted by id, so that the file changes little
// and can be committed.
func writeDurations(run results.Run, w io.Writer) error {
	longest := map[string]time.Duration{}
	for _, r := range run.Results {
		longest[r.ID] = max(longest[r.ID], r.Duration)
	}
	var b strings.Builder
	b.WriteString("# Seconds of each scenario, for --durations.\n")
	for _, id := range slices.Sorted(maps.Keys(longest)) {
		fmt.Fprintf(&b, "%s %.2f\n", id, longest[id].Seconds())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeText(run results.Run, w io.Writer) error {
	c := NewConsole(w, ConsoleOptions{Total: len(run.Results)})
	for _, r := range run.Results {
		c.Finished(r)
	}
	return c.Summary(run)
}
