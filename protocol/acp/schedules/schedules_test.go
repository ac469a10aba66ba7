package schedules_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/sweep"
)

// TestMain lets this binary be the keeper and the reference agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "keeper":
			os.Exit(process.KeeperMain(os.Args[2:]))
		case "refagent":
			if err := refagent.Run(context.Background(),
				refagent.Options{In: os.Stdin, Out: os.Stdout, Log: os.Stderr, Getenv: os.Getenv}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

func TestSchedules(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "schedules")
}

var _ = Describe("the model's part", func() {
	It("says the same when it is written again, for every shipped scenario", func() {
		all, err := acp.V1().Shipped()
		Expect(err).NotTo(HaveOccurred())
		for _, s := range all {
			text, err := s.Source()
			Expect(err).NotTo(HaveOccurred())
			_, src, found := strings.Cut(string(text), "-- llm.yaml --\n")
			if !found {
				continue
			}
			src, _, _ = strings.Cut(src, "\n-- ")
			want, err := fakellm.ParseScript(s.ID, []byte(src), nil)
			Expect(err).NotTo(HaveOccurred(), s.ID)
			got, err := fakellm.ParseScript(s.ID, []byte(sweep.ReadModel(src).Format()), nil)
			Expect(err).NotTo(HaveOccurred(), "%s:\n%s", s.ID, sweep.ReadModel(src).Format())
			Expect(shape(got)).To(Equal(shape(want)), "%s:\n%s", s.ID, sweep.ReadModel(src).Format())
		}
	})

	It("is held before, between and behind all pieces", func() {
		held := schedules.Held("replies:\n  - - thinking: Well.\n    - text: abcd\n      chunks: 2\n" +
			"    - usage: {input: 1}\n  - - tool: read_file\n      args: {path: x}\n")
		Expect(held).To(HaveLen(6))
		for _, h := range held {
			s, err := fakellm.ParseScript("", []byte(h), nil)
			Expect(err).NotTo(HaveOccurred(), h)
			Expect(s.Gates()).To(Equal([]string{"hold"}), h)
		}
		Expect(held[2]).To(ContainSubstring("- text: \"ab\"\n    - gate: hold\n    - text: \"cd\"\n"))
		Expect(held[3]).To(ContainSubstring("- gate: hold\n    - usage"))
	})
})

// shape is a script without lines of the file, and with the gates' places.
func shape(s *fakellm.Script) []string {
	var out []string
	for _, t := range s.Turns {
		if len(t.Replies) > 0 {
			out = append(out, "turn")
		}
		for _, r := range t.Replies {
			out = append(out, "reply")
			for _, a := range append([]fakellm.Reply{r}, r.Alternatives...) {
				for _, st := range a.Steps {
					out = append(out, strings.Join(append([]string{string(rune('a' + int(st.Kind))), st.Tool, st.Gate},
						st.Chunks...), "|"))
				}
			}
		}
	}
	return out
}

var _ = Describe("the turns of a script", func() {
	It("are those into which the script itself does not act", func() {
		model := "\n-- llm.yaml --\nturns:\n  - - - text: One.\n  - - - gate: g\n      - text: Two.\n" +
			"  - - - text: Three.\n"
		lines, notes := schedules.Targets(acp.V1(),
			"prompt 'One'\nawait turn\ncheck a\nprompt 'Two'\nawait gate g\ncancel\nawait turn\nprompt 'Three'\n"+
				"saw agent_message\nawait turn"+model)
		Expect(lines).To(Equal([]int{1, 8}))
		Expect(notes).To(ConsistOf(ContainSubstring("line 4 is not swept: the script acts in it")))
	})

	It("are none while another one runs", func() {
		lines, notes := schedules.Targets(acp.V1(),
			"session new a\nsession new b\nprompt a 'One'\nawait gate g\nprompt b 'Two'\nawait turn session=b\n"+
				"release g\nawait turn session=a\n-- llm.yaml --\nturns:\n  - - - gate: g\n  - - - text: Two.\n")
		Expect(lines).To(BeEmpty())
		Expect(notes).To(ContainElement(ContainSubstring("another turn is open")))
	})

	It("are swept without what the script does in them, and without what it asks", func() {
		text, notes := schedules.Instead(acp.V1(),
			"# Two sessions, cancelled.\nneeds tool:run_shell\nneeds await permission\nterminal scripted hold\n"+
				"permit hold nth=1\npermit allow_once\n"+
				"session new a\nsession new b wait=no as B\nprompt a 'One' as P\nawait gate g\nboth {\n  cancel a\n"+
				"} {\n  prompt b 'Two'\n}\ncheck c\nawait turn cancelled session=a\nsession close a\nkill\nrestart\n"+
				"session load a as L\nprompt 'Three'\nawait turn\n"+
				"-- llm.yaml --\nturns:\n  - - - gate: g\n      - text: One.\n  - - - text: Two.\n"+
				"  - - - text: Three.\n")
		Expect(notes).To(BeEmpty())
		script, model, _ := strings.Cut(text, "-- llm.yaml --\n")
		Expect(script).To(Equal("# Two sessions, cancelled.\nneeds tool:run_shell\nterminal scripted\n" +
			"permit allow_once\nsession new a\nsession new b\n" +
			"prompt a 'One'\nawait turn any|error session=a\nprompt b 'Two'\nawait turn any|error session=b\n" +
			"restart\nsession load a\nprompt 'Three'\nawait turn any|error\n"))
		Expect(model).NotTo(ContainSubstring("gate"))
	})

	It("are all but a few of those of the shipped scenarios", func() {
		all, err := acp.V1().Shipped()
		Expect(err).NotTo(HaveOccurred())
		var left []string
		for _, s := range all {
			text, err := s.Source()
			Expect(err).NotTo(HaveOccurred())
			if s.Role != "agent" {
				_, notes := schedules.Instead(acp.V1(), string(text))
				for range notes {
					left = append(left, s.ID)
				}
			}
		}
		GinkgoWriter.Println(left)
		Expect(len(left)).To(BeNumerically("<", 41))
		Expect(left).NotTo(ContainElement(And(HavePrefix("cancel/"),
			Not(MatchRegexp("/(rate-limited|after-retry|while-retrying)$")))), "whose model fails")
	})
})
