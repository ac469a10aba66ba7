//go:build unix

package main_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("explore", func() {
	It("keeps what it learned of an agent, and agents shows it", func() {
		oneOf(4)
		p := newPlace()
		Expect(p.run("agents", "reference").out).NotTo(ContainSubstring("calibration"))
		explore := []string{"explore", "--sessions", "1", "--confirm", "1"}
		Expect(p.run(explore...).out).To(MatchRegexp(`(?m)^Learned in \S+s\.$`))
		got := p.run(explore...)
		Expect(got.code).To(Equal(0), got.out)
		Expect(got.out).To(MatchRegexp(`(?m)^Read from \S+/acp-test/calibration/reference-\w+; delete this`))
		Expect(p.run("agents", "reference").out).To(MatchRegexp(`calibration +of version \S+\n +Tools that work:`))
		kept, err := filepath.Glob(filepath.Join(p.dir, ".cache/acp-test/calibration/reference-*/version"))
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(HaveLen(1))
		Expect(os.WriteFile(kept[0], []byte("another"), 0o600)).To(Succeed())
		Expect(p.run(explore...).out).To(MatchRegexp(`(?m)^Learned in `), "the version has changed")
		Expect(p.run(append(explore, "--fault", "cancel-error")...).out).To(MatchRegexp(`(?m)^Learned in `),
			"the command has changed")
	})

	It("lets run play what needs a question in a mode in which the agent asks", func() {
		oneOf(2)
		p := newPlace()
		run := []string{"run", "--liberty", "asks-for-nothing", "--run", "^permission/reject-once$"}
		Expect(p.run(run...).out).To(ContainSubstring("the turn ended without permission"))
		got := p.run("explore", "--sessions", "1", "--liberty", "asks-for-nothing")
		Expect(got.out).To(ContainSubstring("In mode interactive it asks."))
		got = p.run(run...)
		Expect(got.code).To(Equal(0), got.out)
		Expect(p.read("acp-test-out/results.json")).To(And(ContainSubstring(`"pass": 1`),
			ContainSubstring("played in the mode interactive, in which the agent asks")))
	})

	It("runs parts, which report merge joins", func() {
		oneOf(6)
		p := newPlace()
		for _, i := range []string{"1", "2"} {
			got := p.run("explore", "--sessions", "4", "--shard", i+"/2", "--out", "part/"+i)
			Expect(got.code).To(Equal(0), got.out)
			Expect(got.out).To(ContainSubstring("part " + i + " of 2 of the conversations, by --shard"))
		}
		got := p.run("report", "merge", "part/1", "part/2", "--out", "whole")
		Expect(got.code).To(Equal(0), got.out)
		Expect(p.read("whole/results.json")).To(MatchRegexp(`"explored": 4,`))
	})
})
