//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// timeless masks what differs between two runs of the same: times, ids that the
// agent and the system draw, the folders of results, and the order in which
// frames and the model's side were heard.
func timeless(text string) string {
	if at := strings.IndexByte(text, '{'); at == 0 {
		return sameJSON(text)
	}
	if before, rest, ok := strings.Cut(text, `<script type="application/json" id="run">`); ok {
		run, after, _ := strings.Cut(rest, "</script>")
		// What a scenario did is in the page as compressed text, with its times.
		after = regexp.MustCompile(`(id="t\d+">)[A-Za-z0-9+/=]{100,}<`).ReplaceAllString(after, "$1 packed <")
		return before + sameJSON(run) + after
	}
	text = strings.NewReplacer("&#xA;", "\n", "%0A", "\n", "&lt;", "<").Replace(text)
	for _, m := range []struct{ pattern, with string }{
		{`(?m)^ *(frames|process|last|tail|observed)? *[> ]*#\d+ .*\n`, ``},
		{`(?m)#\d+ <--`, `<--`},
		{`(time|timestamp)="[^"]*"`, `$1="T"`},
		{`duration_ms: \d+`, `duration_ms: T`},
		{`pid \d+`, `pid N`},
		{`\b\d+m\d+s\b|\b\d+(\.\d+)?(ms|s)\b`, `T`},
		{`(?m)^slowest: .*$`, `slowest`},
		{`(?m)^(\S+) \d+\.\d\d$`, `$1 T`},
	} {
		text = regexp.MustCompile(m.pattern).ReplaceAllString(text, m.with)
	}
	return text
}

func sameJSON(text string) string {
	GinkgoHelper()
	var v any
	Expect(json.Unmarshal([]byte(text), &v)).To(Succeed())
	out, err := json.MarshalIndent(without(v, "started", "duration_ns", "linger_ns", "waits", "out", "tail", "entries",
		"observed", "process"), "", " ")
	Expect(err).NotTo(HaveOccurred())
	return string(out)
}

// without removes members of these names at any depth.
func without(v any, names ...string) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = without(v[k], names...)
		}
		for _, n := range names {
			delete(v, n)
		}
	case []any:
		for i := range v {
			v[i] = without(v[i], names...)
		}
	}
	return v
}

var _ = Describe("report merge", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		for i := range 4 {
			p.write(fmt.Sprintf("all/s%d.txtar", i), good)
		}
		p.write("all/bad.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
		p.write("all/known.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
		p.write("all/skipped.txtar", "needs agent:sessionCapabilities.fork\n"+good)
		p.write("golden/reference/gone.golden", "x\n")
		p.write("known.yaml", "- {scenario: known, check: hello, reason: not yet}\n"+
			"- {scenario: s0, check: hello, reason: no more}\n")
	})
	parts := func(n int, more ...string) (dirs []string) {
		for i := 1; i <= n; i++ {
			dir := fmt.Sprintf("part/%d", i)
			p.run(append([]string{"run", "all", "--baseline", "known.yaml", "--shard", fmt.Sprintf("%d/%d", i, n),
				"--out", dir}, more...)...)
			dirs = append(dirs, dir)
		}
		return dirs
	}

	It("makes of three parts what one run would have been, in every format", func() {
		whole := p.run("run", "all", "--baseline", "known.yaml")
		Expect(whole.code).To(Equal(1), whole.out)
		Expect(whole.out).To(And(ContainSubstring("stale: golden reference/gone"),
			ContainSubstring("stale: known failure hello of s0")))
		dirs := parts(3)
		got := p.run(append([]string{"report", "merge", "--out", "merged"}, dirs[2], dirs[0]+"/results.json",
			dirs[1])...)
		Expect([]any{got.code, got.err}).To(Equal([]any{1, ""}))
		for _, format := range strings.Split("json junit html markdown tap github badge text durations", " ") {
			a, b := p.run("report", "convert", "acp-test-out", "--to", format),
				p.run("report", "convert", "merged", "--to", format)
			Expect(a.code).To(Equal(0), a.err)
			// The command line of the first part names its folder.
			same := strings.NewReplacer(" --out part/1", "", p.dir+"/merged", p.dir+"/acp-test-out")
			Expect(same.Replace(timeless(b.out))).To(Equal(timeless(a.out)), format)
			Expect(len(a.out)).To(BeNumerically(">", 50), format)
		}
		for _, file := range []string{"junit.xml", "report.html", "results.json", "s1/transcript.jsonl",
			"bad/rendered.golden"} {
			Expect(filepath.Join(p.dir, "merged", file)).To(BeARegularFile())
		}
	})

	It("cuts by durations, when all parts have the same", func() {
		Expect(p.run("run", "all", "--baseline", "known.yaml", "--report", "durations=durations.txt").code).To(Equal(1))
		Expect(p.read("durations.txt")).To(MatchRegexp(`(?m)^s1 \d+\.\d\d$`))
		p.write("durations.txt", "# by hand\n\nbad 100\ns0 1\ns1 1\ns2 1\nnot there 3\n")
		dirs := parts(2, "--durations", "durations.txt")
		Expect(p.read("part/1/results.json")).NotTo(ContainSubstring(`"id": "s1"`))
		Expect(p.run(append([]string{"report", "merge", "--out", "merged"}, dirs...)...).code).To(Equal(1))
		p.write("durations.txt", "bad x\n")
		Expect(p.run("run", "all", "--durations", "durations.txt").err).
			To(Equal("acp-test: durations.txt:1: the id of a scenario and its seconds are expected, such as: " +
				"cancel/idle 0.42\n"))
	})

	It("refuses what is not one run, with exit status 2 and every reason", func() {
		dirs := parts(2)
		got := p.run("report", "merge", "--out", "merged", dirs[0])
		Expect(got).To(Equal(ended{2, "", "acp-test: these are not the parts of one run:\npart 2 of 2 is missing\n"}))
		Expect(filepath.Join(p.dir, "merged")).NotTo(BeADirectory())
		text := p.read("part/1/results.json")
		p.write("old/results.json", strings.Replace(text, `"version": 1`, `"version": 9`, 1))
		Expect(p.run("report", "merge", "old", dirs[1]).err).
			To(Equal("acp-test: old/results.json: reading results: file version 9, this program reads version 1\n"))
		Expect(p.run("report", "merge").err).To(ContainSubstring("the results of the parts are missing"))
		Expect(p.run("report", "merge", "--out", "part", dirs[0], dirs[1]).err).
			To(ContainSubstring("--out: report merge empties part first, and part/1 is in it"))
		Expect(p.run("report", "mrge").err).To(ContainSubstring(`there is no command "mrge" (did you mean "merge"?)`))
	})

	It("lets no name in a file reach outside of its folder", func() {
		dirs := parts(2)
		p.write("secret", "mine")
		p.write("part/1/results.json",
			strings.Replace(p.read("part/1/results.json"), `"bad/stderr.txt"`, `"../../secret"`, 1))
		got := p.run(append([]string{"report", "merge", "--out", "merged"}, dirs...)...)
		Expect(got.code).To(Equal(2), got.out)
		Expect(got.err).To(ContainSubstring("../../secret"))
	})

	It("says which files are not there any more", func() {
		dirs := parts(2)
		Expect(os.RemoveAll(filepath.Join(p.dir, "part/1/bad"))).To(Succeed())
		got := p.run(append([]string{"report", "merge", "--out", "merged"}, dirs...)...)
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(MatchRegexp(`(?m)^\d files of scenarios are missing next to results.json; the ` +
			`first is bad/`))
	})
})

var _ = Describe("report convert", func() {
	It("asks for a format there is", func() {
		p := newPlace()
		Expect(p.run("report", "convert", "x").err).To(ContainSubstring(`--to is missing`))
		Expect(p.run("report", "convert", "x", "--to", "jnit").err).
			To(ContainSubstring(`--to: there is no format "jnit" (did you mean "junit"?)`))
		Expect(p.run("report", "convert", "x", "--to", "tap").err).
			To(Equal("acp-test: open x: no such file or directory\n"))
		Expect(p.run("report", "convert", "--to", "tap").err).To(ContainSubstring("a results.json is missing"))
	})

	It("writes a file", func() {
		p := newPlace()
		p.write("s.txtar", good)
		Expect(p.run("run", "s.txtar").code).To(Equal(0))
		Expect(p.run("report", "convert", "acp-test-out", "--to", "markdown", "-o", "new/s.md")).
			To(Equal(ended{0, "", ""}))
		Expect(p.read("new/s.md")).To(ContainSubstring("pass"))
	})
})

var _ = Describe("the folder for results", func() {
	It("is not seen by git", func() {
		p := newPlace()
		p.write("s.txtar", good)
		Expect(p.run("run", "s.txtar").code).To(Equal(0))
		Expect(p.run("run", "s.txtar").code).To(Equal(0))
		Expect(p.read("acp-test-out/.gitignore") + p.read("acp-test-out.previous/.gitignore")).To(Equal("*\n*\n"))
	})
})
