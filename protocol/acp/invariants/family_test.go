package invariants_test

import (
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
)

// script is a recorded run that a test changes, line by line.
type script []string

// at is the first line that holds all the texts.
func (s script) at(texts ...string) int {
	GinkgoHelper()
	i := slices.IndexFunc(s, func(line string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
	Expect(i).To(BeNumerically(">=", 0), "no line holds %q", texts)
	return i
}

// move puts a line behind another one.
func (s script) move(from, behind int) script {
	out := slices.Delete(slices.Clone(s), from, from+1)
	if behind >= from {
		behind--
	}
	return slices.Insert(out, behind+1, s[from])
}

func (s script) insert(at int, frames ...string) script {
	var lines []string
	for _, frame := range frames {
		dir, body, _ := strings.Cut(frame, " ")
		lines = append(lines, `{"t":6200,"proc":1,"dir":"`+dir+`","frame":{"jsonrpc":"2.0",`+body+`}}`)
	}
	return slices.Insert(slices.Clone(s), at, lines...)
}

// fails are the points of class fail that a run breaks, each once.
func (s script) fails() (points []string) {
	GinkgoHelper()
	t, err := traceOf("changed", []byte(strings.Join(s, "\n")))
	Expect(err).NotTo(HaveOccurred())
	checker := invariants.V1().NewChecker(rules.Config{})
	t.Observe(checker.Observe)
	for _, f := range checker.Finish(rules.End{Clean: true}) {
		if f.Class == rules.Fail {
			points = append(points, f.Rule+"/"+f.Point)
		}
	}
	slices.Sort(points)
	return slices.Compact(points)
}

var _ = Describe("a legal run with a subagent", func() {
	data, err := os.ReadFile("testdata/traces/subagents/delegated.jsonl")
	if err != nil {
		panic(err)
	}
	legal := script(strings.Split(strings.TrimSpace(string(data)), "\n"))

	It("breaks nothing", func() { Expect(legal.fails()).To(BeEmpty()) })

	DescribeTable("fails with", func(change func(script) script, want string) {
		Expect(change(legal).fails()).To(Equal([]string{want}))
	},
		Entry("traffic of the child before its announcement", func(s script) script {
			return s.move(s.at("subagent_update"), s.at("agent_message_chunk", `"sessionId":"child-1"`))
		}, "SUBAGENT/early"),
		Entry("a message that names the child before its announcement", func(s script) script {
			return s.move(s.at("subagent_update"), s.at(`"sessionUpdate":"session_message"`, `"sessionId":"parent-1"`))
		}, "SUBAGENT/early"),
		Entry("updates that the client did not opt in to", func(s script) script {
			out := slices.Clone(s)
			out[0] = strings.Replace(out[0], `"subagents":{}`, "", 1)
			return out
		}, "CAP-GATE/subagents"),
		Entry("a second parent", func(s script) script {
			return s.insert(s.at("request_permission"),
				`c2a "id":90,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}`,
				`a2c "id":90,"result":{"sessionId":"other"}`,
				`a2c "method":"session/update","params":{"sessionId":"other",`+
					`"update":{"sessionUpdate":"subagent_update","sessionId":"child-1"}}`)
		}, "SUBAGENT/moved"),
		Entry("a child that is its own parent", func(s script) script {
			return s.insert(s.at("request_permission"),
				`a2c "method":"session/update","params":{"sessionId":"child-1",`+
					`"update":{"sessionUpdate":"subagent_update","sessionId":"child-1"}}`)
		}, "SUBAGENT/moved"),
		Entry("a permission of the child after the turn was cancelled", func(s script) script {
			ended := s.at(`"stopReason":"end_turn"`, `"id":4`)
			out := s.move(ended, s.at("request_permission")-1)
			at := out.at(`"id":4`, "stopReason")
			out[at] = strings.Replace(out[at], "end_turn", "cancelled", 1)
			return out[:out.at(`"outcome":"selected"`)+1].insert(at,
				`c2a "method":"session/cancel","params":{"sessionId":"parent-1"}`)
		}, "SUBAGENT/after-stop"),
		Entry("a permission that the client grants after it cancelled the parent", func(s script) script {
			return s.insert(s.at(`"outcome":"selected"`),
				`c2a "method":"session/cancel","params":{"sessionId":"parent-1"}`)
		}, "C-SUBAGENT/outcome"),
		Entry("a prompt to the child", func(s script) script {
			return s.insert(s.at("request_permission"),
				`c2a "id":91,"method":"session/prompt","params":{"sessionId":"child-1","prompt":[{"type":"text",`+
					`"text":"hi"}]}`,
				`a2c "id":91,"error":{"code":-32002,"message":"a child"}`)
		}, "C-SUBAGENT/request"),
		Entry("a cancel of a child that does not offer it", func(s script) script {
			out := slices.Clone(s)
			at := s.at("subagent_update")
			out[at] = strings.Replace(out[at], `"capabilities":{"cancel":{}},`, "", 1)
			return out.insert(s.at("request_permission"),
				`c2a "method":"session/cancel","params":{"sessionId":"child-1"}`)
		}, "C-SUBAGENT/cancel"),
	)
})
