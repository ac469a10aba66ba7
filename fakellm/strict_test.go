package fakellm_test

import (
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

// messages are the forms of a message by wire format; $ is the id of the call.
var messages = map[string]map[string]string{
	fakellm.OpenAIChat: {
		"user": `{"role":"user","content":"x"}`,
		"call": `{"role":"assistant","content":null,"tool_calls":[{"id":"$","type":"function",` +
			`"function":{"name":"f","arguments":"{}"}}]}`,
		"result": `{"role":"tool","tool_call_id":"$","content":"x"}`,
	},
	fakellm.OpenAIResponses: {
		"user":   `{"role":"user","content":"x"}`,
		"call":   `{"type":"function_call","call_id":"$","name":"f","arguments":"{}"}`,
		"result": `{"type":"function_call_output","call_id":"$","output":"x"}`,
	},
	fakellm.Anthropic: {
		"user":   `{"role":"user","content":"x"}`,
		"call":   `{"role":"assistant","content":[{"type":"tool_use","id":"$","name":"f","input":{}}]}`,
		"result": `{"role":"user","content":[{"type":"tool_result","tool_use_id":"$","content":"x"}]}`,
	},
	fakellm.Gemini: {
		"user":   `{"role":"user","parts":[{"text":"x"}]}`,
		"call":   `{"role":"model","parts":[{"functionCall":{"id":"$","name":"f","args":{}}}]}`,
		"result": `{"role":"user","parts":[{"functionResponse":{"id":"$","name":"f","response":{}}}]}`,
	},
}

var _ = Describe("a conversation that the real API refuses", func() {
	const turn = "[[{text: fine}], [{text: fine}], [{text: fine}]]"
	const says = "turns: [" + turn + ", " + turn + ", " + turn + "]\n"
	body := func(e endpoint, conversation, more string) string {
		whole := strings.Replace(e.body(false, "MESSAGES"), "{", "{"+more, 1)
		start := strings.Index(whole, `[{"role"`)
		end := strings.LastIndex(whole, "]")
		return whole[:start] + "[" + conversation + whole[end:]
	}
	ask := func(e endpoint, src, conversation, more string) answer {
		return post(e.url(serving(src).URL(), false), body(e, conversation, more))
	}
	all, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		panic(err)
	}
	line := regexp.MustCompile(`(?m)^([a-z-]+)  +(.+?)  *(\{.*)$`)
	word := regexp.MustCompile(`\{(user|call|result)(?: (\w+))?\}`)
	for _, e := range endpoints {
		for _, m := range line.FindAllStringSubmatch(string(all), -1) {
			if m[1] != e.name {
				continue
			}
			conversation := word.ReplaceAllStringFunc(m[3], func(s string) string {
				w := word.FindStringSubmatch(s)
				return strings.ReplaceAll(messages[e.name][w[1]], "$", w[2])
			})
			conversation = strings.ReplaceAll(conversation, "} {", "},{")
			It(e.name+" "+m[2]+" "+m[3], func() {
				got := ask(e, says, conversation, "")
				if m[2] == "-" {
					Expect(got.status).To(Equal(200), got.body)
					return
				}
				Expect(got.status).To(Equal(400), got.body)
				Expect(strings.ReplaceAll(got.body, `\"`, `"`)).To(ContainSubstring(m[2]))
				Expect(ask(e, "strict: false\n"+says, conversation, "").body).NotTo(ContainSubstring(m[2]))
			})
		}
	}

	DescribeTable("has tools that the API does not take", func(wire, tools, why string) {
		for _, e := range endpoints {
			if e.name == wire {
				got := ask(e, says, messages[wire]["user"], `"tools":[`+tools+`],`)
				Expect(got.status).To(Equal(400), got.body)
				Expect(got.body).To(ContainSubstring(why))
			}
		}
	},
		Entry("a name with a dot", fakellm.OpenAIChat, `{"type":"function","function":{"name":"a.b"}}`,
			"does not match"),
		Entry("one name twice", fakellm.Anthropic, `{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}`,
			"another tool"),
		Entry("a schema that is none", fakellm.Anthropic, `{"name":"a","input_schema":[]}`, "not an object"),
		Entry("alternatives at the top", fakellm.Anthropic, `{"name":"a","input_schema":{"oneOf":[]}}`, "at its top"),
	)

	It("says in the log what it refuses", func() {
		r := serving(says)
		post(r.URL()+"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant"}]}`)
		Expect(r.field("model-done", "refused")).To(Equal("true"))
		Expect(r.field("model-done", "why")).
			To(Equal("messages.[1]: an assistant message must have content or tool_calls"))
	})

	It("may go on from a stored answer with the result of its call", func() {
		r := serving("replies: [[{tool: f, raw: '{}'}], [{text: fine}]]\n")
		first := post(r.URL()+"/v1/responses", `{"model":"m","input":"x"}`)
		id := regexp.MustCompile(`"id":"(resp_[^"]+)"`).FindStringSubmatch(first.body)[1]
		call := regexp.MustCompile(`"call_id":"([^"]+)"`).FindStringSubmatch(first.body)[1]
		next := func(input string) int {
			return post(r.URL()+"/v1/responses", `{"model":"m","previous_response_id":"`+id+`","input":[`+input+`]}`).
				status
		}
		Expect(next(`{"type":"function_call_output","call_id":"` + call + `","output":"x"}`)).To(Equal(200))
		Expect(next(`{"role":"user","content":"y"}`)).To(Equal(400))
	})
})
