package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// inquiry is a client of acp-test mcp.
type inquiry struct{ *mcp.ClientSession }

func (p *place) mcp(args ...string) inquiry {
	GinkgoHelper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(GinkgoT().Context(),
		&mcp.CommandTransport{Command: p.command(append([]string{"mcp"}, args...)...)}, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.Close)
	return inquiry{s}
}

func (a inquiry) call(tool string, args map[string]any) (text string, failed bool) {
	GinkgoHelper()
	r, err := a.CallTool(GinkgoT().Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	Expect(err).NotTo(HaveOccurred())
	for _, c := range r.Content {
		text += c.(*mcp.TextContent).Text
	}
	return text, r.IsError
}

func (a inquiry) says(tool string, args map[string]any) string {
	GinkgoHelper()
	text, failed := a.call(tool, args)
	Expect(failed).To(BeFalse(), text)
	return text
}

func (a inquiry) tools() (names []string) {
	GinkgoHelper()
	for t, err := range a.Tools(GinkgoT().Context(), nil) {
		Expect(err).NotTo(HaveOccurred())
		names = append(names, t.Name)
	}
	return names
}

// contents are all files below a folder.
func contents(dir string) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	Expect(filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		all[name] = string(data)
		return err
	})).To(Succeed())
	return all
}

var _ = Describe("mcp", func() {
	const idle, stream = "cancel/idle", "cancel/mid-stream-at-gate"
	var p *place
	BeforeEach(func() {
		p = newPlace()
		Expect(p.run("run", "--fault", "cancel-error", "--run", idle+"|"+stream, "--out", "runs/one", "-q").code).
			To(Equal(1))
	})

	It("answers what a coding agent asks about a run, and changes nothing", func() {
		before := contents(filepath.Join(p.dir, "runs"))
		a := p.mcp("runs")
		Expect(a.tools()).To(ConsistOf("list", "causes", "failure", "frames", "findings", "diff", "explain"))
		transcript := "one/" + stream + "/transcript.jsonl"
		Expect(a.says("list", nil)).To(And(ContainSubstring("one/results.json  a run of reference"),
			ContainSubstring(transcript)))
		Expect(a.says("causes", map[string]any{"run": "one"})).To(And(ContainSubstring("FAIL  CANCEL-REASON error"),
			ContainSubstring(stream), Not(ContainSubstring(idle))))
		Expect(a.says("failure", map[string]any{"run": "one", "scenario": stream})).To(And(ContainSubstring("observed"),
			ContainSubstring("> #"), Not(ContainSubstring(p.dir))))
		Expect(a.says("findings", map[string]any{"file": transcript})).To(ContainSubstring("CANCEL-REASON"))
		Expect(a.says("explain", map[string]any{"topic": "CANCEL-REASON"})).
			To(ContainSubstring("An example that keeps CANCEL-REASON"))
		Expect(a.says("diff", map[string]any{"a": transcript, "b": "one/" + idle + "/transcript.jsonl"})).
			To(ContainSubstring("session/cancel"))

		all := a.says("frames", map[string]any{"file": transcript})
		Expect(all).To(And(ContainSubstring("#1 "), ContainSubstring("initialize")))
		some := a.says("frames", map[string]any{"file": transcript, "match": "session/cancel"})
		Expect(strings.Split(strings.TrimSpace(some), "\n")).To(HaveLen(2), some) // the headline and one entry
		Expect(a.says("frames", map[string]any{"file": transcript, "from": 2, "to": 3})).
			To(And(ContainSubstring("#2 "), ContainSubstring("#3 "), Not(ContainSubstring("#1 ")),
				Not(ContainSubstring("#4 "))))
		Expect(contents(filepath.Join(p.dir, "runs"))).To(Equal(before))
		Expect(os.ReadDir(filepath.Join(p.dir, ".tmp"))).To(BeEmpty())
	})

	It("reads nothing outside of its folder, and says what is wrong", func() {
		p.write("secret.jsonl", "the word")
		Expect(os.Symlink("../secret.jsonl", filepath.Join(p.dir, "runs/link.jsonl"))).To(Succeed())
		Expect(os.Symlink("..", filepath.Join(p.dir, "runs/up"))).To(Succeed())
		a := p.mcp("runs")
		for _, name := range []string{"../secret.jsonl", filepath.Join(p.dir, "secret.jsonl"), "link.jsonl",
			"up/secret.jsonl"} {
			for _, tool := range []string{"frames", "findings"} {
				text, failed := a.call(tool, map[string]any{"file": name})
				Expect(failed).To(BeTrue(), name)
				Expect(text).To(And(ContainSubstring(name), ContainSubstring("leads out of the directory"),
					Not(ContainSubstring("the word"))))
			}
		}
		Expect(a.says("list", nil)).NotTo(Or(ContainSubstring("link"), ContainSubstring("secret")))
		for tool, args := range map[string]map[string]any{
			"frames":  {"file": "one/" + idle + "/transcript.jsonl", "match": "("},
			"causes":  {"run": "two"},
			"failure": {"run": "one", "scenario": "cancel/never"},
			"explain": {"topic": "CANCEL-RAESON"},
		} {
			text, failed := a.call(tool, args)
			Expect(failed).To(BeTrue(), text)
			Expect(text).To(Or(ContainSubstring("missing closing )"), ContainSubstring("two"),
				ContainSubstring("cancel/never"),
				ContainSubstring(`did you mean "CANCEL-REASON"`)))
		}
	})

	It("plays the agent that it is given", func() {
		a := p.mcp("runs", "--", program, "refagent", "--fault", "cancel-error")
		Expect(a.tools()).To(ContainElements("run", "reduce"))
		Expect(a.says("run", map[string]any{"scenario": stream})).To(And(ContainSubstring("FAIL  "+stream),
			ContainSubstring("--> session/cancel")))
		p.write("runs/mine.txtar", good)
		Expect(a.says("run", map[string]any{"scenario": "mine.txtar"})).
			To(And(ContainSubstring("ok "), ContainSubstring("Hello.")))
		p.write("runs/bug.txtar", "# A cancel.\nprompt 'Say hello.'\nawait gate held\ncancel\nawait turn cancelled\n"+
			"-- llm.yaml --\nreplies:\n  - - gate: held\n")
		Expect(a.says("reduce", map[string]any{"file": "bug.txtar"})).
			To(And(ContainSubstring("CANCEL-REASON: "), ContainSubstring("\ncancel\n"),
				ContainSubstring("-- llm.yaml --")))
		Expect(a.says("reduce", map[string]any{"file": "mine.txtar"})).To(ContainSubstring("nothing fails"))
	})
})
