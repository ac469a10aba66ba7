package fakellm_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/acp-test/acp-test/fakellm"
)

const schemaFile = "../docs/schema/llm-script.schema.json"

var good = []string{
	everything, gated, plain,
	"", "replies:\n", "turns: []\n", "lanes:\n",
	"turns:\n  - - - text: a\n  - prompt: b\n    replies:\n      - - text: c\n  - - any:\n" +
		"        - - when: {user!~: x, tools: true, model: 3}\n          - text: a\n      must: true\n",
	"lanes:\n  title: {when: {system~: \"title\"}, reply: [{text: \"A title\"}]}\n  no-tools: {main: true}\n" +
		"  schema: {reply: [{text: \"{}\"}]}\n  chat: {when: {system~: x}, main: true}\n",
	"replies:\n  - - must: true\n    - when: {body~: x}\n    - text: [a, b]\n    - refusal: no\n      repeat: 2\n" +
		"    - pause: 1ms..2ms\n    - delay: {ttft: 1, per_chunk: 0.5}\n    - tool: x\n      raw: [\"{\", \"}\"]\n",
	"replies:\n  - - fail: {status: 429, retry_after: 1, times: 1}\n  - - fail: {disconnect: mid-chunk}\n" +
		"  - - fail: {hang: true}\n  - - fail: {malformed: sse}\n  - - fail: {status: 500, after_chunks: 2}\n" +
		"  - - fail: {truncate: true}\n  - - fail: {slow: {bytes: 3, every: 10ms}, content_type: text/plain}\n" +
		"  - - fail: {body: x, headers: {a: b}}\n  - - fail: {comment: keep-alive}\n    - text: x\n",
	"models: [a, 1]\napi_key: k\nstrict: false\ndelay: {per_chunk: 10ms}\n",
}

var bad = []string{
	"replis: []\n", "turns: []\nreplies: []\n", "replies:\n  - text: hi\n", "replies:\n  - - txet: hi\n",
	"replies:\n  - - text: a\n      gate: b\n",
	"replies:\n  - - text: a\n      chunks: 0\n", "replies:\n  - - stop: never\n", "replies:\n  - - fail: {}\n",
	"replies:\n  - - fail: {status: 99}\n",
	"replies:\n  - - fail: {times: 1}\n", "replies:\n  - - when: {}\n", "replies:\n  - - when: {users: x}\n",
	"replies:\n  - - when: {tools~: x}\n", "replies:\n  - - when: {user!: x}\n",
	"lanes:\n  main: {when: {user: x}, reply: []}\n", "lanes:\n  x: {reply: []}\n", "lanes:\n  x: {when: {user: x}}\n",
	"lanes:\n  no-tools: {main: true, reply: []}\n",
	"replies:\n  - - tool: x\n      args: {}\n      raw: x\n", "replies:\n  - - tool: x\n      args_gate_at: 2\n",
	"replies:\n  - - tool: x\n      args: [1]\n",
	"delay: {ttft: soon}\n", "models: x\n", "replies:\n  - - must: 1\n", "replies:\n  - - usage: {input: -1}\n", "[]\n",
}

var _ = Describe("the JSON Schema of scripts", func() {
	var schema *jsonschema.Schema
	var raw map[string]any
	BeforeEach(func() {
		text, err := os.ReadFile(schemaFile)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(text, &raw)).To(Succeed())
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		Expect(err).NotTo(HaveOccurred())
		c := jsonschema.NewCompiler()
		Expect(c.AddResource("script.json", doc)).To(Succeed())
		schema, err = c.Compile("script.json")
		Expect(err).NotTo(HaveOccurred())
	})
	valid := func(src string) error {
		GinkgoHelper()
		asJSON, err := yaml.YAMLToJSON([]byte(src))
		Expect(err).NotTo(HaveOccurred())
		if len(bytes.TrimSpace(asJSON)) == 0 {
			asJSON = []byte("null")
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		Expect(err).NotTo(HaveOccurred())
		return schema.Validate(v)
	}
	It("takes what the parser takes, and nothing else", func() {
		conversation, err := os.ReadFile("testdata/conversation.yaml")
		Expect(err).NotTo(HaveOccurred())
		for _, src := range append(good, string(conversation)) {
			_, err := fakellm.ParseScript("llm.yaml", []byte(src), nil)
			Expect(err).NotTo(HaveOccurred(), "%s", src)
			Expect(valid(src)).To(Succeed(), "%s", src)
		}
		for _, src := range bad {
			_, err := fakellm.ParseScript("llm.yaml", []byte(src), nil)
			Expect(err).To(HaveOccurred(), "%s", src)
			Expect(valid(src)).NotTo(Succeed(), "%s", src)
		}
	})
	It("has the parser's keys", func() {
		for name, want := range fakellm.Keys() {
			at := raw
			if name != "" {
				at = raw["definitions"].(map[string]any)[name].(map[string]any)
			}
			var got []string
			for k := range at["properties"].(map[string]any) {
				got = append(got, k)
			}
			slices.Sort(got)
			Expect(got).To(Equal(want), name)
		}
	})
})
