package printable_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/acp-test/acp-test/internal/printable"
)

// acts is what a terminal or a CI system would obey.
var acts = regexp.MustCompile(`(?m)^\s*::|##\[|##vso\[|##teamcity\[`)

var attacks = []string{
	"\x1b[2J", "\x1b]0;owned\x07", "\u009b2J", "\u202etxt", "\u2066x\u2069", "a\u200bb", "\ufeff", "\u2028", "\u0085",
	"\r\n\rx", "\x00",
	"::error::x", "x\n  ::set-env name=a::b", "x ##vso[task.complete]", "##[error]x",
	"a\n##teamcity[testFailed name='x']",
	"##[group]##[x", "\x7f", "\U000e0041", "\u00ad", "\b\b\b", "\x1b[0Ksection_start:1:x\r\x1b[0K",
}

func TestNothingActs(t *testing.T) {
	for _, a := range attacks {
		for _, text := range []string{a, "before " + a, "x\n" + a + "\ny", a + a} {
			got := printable.Text(text)
			for _, r := range got {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
					t.Errorf("%q: %q acts in %q", text, r, got)
				}
			}
			if at := acts.FindString(got); at != "" {
				t.Errorf("%q: %q acts in %q", text, at, got)
			}
			if line := printable.Line(text, 20); strings.Contains(line, "\n") || len([]rune(line)) > 21 {
				t.Errorf("%q: a line %q", text, line)
			}
		}
	}
}

func TestWhatIsHarmlessStays(t *testing.T) {
	for _, text := range []string{"", "a b\tc\nd", "wörld 漢字 🙂", "a::b", "x := y", "## A title", "#[derive]",
		"\uFFFD"} {
		if got := printable.Text(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, a := range attacks {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := printable.Text(text)
		if acts.MatchString(got) || strings.ContainsFunc(got,
			func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
			t.Errorf("%q: %q", text, got)
		}
	})
}
