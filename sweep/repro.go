package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/scenarios/script"
)

// writeRepro writes a finding as a scenario of its own.
func writeRepro(dir, name string, a Archive, f *Finding) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder for repros: %w", err)
	}
	var head []*script.Line
	comment := func(format string, args ...any) {
		head = append(head, script.NewComment(fmt.Sprintf(format, args...)))
	}
	comment("%s: %s.", f.Rule, situation(f))
	comment("Expect %s of %s, in %s: %s", article(f.Class.String()), f.Rule, f.often(), sentence(f.Message))
	comment("Found by a sweep of %s. Run it: %s", f.Scenario, f.Command)
	if f.Hits < f.Runs || f.Alone < f.AloneRuns {
		comment("It is a race: run it with --repeat 100, and with a higher --jobs if it does not show.")
	}
	if f.shared() {
		comment("Only sessions that share a process show it: what each of them does shows nothing alone.")
	}
	head = append(head, &script.Line{Kind: script.Blank})
	lines := a.Lines
	if len(lines) > 0 && lines[0].Kind == script.Comment {
		lines = lines[1:]
	}
	a.Lines = append(head, lines...)
	file := reproFile(dir, name)
	if err := os.WriteFile(file, a.Text(), 0o644); err != nil {
		return "", fmt.Errorf("writing a repro: %w", err)
	}
	return file, nil
}

// reproFile is the file for the repro of a name.
func reproFile(dir, name string) string { return filepath.Join(dir, name+".txtar") }

// often says how often a finding was seen again.
func (f *Finding) often() string {
	if f.Runs == 0 {
		return "the run that found it; there was no time to run it again"
	}
	if f.AloneRuns > 0 {
		return fmt.Sprintf("%d of %d runs beside others and %d of %d alone", f.Hits, f.Runs, f.Alone, f.AloneRuns)
	}
	return fmt.Sprintf("%d of %d runs", f.Hits, f.Runs)
}

func situation(f *Finding) string { return f.Action + ", " + f.Point }

func article(class string) string { return "a " + class }

// sentence is a message on one line, cut where it gets long.
func sentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 200
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "…") {
		s += "."
	}
	return s
}
