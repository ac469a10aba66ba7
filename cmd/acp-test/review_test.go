//go:build unix

package main_test

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("review", func() {
	var p *place
	golden := func(name string) string { return p.read("golden/reference/" + name + ".golden") }
	BeforeEach(func() {
		p = newPlace()
		for _, name := range []string{"a", "b", "c"} {
			p.write("t/"+name+".txtar", good)
		}
		Expect(p.run("run", "t", "--update").code).To(Equal(0))
		p.write("t/new.txtar", good)
		for _, name := range []string{"a", "b"} {
			p.write("golden/reference/"+name+".golden", strings.ReplaceAll(golden(name), "Hello.", "Bye."))
		}
		p.write("golden/reference/c.golden", strings.ReplaceAll(golden("c"), "end_turn", "refusal"))
		got := p.run("run", "t")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(HaveSuffix("\n      acp-test review goes through the goldens; " + p.dir +
			"/acp-test-out/report.html\n"))
	})

	It("shows each change by word where nobody can be asked", func() {
		got := p.run("review")
		Expect([]any{got.code, got.err}).To(Equal([]any{1, ""}))
		Expect(got.out).To(MatchRegexp(`\n1 of 4: a is changed; more with the same change: 1\n  --> session/prompt ` +
			`.*\n  <-- agent_message msg#1 "\[-Bye-\]\{\+Hello\+\}\."\n`))
		Expect(got.out).To(ContainSubstring("3 of 4: c is changed\n"))
		Expect(got.out).To(ContainSubstring("[-refusal-]{+end_turn+}"))
		Expect(got.out).To(HaveSuffix("accepted 0, rejected 0, left 4; goldens are in golden/reference\n"))
		Expect(golden("a")).To(ContainSubstring("Bye."))
	})

	It("accepts what fits a pattern", func() {
		got := p.run("review", "--accept", "a", "--accept", "n*")
		Expect([]any{got.code, got.out}).
			To(Equal([]any{1, "accepted 2, rejected 0, left 2; goldens are in golden/reference\n"}))
		Expect(golden("a")).To(ContainSubstring("Hello."))
		Expect(golden("b")).To(ContainSubstring("Bye."))
		Expect(golden("new")).To(ContainSubstring("Hello."))
		Expect(p.run("run", "t").code).To(Equal(1))
		Expect(p.run("review", "--accept", "*")).
			To(Equal(ended{0, "accepted 2, rejected 0, left 0; goldens are in golden/reference\n", ""}))
		Expect(p.run("run", "t", "--golden-required").code).To(Equal(0))
		Expect(p.run("review")).To(Equal(ended{0, "no golden of reference is new or differs\n", ""}))
	})

	It("asks at a terminal, and takes a decision back", func() {
		t := p.atTerminal("review")
		t.sees(`1 of 4: a (?s:.*)\[c\] accept all 2 alike.*\? `, "c\n")
		t.sees(`3 of 4: c (?s:.*)\? `, "r\n")
		t.sees(`4 of 4: new is new(?s:.*)\? `, "u\n")
		t.sees(`3 of 4: c (?s:.*)\? `, "u\n")
		t.sees(`1 of 4: a (?s:.*)\? `, "a\n")
		t.sees(`2 of 4: b (?s:.*)\? `, "s\n")
		t.sees(`3 of 4: c (?s:.*)\? `, "r\n")
		t.sees(`4 of 4: new (?s:.*)\? `, "q\n")
		t.sees(`accepted 1, rejected 1, left 2; goldens are in golden/reference\r\n`, "")
		Expect(status(t.Wait())).To(Equal(1))
		Expect(golden("a")).To(ContainSubstring("Hello."))
		Expect(golden("b")).To(ContainSubstring("Bye."))
		Expect(golden("c")).To(ContainSubstring("refusal"))
		Expect(filepath.Join(p.dir, "golden/reference/new.golden")).NotTo(BeAnExistingFile())
	})

	It("leaves out what fails for another reason", func() {
		p.run("run", "t", "--fault", "update-for-unknown-session")
		got := p.run("review")
		Expect(got.out).To(Equal("not reviewed, because something else failed in them: a, b, c, new\n"))
		Expect(got.code).To(Equal(1))
	})

	DescribeTable("says what is wrong", func(message string, args ...string) {
		Expect(p.run(append([]string{"review"}, args...)...)).To(Equal(ended{2, "", "acp-test: " + message + "\n"}))
	},
		Entry("no run", "review: open no: no such file or directory; acp-test run writes it", "no"),
		Entry("nothing fits", "--accept x* matches no scenario with a new or changed golden; those are a, b, c, new",
			"--accept", "x*"),
	)

	It("and --update remove goldens that no scenario has or that applies no longer", func() {
		Expect(p.run("review", "--accept", "*").code).To(Equal(0))
		p.write("golden/reference/gone.golden", "x\n")
		p.write("t/b.txtar", "needs agent:nothingOfTheKind\n"+good)
		got := p.run("run", "t", "--update")
		Expect(got.code).To(Equal(0), got.out)
		Expect(got.out).To(MatchRegexp(`(?m)^skip  b  .*golden removed$`))
		Expect(filepath.Join(p.dir, "golden/reference/b.golden")).NotTo(BeAnExistingFile())
		Expect(got.out).To(MatchRegexp(`(?m)^golden reference/gone removed: it belongs to no scenario$`))
		Expect(filepath.Join(p.dir, "golden/reference/gone.golden")).NotTo(BeAnExistingFile())
	})
})
