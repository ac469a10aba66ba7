//go:build unix

package main_test

import (
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("--smoke", func() {
	turns := []string{"run", "--run", "^prompt-turn/two-turns$", "--smoke", "6"}

	It("ends a run with a sweep that finds nothing in the correct agent", func() {
		p := newPlace()
		got := p.run(turns...)
		Expect(got.code).To(Equal(0), got.out)
		swept := regexp.MustCompile(`smoke sweep: 6 conversations in (\S+), `).FindStringSubmatch(got.out)
		Expect(swept).NotTo(BeNil(), got.out)
		took, err := time.ParseDuration(swept[1])
		Expect(err).NotTo(HaveOccurred())
		Expect(p.results().Duration).To(BeNumerically(">=", took-100*time.Millisecond), "the run took the sweep too")
	})

	It("fails the run for what only a schedule shows, and says how to run that again", func() {
		oneOf(2)
		p := newPlace()
		Expect(p.run("run", "--run", "^prompt-turn/two-turns$", "--fault", "cancel-error").code).To(Equal(0))
		got := p.run(append(turns, "--fault", "cancel-error", "--seed",
			"2")...) // one whose schedule leaves nothing open
		Expect(got.code).To(Equal(1), got.out)
		Expect(got.out).To(ContainSubstring("CANCEL-REASON"))
		again := regexp.MustCompile(`acp-test (run --fault cancel-error .*\.txtar)`).FindStringSubmatch(got.out)
		Expect(again).NotTo(BeNil(), got.out)
		Expect(p.run(strings.Fields(again[1])...).code).To(Equal(1), "what it says to run shows the same")
	})

	It("is left out with --no-smoke", func() {
		Expect(newPlace().run(append(turns, "--no-smoke")...).out).NotTo(ContainSubstring("smoke sweep"))
	})
})

var _ = Describe("sweep", func() {
	It("says why there is nothing to sweep", func() {
		got := newPlace().run("sweep", "--run", "^initialize/bare$")
		Expect(got.code).To(Equal(2), got.out)
		Expect(got.out).To(ContainSubstring("nothing to sweep: none of the scenarios has a turn"))
	})

	It("shows one bug once, with a command line that shows it again", func() {
		oneOf(3)
		p := newPlace()
		got := p.run("sweep", "--run", "^prompt-turn/two-turns$", "--fault", "cancel-hits-every-session", "--points",
			"second*",
			"--actions", "cancel*", "--confirm", "2", "--timeout", "30s")
		Expect(got.code).To(Equal(1), got.out)
		Expect(got.out).To(ContainSubstring("; 1 finding; "))
		again := regexp.MustCompile(`acp-test (run --fault cancel-hits-every-session --timeout 30s .*\.txtar)`).
			FindStringSubmatch(got.out)
		Expect(again).NotTo(BeNil(), got.out)
		Expect(p.run(strings.Fields(again[1])...).code).To(Equal(1))
	})
})
