package mockclient_test

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/internal/form"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/wire"
)

const questions = `{"type":"object","required":["name","age","when","tags","yes"],"properties":{` +
	`"name":{"type":"string","minLength":2,"maxLength":5},"age":{"type":"integer","minimum":1.5,"maximum":9},` +
	`"when":{"type":"string","format":"date"},"color":{"type":"string","oneOf":[{"const":"red","title":"Red"}],` +
	`"default":"red"},` +
	`"tags":{"type":"array","minItems":2,"items":{"type":"string","enum":["a","b"]}},"yes":{"type":"boolean"},` +
	`"odd":{"type":"_x"}}}`

var _ = Describe("elicitation", func() {
	elicit := func(p *mockclient.Elicitation, caps []string, params string) (string, *mockclient.Editor) {
		GinkgoHelper()
		c := mockclient.DefaultCapabilities()
		for _, name := range caps {
			c.Set(name, map[string]any{})
		}
		got := make(chan string, 1)
		e := edit(mockclient.Options{Capabilities: c, Elicitation: p}, func(p *peer) {
			p.handshake()
			v := p.ask(1, "elicitation/create", params).v
			if code := v.Path("error.code"); code.Exists() {
				got <- code.Text()
				return
			}
			got <- string(v.Get("result").Raw())
		})
		open(e, GinkgoT().TempDir())
		var answer string
		Eventually(got).Should(Receive(&answer))
		return answer, e
	}
	always := func(a mockclient.ElicitAnswer) *mockclient.Elicitation {
		return &mockclient.Elicitation{Rules: []mockclient.ElicitRule{{Answer: a}}}
	}
	params := fmt.Sprintf(`{"sessionId":"s","mode":"form","message":"Who?","requestedSchema":%s}`, questions)
	url := `{"sessionId":"s","mode":"url","message":"Log in","elicitationId":"e","url":"https://example.com"}`
	both := []string{"elicitation.form", "elicitation.url"}

	It("is declined by default, and that is noted", func() {
		got, e := elicit(nil, both, params)
		Expect(got).To(Equal(`{"action":"decline"}`))
		Expect(codes(e.Transcript())).To(Equal([]string{"elicitation-default"}))
	})
	DescribeTable("refuses a mode that is not advertised", func(caps []string, params, want string) { // ELICIT-016
		got, _ := elicit(nil, caps, params)
		Expect(got).To(Equal(want))
	},
		Entry("nothing", nil, params, "-32601"),
		Entry("the parent alone", []string{"elicitation"}, params, "-32602"),
		Entry("another mode", []string{"elicitation.url"}, params, "-32602"),
		Entry("an unknown mode", both, `{"mode":"_x","message":"m"}`, "-32602"),
		Entry("no mode", both, `{"message":"m"}`, "-32602"),
		Entry("no schema", both, `{"mode":"form","message":"m"}`, "-32602"),
		Entry("no message", both, `{"mode":"url"}`, "-32602"),
	)
	It("accepts with values that fit", func() { // ELICIT-017
		got, e := elicit(always(mockclient.ElicitAnswer{Accept: true}), both, params)
		Expect(got).To(MatchJSON(`{"action":"accept","content":{"name":"xx","age":2,"when":"2000-01-01",` +
			`"color":"red","tags":["a","b"],"yes":false}}`))
		Expect(codes(e.Transcript())).To(BeEmpty())
	})
	It("accepts with given values and notes what does not fit", func() {
		got, e := elicit(always(mockclient.ElicitAnswer{Accept: true, Content: map[string]any{"name": "x"}}), both,
			params)
		Expect(got).To(MatchJSON(`{"action":"accept","content":{"name":"x"}}`))
		Expect(codes(e.Transcript())).To(Equal([]string{"elicitation-content"}))
	})
	It("accepts a url without content, cancels, fails and holds", func() {
		got, _ := elicit(always(mockclient.ElicitAnswer{Accept: true}), both, url)
		Expect(got).To(Equal(`{"action":"accept"}`))
		got, _ = elicit(always(mockclient.ElicitAnswer{Cancel: true}), both, url)
		Expect(got).To(Equal(`{"action":"cancel"}`))
		got, _ = elicit(always(mockclient.ElicitAnswer{Error: &mockclient.RPCError{Code: -32603}}), both, url)
		Expect(got).To(Equal("-32603"))
		rules := &mockclient.Elicitation{Rules: []mockclient.ElicitRule{{Mode: "form",
			Answer: mockclient.ElicitAnswer{Cancel: true}},
			{Message: "Log*", Nth: 1, Answer: mockclient.ElicitAnswer{Accept: true}}}}
		got, _ = elicit(rules, both, url)
		Expect(got).To(Equal(`{"action":"accept"}`))
	})
	DescribeTable("checks values", func(name, value string, want bool) {
		schema, err := wire.Parse([]byte(questions))
		Expect(err).NotTo(HaveOccurred())
		values := form.Fill(schema)
		Expect(form.Check(schema, values)).To(BeEmpty())
		values[name] = json.RawMessage(value)
		Expect(form.Check(schema, values)).To(HaveLen(map[bool]int{true: 0, false: 1}[want]))
	},
		Entry(nil, "name", `"é€"`, true), Entry(nil, "name", `"x"`, false), Entry(nil, "name", `"xxxxxx"`, false),
		Entry(nil, "name", `1`, false),
		Entry(nil, "age", `9`, true), Entry(nil, "age", `9.5`, false), Entry(nil, "age", `10`, false),
		Entry(nil, "age", `1`, false), Entry(nil, "age", `"2"`, false),
		Entry(nil, "when", `"2024-02-30"`, false), Entry(nil, "color", `"blue"`, false),
		Entry(nil, "tags", `["a","c"]`, false), Entry(nil, "tags", `["a"]`, false), Entry(nil, "tags", `"a"`, false),
		Entry(nil, "yes", `1`, false), Entry(nil, "odd", `{"x":1}`, true), Entry(nil, "unknown", `1`, false),
	)
})
