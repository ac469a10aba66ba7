package transcript

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/internal/printable"
)

// Failure is the common form of all failures: the requirement, the expected and
// the observed behavior, the reason why the result is final, and the last
// events. Empty parts are omitted.
type Failure struct {
	// Where is the place in the scenario, in the form "file:line".
	Where string `json:"where,omitempty"`
	// Requirement lists the ids of the violated requirements. Statement is their
	// text in plain words, with the citation.
	Requirement []string `json:"requirement,omitempty"`
	Statement   string   `json:"statement,omitempty"`
	// Expected lists all acceptable alternatives.
	Expected []string `json:"expected,omitempty"`
	// Observed is the actual behavior, one fact per line.
	Observed string `json:"observed,omitempty"`
	// Verdict is how the wait ended: "unmet", "unmeetable", or "".
	Verdict string `json:"verdict,omitempty"`
	// Reason explains the verdict.
	Reason string `json:"reason,omitempty"`
	// Timer is the name and the duration of the timer that ended the wait.
	Timer string `json:"timer,omitempty"`
	// Entries lists the Seqs of the entries that the failure is about.
	Entries []int `json:"entries,omitempty"`
	// Diff is a diff in the form "-want +got".
	Diff string `json:"diff,omitempty"`
	// Tail is the last entries, one line each, oldest first.
	Tail []string `json:"tail,omitempty"`
	// Stderr is the end of the agent's stderr output.
	Stderr string `json:"stderr,omitempty"`
	// Process is the state of the agent, such as "running" or "exited with status
	// 1".
	Process string `json:"process,omitempty"`
	// Advice tells the user what to do next.
	Advice string `json:"advice,omitempty"`
}

// Error returns the expected and the observed behavior in one line.
func (f *Failure) Error() string {
	want := strings.Join(f.Expected, " or ")
	switch {
	case want == "" && f.Observed == "":
		return f.Reason
	case want == "":
		return harmless(firstLine(f.Observed))
	case f.Observed == "":
		return "expected " + want
	}
	return "expected " + want + ", got " + harmless(firstLine(f.Observed))
}

// Text returns the complete failure on at most 40 lines, each of which begins
// with indent. It cuts long parts where that matters least: logs at their
// beginning, diffs at their end. It replaces control characters, with which an
// agent could manipulate a terminal, by dots.
func (f *Failure) Text(indent string) string {
	var b strings.Builder
	put := func(label string, lines ...string) {
		for _, line := range lines {
			fmt.Fprintf(&b, "%s%-12s %s\n", indent, label, harmless(line))
			label = ""
		}
	}
	put("requirement", head(spaced(strings.Join(f.Requirement, " "), f.Statement), 3)...)
	for i, want := range head(strings.Join(f.Expected, "\n"), 5) {
		if i == 0 {
			put("expected", want)
		} else {
			put("or", want)
		}
	}
	put("observed", head(f.Observed, 4)...)
	put("because", head(f.Reason, 3)...)
	put("timer", head(f.Timer, 1)...)
	put("where", head(f.Where, 1)...)
	last, logs := 8, 8
	if f.Diff != "" {
		last, logs = 3, 3
		put("difference", head(f.Diff, 13)...)
	}
	put("last", tail(strings.Join(f.Tail, "\n"), last)...)
	put("stderr", tail(f.Stderr, logs)...)
	put("agent", head(f.Process, 1)...)
	put("what to do", head(printable.Wrap(f.Advice, widest), 4)...)
	return b.String()
}

func spaced(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "  " + b
}

func firstLine(s string) string {
	line, rest, _ := strings.Cut(s, "\n")
	if rest != "" {
		return strings.TrimSuffix(line, "\r") + " …"
	}
	return line
}

// head returns the first n lines of a text. If there are more, the last line
// returned is a note with the number of omitted lines.
func head(s string, n int) []string {
	all := lines(s)
	if len(all) <= n {
		return all
	}
	if n == 1 {
		return []string{all[0] + " …"}
	}
	return append(all[:n-1:n-1], fmt.Sprintf("… %d more lines", len(all)-n+1))
}

// tail returns the last n lines of a text. If there are more, the first line
// returned is a note with the number of omitted lines.
func tail(s string, n int) []string {
	all := lines(s)
	if len(all) <= n {
		return all
	}
	left := len(all) - n + 1
	return append([]string{fmt.Sprintf("… %d earlier lines", left)}, all[left:]...)
}

func lines(s string) []string {
	s = strings.TrimRight(s, "\r\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// widest is the maximum number of characters shown of a line.
const widest = 160

// harmless makes a line safe for a terminal or the log of a CI system, and cuts
// a long line.
func harmless(line string) string {
	line = strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    ")
	n := 0
	for i := range line {
		if n++; n > widest {
			return printable.Text(line[:i]) + fmt.Sprintf("… (%d bytes)", len(line))
		}
	}
	return printable.Text(line)
}
