package golden_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/golden"
)

func words(want, got string) string {
	var b strings.Builder
	for _, p := range golden.Words(want, got) {
		switch p.Op {
		case '-':
			b.WriteString("[-" + p.Text + "-]")
		case '+':
			b.WriteString("{+" + p.Text + "+}")
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func TestWords(t *testing.T) {
	g := NewWithT(t)
	g.Expect(words("<-- msg#1 \"Hello.\"\nend\n", "<-- msg#1 \"Hello!\"\nend\n")).
		To(Equal("<-- msg#1 \"Hello[-.-]{+!+}\"\nend\n"))
	g.Expect(words("a b c\n", "a c\n")).To(Equal("a[- b-] c\n"))
	g.Expect(words("", "x\n")).To(Equal("{+x\n+}"))
	g.Expect(words("x\n", "")).To(Equal("[-x\n-]"))
	g.Expect(words("x\n", "x\n")).To(Equal("x\n"))
}

func TestWordsAreBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab .\n#é")))
		want, got := text.Draw(t, "want"), text.Draw(t, "got")
		var old, now string
		for _, p := range golden.Words(want, got) {
			if p.Op != '+' {
				old += p.Text
			}
			if p.Op != '-' {
				now += p.Text
			}
		}
		if old != want || now != got {
			t.Fatalf("%q and %q came out as %q and %q", want, got, old, now)
		}
	})
}
