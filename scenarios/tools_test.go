package scenarios_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("the tools of a profile", func() {
	const write = "permit allow_once\ncheck a\nprompt 'Write.'\nawait turn end_turn\n\n-- llm.yaml --\nreplies:\n" +
		"  - - tool: write_file\n      args: {path: $WORK/a.txt, content: x}\n  - - text: Done.\n"

	It("are compared with those that the agent offers its model", func() {
		e := engine()
		Expect(run(e, write).Findings).To(BeEmpty())
		e.Profile.Tools["write_file"] = agents.Tool{Name: "create_file"}
		Expect(run(e, write).Findings).To(HaveExactElements(SatisfyAll(
			HaveField("Rule", results.ToolOfferedRule), HaveField("Class", results.Lint),
			HaveField("Message", `tools.write_file of the profile is "create_file", but the agent offers no `+
				`such tool; `+
				`its tool for that is "write_file".`))))
	})

	It("may be unable to do what scenarios ask for, which are skipped then", func() {
		e := engine()
		e.Profile.Tools["write_file"] = agents.Tool{Name: "create", Cannot: []string{"folders"}}
		Expect(run(e, "needs tool:write_file:overwrite\n"+write).Verdict).NotTo(Equal(results.Skip))
		r := run(e, "needs tool:write_file:folders\n"+write)
		Expect(r.Verdict).To(Equal(results.Skip), text(r))
		Expect(r.Reason).To(HaveSuffix("for write_file, cannot create the folders of a new file"))
	})

	It("may be missing, which ends a script at the call: nothing is waited for, and the turn is held against nobody",
		func() {
			e := engine()
			e.Profile.Tools = nil // learned from what the agent offers
			r := run(e, "prompt 'Have it done.'\nawait stderr\n\n"+
				"-- llm.yaml --\nreplies:\n  - - tool: knit\n      args: {}\n")
			Expect(r.Verdict).To(Equal(results.Skip), text(r))
			Expect(r.Reason).To(Equal("the agent offers its model no tool for knit"))
			Expect(r.Findings).To(BeEmpty())
			Expect(r.Vain).To(BeEmpty())
			Expect(r.Waits.Deadline).To(BeZero())
		})

	It("may need an editor that answers a missing file with an empty success", func() {
		const read = "files missing=needed\nprompt 'Read.'\nawait turn end_turn\ncheck empty\n" +
			"saw tool status=completed\n\n" +
			"-- llm.yaml --\nreplies:\n  - - tool: read_file\n      args: {path: $WORK/missing.txt}\n" +
			"  - - text: Read.\n"
		e := engine()
		Expect(run(e, read).Verdict).NotTo(Equal(results.Pass))
		e.Profile.Tools["write_file"] = agents.Tool{Name: "write_file", Cannot: []string{"create"}}
		r := run(e, read)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})

	It("are asked by scenarios for no more than a profile can say, and for all of that", func() {
		all, err := acp.V1().Shipped()
		Expect(err).NotTo(HaveOccurred())
		asked := map[string]bool{}
		for _, s := range all {
			for _, need := range scenarios.NeedsTools(s) {
				if strings.Contains(need, ":") {
					asked[need] = true
				}
			}
			source, err := s.Source()
			Expect(err).NotTo(HaveOccurred())
			if bytes.Contains(source, []byte("files missing=needed")) {
				asked["write_file:create"] = true
			}
		}
		var can []string
		for _, t := range agents.NeutralTools() {
			for _, able := range t.Can {
				can = append(can, t.Name+":"+able)
			}
		}
		Expect(slices.Sorted(maps.Keys(asked))).To(ConsistOf(can))
	})
})
