package mistake_test

import (
	"errors"
	"testing"

	"github.com/goccy/go-yaml/parser"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mistake"
)

func TestNearest(t *testing.T) {
	g := NewWithT(t)
	known := []string{"answer-late", "await", "answer", "cancel", "write", "awake"}
	for word, want := range map[string]string{
		"awiat":  `did you mean "await"?`,
		"Cancel": `did you mean "cancel"?`,
		"ans":    `did you mean "answer"?`, // what is not yet typed to its end: the shortest
		"awak":   `did you mean "awake"?`,
		"wrote":  `did you mean "write"?`,
		"äwait":  `did you mean "await"?`,
		"zzzzzz": "",
		"":       "",
	} {
		g.Expect(mistake.Nearest(word, known)).To(Equal(want), word)
	}
	g.Expect(mistake.Suggest("zzzzzz", known)).To(Equal("known: answer, answer-late, await, awake, cancel, write"))
	g.Expect(mistake.Suggest("awiat", known)).To(Equal(`did you mean "await"?`))
	g.Expect(mistake.Suggest("x", nil)).To(BeEmpty())
}

func TestMistake(t *testing.T) {
	g := NewWithT(t)
	g.Expect(&mistake.Mistake{File: "f", Line: 2, Column: 3, Message: "wrong", Hint: "right"}).
		To(MatchError("f:2:3: wrong (right)"))
	g.Expect(&mistake.Mistake{File: "f", Message: "wrong"}).To(MatchError("f: wrong"))
	_, err := parser.ParseBytes([]byte("a: b\n\tc: d\n"), 0)
	g.Expect(mistake.OfYAML("f", err)).To(MatchError(HavePrefix("f:2:1: ")))
	g.Expect(mistake.OfYAML("f", errors.New("unreadable"))).To(MatchError("f:1:1: unreadable"))
}

func TestCatch(t *testing.T) {
	g := NewWithT(t)
	leave := func(with any) (err error) {
		defer mistake.Catch(&err)
		if with != nil {
			panic(with)
		}
		return nil
	}
	g.Expect(leave(&mistake.Mistake{File: "f", Message: "wrong"})).To(MatchError("f: wrong"))
	g.Expect(leave(nil)).To(Succeed())
	g.Expect(func() { _ = leave("a bug") }).To(PanicWith("a bug"))
}
