package reports_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp/acpreport"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// good and bad are two agents that did the same two scenarios.
func good() reports.Column {
	return reports.Column{Name: "good",
		Run: results.Run{Agent: results.Agent{Version: "1.0"}, Counts: results.Counts{Total: 2, Pass: 2},
			Results: []results.Result{
				{ID: "cancel/mid", Verdict: results.Pass, Support: map[string]int{"MSG-010": 3, "MSG-001": 0},
					Checks: []results.Check{{ID: "cancel/mid#ends", Slug: "ends", Title: "The turn ends.",
						Verdict: results.Pass, Requirements: []string{"CANCEL-001"}}}},
				{ID: "load/new", Verdict: results.Pass,
					Checks: []results.Check{{ID: "load/new#all", Slug: "all", Verdict: results.Pass,
						Requirements: []string{"LOAD-003"}}}},
			}}}
}

func bad() reports.Column {
	c := good()
	c.Name, c.Run.Agent.Version = "bad", "2.0"
	c.Run.Counts = results.Counts{Total: 2, Fail: 1, Known: 1}
	c.Known = []agents.KnownFailure{{Scenario: "load/*", ID: "all", Reason: "It keeps no <history>."}}
	c.Run.Results = []results.Result{
		{ID: "cancel/mid", Verdict: results.Fail, Rerun: "acp-test run --agent bad --run '^cancel/mid$'",
			Support: map[string]int{"MSG-010": 3},
			Checks: []results.Check{{ID: "cancel/mid#ends", Slug: "ends", Title: "The turn ends.",
				Verdict: results.Fail, Requirements: []string{"CANCEL-001"},
				Failure: &transcript.Failure{Observed: "#12 end_turn"}},
				{ID: "cancel/mid#later", Slug: "later", Verdict: results.Fail, NotReached: true,
					Requirements: []string{"CANCEL-011"}}},
			Findings: []results.Finding{{Rule: "LATE-CONTENT", Class: results.Warn,
				Requirements: []string{"MSG-010", "CANCEL-001"}, Message: "at #7"},
				{Rule: results.EgressRule, Class: results.Lint, Message: "x",
					Detail: "CONNECT tele.example:443; the proxy sees no connections that bypass it"}}},
		{ID: "load/new", Verdict: results.Fail, Known: true, Rerun: "acp-test run --agent bad --run '^load/new$'",
			Checks: []results.Check{{ID: "load/new#all", Slug: "all", Verdict: results.Fail, Known: true,
				Requirements: []string{"LOAD-003"}}}},
		{ID: "setup/broken", Verdict: results.Error,
			Checks: []results.Check{{ID: "setup/broken#x", Verdict: results.Fail, Requirements: []string{"INIT-004"}}}},
	}
	return c
}

func cells(m reports.Matrix, id string) (all []string) {
	for _, row := range m.Rows {
		if row.Requirement.ID == id {
			for _, c := range row.Cells {
				all = append(all, c.Outcome)
			}
		}
	}
	return all
}

func page(format string, m reports.Matrix) string {
	var b strings.Builder
	Expect(reports.WriteMatrix(format, m, &b)).To(Succeed())
	return b.String()
}

var _ = Describe("a matrix", func() {
	m := reports.NewMatrix(acpreport.V1(),
		[]reports.Column{good(), bad(), {Name: "away", Absent: "no program; run ci/agents/install away"}})

	It("has the worst that became of a requirement, for each agent", func() {
		Expect(cells(m, "CANCEL-001")).To(Equal([]string{"pass", "fail", ""}))
		Expect(cells(m, "CANCEL-011")).To(Equal([]string{"", "not reached", ""}))
		Expect(cells(m, "MSG-010")).To(Equal([]string{"pass", "warn", ""}))
		Expect(cells(m, "LOAD-003")).To(Equal([]string{"pass", "fail", ""}), "known failures count")
		Expect(cells(m, "MSG-001")).To(BeNil(), "nothing had to be judged by it")
		Expect(cells(m, "INIT-004")).To(BeNil(), "what the harness could not judge proves nothing")
	})

	It("says what stands behind each cell, why it is known, and the command that shows it", func() {
		var ends, known *reports.MatrixNote
		for i, n := range m.Notes {
			Expect(n.Number).To(Equal(i + 1))
			switch n.Source {
			case "cancel/mid#ends":
				ends = &m.Notes[i]
			case "load/new#all":
				known = &m.Notes[i]
			}
		}
		Expect(m.Notes).To(HaveLen(4))
		Expect(*ends).To(And(HaveField("Agent", "bad"), HaveField("Outcome", "fail"),
			HaveField("Title", "The turn ends."),
			HaveField("Command", "acp-test run --agent bad --run '^cancel/mid$'")))
		Expect(known.Known).To(Equal("It keeps no <history>."))
	})

	It("does not tell what lies where on one machine", func() {
		c := bad()
		c.Run.Results[0].Findings = append(c.Run.Results[0].Findings,
			results.Finding{Rule: "EXIT-LEFTOVER", Class: results.Warn, Requirements: []string{"STDIO-007"},
				Message: "A process outlived the agent and was killed: /home/me/bin/agent"})
		text := page("markdown", reports.NewMatrix(acpreport.V1(), []reports.Column{c}))
		Expect(text).To(ContainSubstring("A process outlived the agent and was killed\n"))
		Expect(text).NotTo(ContainSubstring("/home/me"))
	})

	It("is the same page when only ids and times were others", func() {
		other := bad()
		other.Run.Results[0].Checks[0].Failure = &transcript.Failure{Observed: "#99 end_turn"}
		other.Run.Results[0].Findings[0].Message = "at #8"
		n := reports.NewMatrix(acpreport.V1(),
			[]reports.Column{good(), other, {Name: "away", Absent: "no program; run ci/agents/install away"}})
		Expect(page("markdown", n)).To(Equal(page("markdown", m)))
	})

	It("is the same whether what is flaky passed or failed", func() {
		known := []agents.KnownFailure{{Scenario: "cancel/mid", ID: "ends", Flaky: true, Reason: "by the clock"},
			{Scenario: "cancel/*", ID: "LATE-CONTENT", Flaky: true, Reason: "by the clock"},
			{Scenario: "cancel/mid", ID: "later", Flaky: true, Reason: "by the clock"}}
		passed, failed := good(), bad()
		failed.Run.Results[0].Known, failed.Run.Results[0].Findings = true, failed.Run.Results[0].Findings[:1]
		failed.Run.Results[1], failed.Run.Counts = good().Run.Results[1], results.Counts{Total: 2, Pass: 1, Known: 1}
		failed.Run.Results = failed.Run.Results[:2]
		passed.Run.Results[0].Rerun, passed.Run.Agent = failed.Run.Results[0].Rerun, failed.Run.Agent
		passed.Run.Results[0].Checks = append(passed.Run.Results[0].Checks,
			results.Check{ID: "cancel/mid#later", Slug: "later", Verdict: results.Pass,
				Requirements: []string{"CANCEL-011"}})
		passed.Name, passed.Known, failed.Known = "bad", known, known
		one, two := reports.NewMatrix(acpreport.V1(), []reports.Column{passed}),
			reports.NewMatrix(acpreport.V1(), []reports.Column{failed})
		Expect(cells(one, "CANCEL-001")).To(Equal([]string{"flaky"}))
		Expect(one.Columns[0]).To(And(HaveField("Flaky", 1), HaveField("Counts.Pass", 1)))
		Expect(page("markdown", one)).To(Equal(page("markdown", two)))
		Expect(cells(one, "CANCEL-004")).To(Equal([]string{"flaky"}))
		passed.Known[1].Requirements = []string{"CANCEL-001"}
		Expect(cells(reports.NewMatrix(acpreport.V1(), []reports.Column{passed}), "CANCEL-004")).
			NotTo(ContainElement("flaky"))
	})

	It("shows on a terminal what does not hold for all", func() {
		text := page("text", m)
		Expect(text).To(MatchRegexp(`(?m)^ +good +bad +away$`))
		Expect(text).To(MatchRegexp(`(?m)^CANCEL-001 +ok +FAIL \d+ +–$`))
		Expect(text).To(ContainSubstring("     acp-test run --agent bad --run '^load/new$'"))
		Expect(text).NotTo(ContainSubstring("#12"))
	})

	It("is a page of Markdown with everything, and the measured part at its end", func() {
		text := page("markdown", m)
		Expect(text).To(MatchRegexp(`\| CANCEL-001 \| [^|]+ \| ok \| FAIL \d \| – \|`))
		Expect(text).To(ContainSubstring("- bad: `CONNECT tele.example:443`\n"))
		Expect(text).To(ContainSubstring("- good: nobody\n"))
		Expect(text).To(ContainSubstring(`Known: It keeps no &lt;history\>.`))
		Expect(text).To(ContainSubstring("away did not run: no program; run ci/agents/install away"))
		Expect(text[strings.Index(text, "## Measured"):]).NotTo(ContainSubstring("\n## M\n"))
	})

	It("is a page of HTML that believes nothing", func() {
		c := bad()
		c.Run.Agent.Version, c.Known[0].Reason = hostile, hostile
		text := page("html", reports.NewMatrix(acpreport.V1(), []reports.Column{c}))
		Expect(text).NotTo(ContainSubstring("<script>"))
		Expect(text).NotTo(ContainSubstring("\x1b"))
		Expect(text).To(MatchRegexp(`<a href="#note-(\d)">`))
		Expect(text).To(ContainSubstring(`id="note-1"`))
		Expect(text).To(ContainSubstring("default-src 'none'"))
	})

	It("refuses a form it does not have", func() {
		Expect(reports.WriteMatrix("pdf", m, GinkgoWriter)).To(MatchError(ContainSubstring("text, markdown, html")))
	})
})

// diary is a transcript in the making: one line an entry.
type diary struct{ lines []string }

// add adds an entry and gives its number.
func (d *diary) add(ms int, from, kind, more string) int {
	seq := len(d.lines)
	d.lines = append(d.lines, fmt.Sprintf(`{"seq":%d,"ms":%d,"from":%q,"kind":%q,%s}`, seq, ms, from, kind, more))
	return seq
}

// ask and reply are a request of the editor and the agent's answer.
func (d *diary) ask(ms int, method, session, params string) int {
	return d.add(ms, "editor", "request",
		fmt.Sprintf(`"id":%d,"method":%q,"session":%q,"msg":{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, ms,
			method, session, ms, method, params))
}

func (d *diary) reply(ms, to int, method, session, result string) {
	d.add(ms, "agent", "response",
		fmt.Sprintf(`"id":%d,"method":%q,"session":%q,"ref":%d,"msg":{"jsonrpc":"2.0","id":1,"result":%s}`, ms, method,
			session, to, result))
}

func (d *diary) update(ms int, session, body string) {
	d.add(ms, "agent", "notification",
		fmt.Sprintf(`"method":"session/update","session":%q,"msg":{"jsonrpc":"2.0","method":"session/update",`+
			`"params":{"sessionId":%q,"update":%s}}`, session, session, body))
}

func (d *diary) model(ms int, session, lane string) {
	d.add(ms, "model", "model-request", fmt.Sprintf(`"session":%q,"msg":{"lane":%q}`, session, lane))
}

// ran is a run of one scenario: a prompt with a tool call, then one that is
// cancelled.
func ran(session, dir string, pieces ...string) results.Run {
	d := diary{lines: []string{`{"acp-test":1,"scenario":"a/b"}`}}
	d.add(100, "process", "started", fmt.Sprintf(`"msg":{"dir":"%s/work"}`, dir))
	d.reply(410, d.ask(110, "initialize", "", "{}"), "initialize", "", `{"protocolVersion":1}`)
	d.reply(520, d.ask(500, "session/new", "", "{}"), "session/new", session, fmt.Sprintf(`{"sessionId":%q}`, session))

	prompt := d.ask(600, "session/prompt", session, "{}")
	d.model(601, session, "main")
	d.model(602, session, "title")
	for i, p := range pieces {
		d.update(610+i, session, fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text",`+
			`"text":%q}}`, p))
	}
	d.update(620, session, fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"t-%s","title":"Read %s/work/a"}`,
		session, dir))
	d.model(630, session, "main")
	d.reply(640, prompt, "session/prompt", session, `{"stopReason":"end_turn"}`)

	prompt = d.ask(700, "session/prompt", session, "{}")
	d.add(800, "editor", "notification",
		fmt.Sprintf(`"method":"session/cancel","session":%q,"msg":{"jsonrpc":"2.0","method":"session/cancel",`+
			`"params":{}}`, session))
	d.reply(870, prompt, "session/prompt", session, `{"stopReason":"cancelled"}`)

	out := GinkgoT().TempDir()
	Expect(os.MkdirAll(filepath.Join(out, "a", "b"), 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(out, "a", "b", "transcript.jsonl"), []byte(strings.Join(d.lines, "\n")+"\n"),
		0o644)).To(Succeed())
	return results.Run{Out: out, Results: []results.Result{{ID: "a/b",
		Artifacts: map[string]string{"transcript": "a/b/transcript.jsonl"}}}}
}

var _ = Describe("what a matrix measures", func() {
	It("is start-up, the way to the end after a cancel, and model requests", func() {
		m := reports.NewMatrix(acpreport.V1(), []reports.Column{{Name: "x", Run: ran("s-1", "/tmp/one", "Hel", "lo")}})
		Expect(m.Columns[0].Measures).To(Equal(reports.Measures{
			Start: 310 * time.Millisecond, Open: 20 * time.Millisecond, Cancel: 70 * time.Millisecond, ToolTurn: "2",
			Side: []string{"title"}}))
		Expect(page("markdown", m)).To(ContainSubstring("| cancel to end of turn | < 100ms |"))
	})

	It("takes no start-up from a process that scenarios share", func() {
		run := ran("s-1", "/tmp/one", "Hello")
		file := filepath.Join(run.Out, "a", "b", "transcript.jsonl")
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		// There the process is told of behind the request that it had answered before.
		Expect(os.WriteFile(file, bytes.Replace(text, []byte(`"ms":100,`), []byte(`"ms":111,`), 1), 0o644)).
			To(Succeed())
		m := reports.NewMatrix(acpreport.V1(), []reports.Column{{Name: "x", Run: run}})
		Expect(m.Columns[0].Measures.Start).To(BeZero())
		Expect(m.Columns[0].Measures.Open).To(Equal(20 * time.Millisecond))
	})

	It("finds the fields that differ, and neither the run's folder nor the pieces of a text", func() {
		m := reports.NewMatrix(acpreport.V1(),
			[]reports.Column{{Name: "x", Run: ran("s-1", "/tmp/one", "Hel", "lo"),
				Again: ran("s-2", "/tmp/two", "Hello")}})
		Expect(m.Columns[0].Volatile).To(Equal([]string{"sessionId", "tool_call toolCallId"}))
		same := reports.NewMatrix(acpreport.V1(),
			[]reports.Column{{Name: "x", Run: ran("s-1", "/tmp/one", "Hello"), Again: ran("s-1", "/tmp/two", "Hello")}})
		Expect(same.Columns[0].Volatile).To(BeEmpty())
		other := reports.NewMatrix(acpreport.V1(),
			[]reports.Column{{Name: "x", Run: ran("s-1", "/tmp/one", "Hello"),
				Again: ran("s-1", "/tmp/two", "Goodbye")}})
		Expect(other.Columns[0].Volatile).To(Equal([]string{"agent_message_chunk content.text"}))
		omitted := reports.NewMatrix(acpreport.V1(),
			[]reports.Column{{Name: "x", Run: ran("s-1", "/tmp/one", "Hello"), Again: ran("s-2", "/tmp/two", "Goodbye"),
				Omit: []string{"agent_*_chunk", "tool_call"}}})
		Expect(omitted.Columns[0].Volatile).To(Equal([]string{"sessionId"}))
		chance := reports.NewMatrix(acpreport.V1(),
			[]reports.Column{{Name: "x", Run: ran("s-1", "/tmp/one", "Hello"), Again: ran("s-2", "/tmp/two", "Goodbye"),
				Chance: []string{"toolCallId", "message"}}})
		Expect(chance.Columns[0].Volatile).To(Equal([]string{"agent_message_chunk content.text", "sessionId"}))
	})
})

var _ = Describe("the known failures of the shipped profiles", func() {
	It("name requirements that their rules stand for", func() {
		for _, name := range agents.Names() {
			p, err := agents.Shipped(name)
			Expect(err).NotTo(HaveOccurred())
			for _, k := range p.KnownFailures {
				if len(k.Requirements) > 0 {
					rule, ok := invariants.V1().Rule(k.ID)
					Expect(ok).To(BeTrue(), k.ID)
					Expect(rule.Requirements()).To(ContainElements(k.Requirements))
				}
			}
		}
	})
})
