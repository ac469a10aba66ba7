package main_test

import (
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/editors/personas"
)

var _ = Describe("a known editor", func() {
	// greeting is the initialize of the run in a folder, as the agent got it.
	greeting := func(p *place, scenario string) (m map[string]any) {
		for line := range strings.Lines(p.read(scenario + "/transcript.jsonl")) {
			var e struct {
				Method string
				Msg    map[string]any
			}
			Expect(json.Unmarshal([]byte(line), &e)).To(Succeed())
			if e.Method == "initialize" {
				return e.Msg
			}
		}
		return nil
	}

	for _, name := range personas.Names() {
		It("is played in what it declares, and has sources: "+name, func() {
			known, err := personas.Find(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(known.Title).NotTo(BeEmpty())
			Expect(known.Version).NotTo(BeEmpty())
			Expect(known.Facts).NotTo(BeEmpty())
			for _, f := range known.Facts {
				Expect(f.Says).To(MatchRegexp(`^\S.*\.$`))
				Expect(f.Source).To(HavePrefix("https://"))
			}
			p := newPlace()
			got := p.run("run", "--agent", "reference", "--editor", name, "--run", "^prompt-turn/text$", "--out", "out",
				"--no-smoke")
			Expect(got.code).To(BeZero(), got.out+got.err)
			m := greeting(p, "out/prompt-turn/text")
			Expect(m["id"]).To(BeNumerically("==", known.FirstID))
			for key, value := range known.Members {
				Expect(m).To(HaveKeyWithValue(key, value))
			}
			params := m["params"].(map[string]any)
			capabilities, err := json.Marshal(known.Capabilities)
			Expect(err).NotTo(HaveOccurred())
			Expect(json.Marshal(params["clientCapabilities"])).To(MatchJSON(capabilities))
			if known.Client == nil {
				Expect(params).NotTo(HaveKey("clientInfo"))
			} else {
				Expect(params["clientInfo"]).To(HaveKeyWithValue("name", known.Client["name"]))
			}
		})
	}

	It("answers the read of a missing file as it does", func() {
		p := newPlace()
		p.write("missing.txtar", `# The agent reads what is not there.
permit allow_once
prompt 'Read it.'
await turn end_turn
check it-reads
saw tool status=completed
-- llm.yaml --
replies:
  - - tool: read_file
      args: {path: $WORK/missing.txt}
  - - text: It is empty.
`)
		run := func(editor string) int {
			return p.run("run", "missing.txtar", "--agent", "reference", "--editor", editor, "--no-smoke").code
		}
		Expect(run("codecompanion")).To(Equal(0))
		Expect(run("zed")).NotTo(BeZero())
	})

	It("shows an agent that asks for what this editor has not", func() {
		p := newPlace()
		usual := []string{"--fault", "capabilities-ignored", "--tag", "!no-such-tag", "--run", "^terminal/real$"}
		Expect(p.run(append([]string{"matrix", "reference"}, usual...)...).code).To(BeZero())
		got := p.run(append([]string{"matrix", "reference", "--editor", "all"}, usual...)...)
		Expect(got.code).To(Equal(1), got.out+got.err)
		Expect(got.out).To(MatchRegexp(`(?m)^version +` + strings.Repeat(`1\.0\.0 +`, len(personas.Names())-1) +
			`1\.0\.0$`))
		Expect(got.out).To(MatchRegexp(`(?m)^ +\d+ +fail +reference-under-avante +CAP-GATE`))
		Expect(got.out).To(ContainSubstring("--editor avante"))
		Expect(got.out).NotTo(ContainSubstring("--editor zed"))
	})

	It("is described with its sources", func() {
		p := newPlace()
		Expect(p.run("help", "personas").out).To(ContainSubstring("## codecompanion\n\nCodeCompanion.nvim 009b02d2."))
	})
})
