package fakellm_test

import (
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/sebdah/goldie/v2"

	"github.com/acp-test/acp-test/fakellm"
)

const everything = `
delay: {ttft: 0s..200us, per_chunk: 0s..20us}
replies:
  - - thinking: Let me see.
      chunks: 2
    - text: Hello world
      chunks: [Hello, " world"]
    - tool: write_file
      args: {path: /a, content: x}
      chunks: 2
    - tool: read_file
      args: {path: /b}
    - usage: {input: 3, output: 4, cached: 1, reasoning: 2}
`

var _ = Describe("the bytes of an answer", func() {
	for _, e := range endpoints {
		It("are these, whatever runs beside them and however often: "+e.name, func() {
			var first [2]string
			for range 5 {
				r := start(fakellm.Config{Script: script(everything), Seed: 1,
					Prompts: []fakellm.Prompt{{Index: 1, Text: "hi"}}})
				var all sync.WaitGroup
				bodies := make([][2]string, 40)
				for i := range bodies {
					all.Add(1)
					go func() {
						defer GinkgoRecover()
						defer all.Done()
						bodies[i] = [2]string{r.ask(e, true, "hi").body, r.ask(e, false, "hi").body}
					}()
				}
				all.Wait()
				for _, b := range bodies {
					if first[0] == "" {
						first = b
					}
					Expect(b).To(Equal(first))
				}
			}
			g := goldie.New(GinkgoTB(), goldie.WithFixtureDir("testdata"), goldie.WithTestNameForDir(false))
			g.Assert(GinkgoTB(), e.name+".stream", []byte(first[0]))
			g.Assert(GinkgoTB(), e.name+".whole", []byte(first[1]))
		})
	}

	It("have no usage if the script says none, where the format allows that", func() {
		for _, e := range endpoints {
			r := start(fakellm.Config{Script: script("replies:\n  - - text: Hello\n    - usage: none\n")})
			for _, stream := range []bool{true, false} {
				body := strings.ToLower(r.ask(e, stream, "hi").body)
				if e.name == "openai-chat" || e.name == "gemini" {
					Expect(body).NotTo(ContainSubstring(`"usage`), e.name)
				} else {
					Expect(body).To(ContainSubstring(`"output_tokens":0`), e.name)
				}
			}
		}
	})

	It("come no earlier than the script says", func() {
		r := serving("delay: {ttft: 10ms..30ms}\nreplies:\n  - - text: a\n    - pause: 5ms\n    - text: b\n")
		began := time.Now()
		Expect(r.ask(endpoints[0], true, "x").status).To(Equal(200))
		Expect(time.Since(began)).To(BeNumerically(">=", 15*time.Millisecond))
	})
})
