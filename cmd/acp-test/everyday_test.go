//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

var _ = Describe("--budget", func() {
	It("runs what failed first, and tells what it left out and when that ran", func() {
		p := newPlace()
		p.write("all/a.txtar", good)
		p.write("all/b.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
		got := p.run("run", "all", "--budget", "1ns")
		Expect(got.out).To(ContainSubstring("budget 1ns: 1 of 2 scenarios ran; 1 of the scenarios left out have " +
			"never run here; a run without --budget includes all"))
		Expect(p.results().LeftOut).To(HaveLen(1))
		Expect(p.run("run", "all", "--budget", "2h").out).To(ContainSubstring("budget 2h0m0s: 2 of 2 scenarios ran"))
		got = p.run("run", "all", "--budget", "1ns")
		Expect(got.code).To(Equal(1), "b failed last: "+got.out)
		Expect(p.results().LeftOut).To(Equal([]string{"a"}))
		Expect(got.out).To(ContainSubstring("each scenario left out last ran on " +
			time.Now().UTC().Format(time.DateOnly)))
	})
})

var _ = Describe("--baseline-write", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("all/good.txtar", good)
		p.write("all/bad.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
	})

	It("lists what fails, and with that the run passes", func() {
		got := p.run("run", "all", "--baseline-write", "known.yaml")
		Expect(got.code).To(Equal(0), got.out)
		Expect(got.out).To(ContainSubstring("known failures written to known.yaml: 1"))
		Expect(p.read("known.yaml")).To(Equal("# Known failures of reference. Give each a reason, and delete those " +
			"that are fixed.\n" +
			"- scenario: \"bad\"\n  check: \"hello\"\n  reason: \"not looked into yet: A greeting.\"\n"))
		Expect(p.results().Counts.Known).To(Equal(1))
		Expect(p.run("run", "all").code).To(Equal(1))
		Expect(p.run("run", "all", "--baseline", "known.yaml").code).To(Equal(0))
	})

	It("keeps what still fails as it is written, and drops what is stale", func() {
		p.write("known.yaml", "- {scenario: bad, check: hello, reason: as agreed, link: https://example.org/1, "+
			"expires: 2999-01-31}\n- {scenario: good, check: hello, reason: mended}\n")
		got := p.run("run", "all", "--baseline", "known.yaml", "--baseline-write", "known.yaml")
		Expect(got.code).To(Equal(0), got.out)
		Expect(got.out).NotTo(ContainSubstring("stale"))
		Expect(p.read("known.yaml")).To(HaveSuffix("\n- scenario: \"bad\"\n  check: \"hello\"\n" +
			"  reason: \"as agreed\"\n  link: \"https://example.org/1\"\n  expires: 2999-01-31\n"))
	})

	It("lists once what a rule finds in several scenarios, with the checks beside it", func() {
		p.write("all/bad.txtar", scenario("prompt 'Say hello.'", "await turn end_turn"))
		flags := []string{"run", "all", "--fault", "key-at-root"}
		Expect(p.run(flags...).code).To(Equal(1))
		Expect(p.run(append(flags, "--baseline-write", "known.yaml")...).code).To(Equal(0))
		Expect(strings.Count(p.read("known.yaml"), "\n- ")).To(Equal(1), p.read("known.yaml"))
		Expect(p.read("known.yaml")).To(ContainSubstring("\n- cause: \"ROOT-KEYS unknown-key\"\n" +
			"  reason: \"not looked into yet: "))
		Expect(p.run(append(flags, "--baseline", "known.yaml")...).code).To(Equal(0))
		Expect(p.results().Counts.Known).To(Equal(2))
		p.write("known.yaml", "- {cause: ROOT-KEYS unknown-method, reason: another point}\n")
		Expect(p.run(append(flags, "--baseline", "known.yaml")...).code).To(Equal(1))
		p.write("known.yaml", "- {cause: ROOT-KEYS unknown-key, reason: mended}\n")
		got := p.run("run", "all", "--baseline", "known.yaml")
		Expect(got.out).To(ContainSubstring("known failure ROOT-KEYS unknown-key of ** no longer fails: delete it"))
	})

	It("lists nothing when nothing fails", func() {
		Expect(p.run("run", "all/good.txtar", "--baseline-write", "known.yaml").code).To(Equal(0))
		Expect(p.read("known.yaml")).To(HaveSuffix("\n[]\n"))
		Expect(p.run("run", "all/good.txtar", "--baseline", "known.yaml").code).To(Equal(0))
	})

	It("lists a line before the first check, and says when it no longer misses", func() {
		p.write("all/bad.txtar", "# Early.\nprompt 'Say hello.'\nawait turn refusal\ncheck late\nexists x\n-- x --\n"+
			"-- llm.yaml --\nreplies:\n  - - text: Hello.\n")
		Expect(p.run("run", "all").code).To(Equal(1))
		got := p.run("run", "all", "--baseline-write", "known.yaml")
		Expect(got.code).To(Equal(0), got.out)
		Expect(p.read("known.yaml")).To(ContainSubstring("- scenario: \"bad\"\n  check: \"before-checks\"\n" +
			"  reason: \"not looked into yet: expected turn refusal"))
		Expect(p.run("run", "all", "--baseline", "known.yaml").code).To(Equal(0))
		p.write("all/bad.txtar", strings.Replace(p.read("all/bad.txtar"), "refusal", "end_turn", 1))
		got = p.run("run", "all", "--baseline", "known.yaml")
		Expect(got.code).To(Equal(1), got.out)
		Expect(got.out).To(ContainSubstring("known failure before-checks of bad no longer fails: delete it"))
	})

	It("calls an entry for a glob stale in a run of everything only", func() {
		p.write("known.yaml", "- {scenario: '*', check: before-checks, reason: not yet}\n")
		got := p.run("run", "all", "--run", "^good$", "--baseline", "known.yaml")
		Expect(got.code).To(Equal(0), got.out)
		p.write("all/bad.txtar", p.read("all/good.txtar"))
		got = p.run("run", "all", "--baseline", "known.yaml")
		Expect(got.code).To(Equal(1), got.out)
		Expect(got.out).To(ContainSubstring("known failure before-checks of * no longer fails: delete it"))
	})

	It("cannot list an agent that does not start", func() {
		got := p.run("run", "all", "--baseline-write", "known.yaml", "--", "false")
		Expect(got.code).To(Equal(1), got.out)
	})
})

var _ = Describe("a flaky scenario", func() {
	It("is shown as k of n in the console, the results and JUnit, and in a baseline as flaky", func() {
		p := newPlace()
		p.write("once", "#!/bin/sh\ntest -f "+p.dir+"/seen || { touch "+p.dir+"/seen; exit 1; }\n")
		p.write("s.txtar", "# Moody.\ncheck moody\nprompt 'Say hello.'\nawait turn end_turn\nexec "+p.dir+
			"/once\n-- llm.yaml --\nreplies:\n  - - text: Hello.\n")
		got := p.run("run", "s.txtar", "--repeat", "3", "-j", "1", "--baseline-write", "known.yaml")
		Expect(got.out).To(ContainSubstring("flaky: s passed 2 of 3 times"))
		Expect(p.read("acp-test-out/results.json")).
			To(MatchRegexp(`"flaky": \[\s*\{\s*"id": "s",\s*"passed": 2,\s*"of": 3`))
		Expect(strings.Count(p.read("acp-test-out/junit.xml"), "passed 2 of 3 times")).To(BeNumerically(">=", 3))
		Expect(p.read("known.yaml")).To(HaveSuffix("  flaky: true\n"))
	})
})

var _ = Describe("--against", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("all/a.txtar", good)
		p.write("all/b.txtar", good)
		p.write("all/gone.txtar", good)
		Expect(p.run("run", "all").code).To(Equal(0))
	})

	It("says what changed since an earlier run, even where that is replaced", func() {
		Expect(os.Remove(filepath.Join(p.dir, "all/gone.txtar"))).To(Succeed())
		p.write("all/new.txtar", good)
		p.write("all/a.txtar", strings.ReplaceAll(good, "Hello.", "Good day."))
		p.write("all/b.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
		got := p.run("run", "all", "--against", "acp-test-out", "--report", "markdown=sum.md")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(MatchRegexp(`(?m)^changed since reference \S+, 20\d\d-\d\d-\d\d \d\d:\d\d UTC:$`))
		for _, line := range []string{"  a: the messages changed", "  b: was pass, is fail",
			"  b: check hello was pass, is fail", "  new: new, pass"} {
			Expect(got.out).To(ContainSubstring(line+"\n"), line)
		}
		Expect(got.out).To(MatchRegexp(`(?m)^ +-<-- agent_message .*"Hello\."`))
		Expect(got.out).NotTo(ContainSubstring("gone"), "what was not chosen has not changed")
		Expect(p.read("sum.md")).To(ContainSubstring("### Changed since"))
		Expect(p.resultsIn("acp-test-out-2").Against.Changes).To(HaveLen(4))
	})

	It("says that nothing changed", func() {
		got := p.run("run", "all", "--against", "acp-test-out")
		Expect(got.code).To(Equal(0))
		Expect(got.out).To(MatchRegexp(`(?m)^nothing changed since reference`))
	})

	It("compares no text whose order is left to chance", func() {
		p.write("all/a.txtar", "golden off\n"+strings.ReplaceAll(good, "Hello.", "Good day."))
		got := p.run("run", "all", "--against", "acp-test-out")
		Expect(got.out).To(MatchRegexp(`(?m)^nothing changed since reference`))
	})

	It("needs a run", func() {
		Expect(p.run("run", "all", "--against", "nowhere").err).
			To(Equal("acp-test: --against: open nowhere: no such file or directory\n"))
	})
})

var _ = Describe("--watch", func() {
	It("runs again what a saved file touches, until it is interrupted", func() {
		p := newPlace()
		p.write("all/a.txtar", good)
		p.write("all/b.txtar", good)
		p.write("agent.sh", "#!/bin/sh\nexec "+program+" refagent\n")
		c := p.command("run", "all", "--watch", "--", "./agent.sh")
		out := gbytes.NewBuffer()
		c.Stdout, c.Stderr = out, out
		Expect(c.Start()).To(Succeed())
		DeferCleanup(func() { _ = c.Process.Kill() })
		says := func(what string) {
			GinkgoHelper()
			Eventually(out).Should(gbytes.Say(what))
		}
		waits := "waiting for a file to be saved"
		says(`2 scenarios: 2 pass`)
		says(waits)
		p.write("all/a.txtar", good+"\n")
		says(`1 scenario: 1 pass`)
		says(waits)
		p.write("all/c.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
		says(`FAIL +c `)
		says(waits)
		p.write("all/deep/down/d.txtar", good)
		says(`ok +deep/down/d `)
		says(waits)
		p.write("notes.txt", "nothing to do with it")
		p.write("all/b.txtar", "promt\n")
		says(`b\.txtar:1:1: .*did you mean "prompt"`)
		says(waits)
		p.write("all/b.txtar", good)
		says(`ok +b `)
		says(waits)
		p.write("agent.sh", "#!/bin/sh\n# better\nexec "+program+" refagent\n")
		says(`4 scenarios: 3 pass, 1 fail`)
		says(waits)
		Expect(c.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(status(c.Wait())).To(Equal(1), "as the last run")
	})
})

var _ = Describe("a run of what matters now", func() {
	var p *place
	bad := strings.Replace(good, "end_turn", "refusal", 1)
	BeforeEach(func() {
		p = newPlace()
		p.write("all/a.txtar", good)
		p.write("all/b.txtar", bad)
		p.write("all/c.txtar", good)
	})

	It("takes what failed last, and says where nothing did", func() {
		got := p.run("run", "all", "--failed")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring("acp-test-out holds no results; run without --failed first"))
		Expect(p.run("run", "all").code).To(Equal(1))
		got = p.run("run", "all", "--failed")
		Expect(got.out).To(And(ContainSubstring("1 scenario"), Not(ContainSubstring("3 scenarios"))))
		Expect(p.run("run", "all/a.txtar", "--failed").out).To(Equal(
			"no scenario is run: none of the named scenarios failed in acp-test-out (but b did)\n"))
		p.write("all/b.txtar", good)
		Expect(p.run("run", "all", "--failed").code).To(Equal(0))
		got = p.run("run", "all", "--failed")
		Expect(got.code).To(Equal(0))
		Expect(got.out).To(Equal("no scenario is run: nothing failed in acp-test-out\n"))
	})

	It("takes what changed since a commit, and what failed last", func() {
		git := func(words ...string) {
			GinkgoHelper()
			c := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"},
				words...)...)
			c.Dir = p.dir
			text, err := c.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(text))
		}
		git("init", "-q")
		git("add", "all")
		git("commit", "-q", "-m", "x")
		got := p.run("run", "all", "--since", "HEAD")
		Expect(got.out).To(Equal("no scenario is run: nothing that a scenario depends on changed since HEAD, " +
			"and nothing failed in acp-test-out\n"))
		p.write("all/c.txtar", good+"# more\n")
		p.write("all/new.txtar", good)
		got = p.run("run", "all", "--since", "HEAD")
		Expect(got.out).To(ContainSubstring("2 scenarios"))
		Expect(p.run("run", "all").code).To(Equal(1))
		git("add", "all")
		git("commit", "-q", "-m", "y")
		got = p.run("run", "all", "--since", "HEAD")
		Expect(got.out).To(And(ContainSubstring("1 scenario"), ContainSubstring("b.txtar")))
		got = p.run("run", "all", "--since", "nowhere")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring("--since nowhere: this is neither a folder with results nor a " +
			"commit; git says: "))
	})
})
