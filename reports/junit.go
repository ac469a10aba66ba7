package reports

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

// The elements of JUnit XML that GitHub, GitLab and Jenkins read. The XML encoder escapes text, and replaces
// characters that XML does not allow by U+FFFD.
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		junitCounts
		Suites []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		junitCounts
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property,omitempty"`
		Cases      []junitCase     `xml:"testcase"`
		duration   time.Duration
	}
	junitCounts struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Time     string `xml:"time,attr"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name       string          `xml:"name,attr"`
		Classname  string          `xml:"classname,attr"`
		File       string          `xml:"file,attr,omitempty"`
		Time       string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property,omitempty"`
		Failure    *junitProblem   `xml:"failure"`
		Error      *junitProblem   `xml:"error"`
		Skipped    *junitSkipped   `xml:"skipped"`
		Out        string          `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// junitTime is the format of timestamps in JUnit XML.
const junitTime = "2006-01-02T15:04:05"

// writeJUnit writes a report in JUnit XML. It has a suite for each folder of scenarios and a case for each scenario.
// The verdict fail becomes a failure, and error an error. Inconclusive becomes a failure if the run is strict.
// Otherwise it becomes skipped, with the reason, and so do known failures. A cause with Everywhere set is a separate
// case; scenarios that fail only because of it do not become failures.
func writeJUnit(run results.Run, w io.Writer) error {
	agent := cmp.Or(run.Agent.Profile, "acp-test")
	all := junitSuites{junitCounts: junitCounts{Name: "acp-test " + agent, Time: seconds(run.Duration)}}
	at := map[string]int{}
	for _, r := range run.Results {
		folder := path.Dir(r.ID)
		i, ok := at[folder]
		if !ok {
			i = len(all.Suites)
			at[folder] = i
			all.Suites = append(all.Suites,
				junitSuite{junitCounts: junitCounts{Name: agent + "/" + folder}, Timestamp: r.Started.UTC().Format(junitTime),
					Properties: []junitProperty{{"agent", agent}, {"agent.version", run.Agent.Version},
						{"seed", strconv.FormatInt(run.Seed, 10)}, {"command", run.Command}}})
		}
		s := &all.Suites[i]
		c := junitCaseOf(run, r, agent)
		s.Cases = append(s.Cases, c)
		s.Tests++
		s.duration += r.Duration
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	if spread := unknownEverywhere(run.Causes); len(spread) > 0 {
		s := junitSuite{Timestamp: run.Started.UTC().Format(junitTime),
			junitCounts: junitCounts{Name: agent + "/everywhere", Tests: len(spread), Failures: len(spread)}}
		for _, x := range spread {
			s.Cases = append(s.Cases, junitCase{Name: x.ID, Classname: agent + ".everywhere", Time: seconds(0),
				Failure: &junitProblem{x.Title, x.Class.String(), in(x.Scenarios, len(x.Scenarios))}})
		}
		all.Suites = append(all.Suites, s)
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		s.Time = seconds(s.duration)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	// Some programs show texts from the report unescaped, so make control characters visible.
	inert := strings.ReplaceAll(printable.Text(string(text)), "&#xD;", `\r`)
	_, err = io.WriteString(w, xml.Header+inert+"\n")
	return err
}

func junitCaseOf(run results.Run, r results.Result, agent string) junitCase {
	causes := lists.Map(verdict.Sightings(&r), func(s verdict.Sighting) junitProperty {
		return junitProperty{"cause", strings.TrimSpace(s.Class.String() + " " + s.ID)}
	})
	c := junitCase{Properties: causes, Name: name(r),
		Classname: agent + "." + strings.ReplaceAll(path.Dir(r.ID), "/", "."), File: r.File,
		Time: seconds(r.Duration)}
	title, text := explain(r)
	if k := passes(run, r.ID); k != "" {
		title, text = strings.TrimPrefix(title+" ("+k+")", " "), k+"\n"+text
	}
	switch {
	case r.Apart:
		c.Out = text
	case r.Verdict == results.Error:
		c.Error = &junitProblem{title, "error", text}
	case r.Verdict == results.Fail && r.Known:
		c.Skipped = &junitSkipped{"known failure: " + title}
	case r.Verdict == results.Fail:
		c.Failure = &junitProblem{title, "fail", text}
	case r.Verdict == results.Inconclusive && run.Strict:
		c.Failure = &junitProblem{title, "inconclusive", text}
	case r.Verdict == results.Inconclusive:
		c.Skipped = &junitSkipped{"inconclusive: " + title}
	case r.Verdict == results.Skip:
		c.Skipped = &junitSkipped{title}
	default:
		c.Out = strings.Join(slices.Concat(nonEmpty(passes(run, r.ID)), minor(r), r.Notes), "\n")
	}
	return c
}

// explain describes the problems of a scenario: title is one sentence, and text the full description.
func explain(r results.Result) (title, text string) {
	var b strings.Builder
	for _, p := range problems(r) {
		if p.minor() && !(r.Known && p.known) {
			continue
		}
		if title == "" {
			title = firstLine(p.title)
			if p.id != "" {
				title = p.id + ": " + title
			}
		}
		b.WriteString(p.head(r, "") + p.body("  "))
	}
	if title == "" {
		title = firstLine(r.Reason)
	}
	b.WriteString(block("  ", "run again", r.Rerun, "evidence", r.Artifacts["transcript"]))
	return title, b.String()
}

// minor returns one line for each warning and lint of a result.
func minor(r results.Result) []string {
	var lines []string
	for _, p := range problems(r) {
		if p.class == results.Warn || p.class == results.Lint {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", p.class, p.id, firstLine(p.title)))
		}
	}
	return lines
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
