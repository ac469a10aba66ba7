package scenarios_test

import (
	"mime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("an attachment", func() {
	// attached is the second block of the prompt of a script.
	attached := func(name, section, content string) string {
		e := engine()
		r := run(e, "check a\nprompt 'Look.' attach="+name+"\nawait turn end_turn\n-- "+section+" --\n"+content+"\n")
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		for x := range transcriptOf(e, r).All() {
			if x.Method == "session/prompt" {
				return string(x.JSON().Path("params.prompt.1").Raw())
			}
		}
		return ""
	}

	DescribeTable("has the type that its extension has everywhere",
		func(name, fields string) {
			Expect(mime.AddExtensionType(".wav", "audio/x-wav")).To(Succeed())
			Expect(mime.AddExtensionType(".txt", "text/x-machine")).To(Succeed())
			Expect(mime.AddExtensionType(".dot", "image/x-machine")).To(Succeed())
			Expect(attached(name, name+".base64", "AAEC")).To(ContainSubstring(fields))
		},
		Entry("a picture", "a.PNG", `"type":"image"`),
		Entry("a sound", "a.wav", `"data":"AAEC","mimeType":"audio/wav","type":"audio"`),
		Entry("a text", "a.txt", `"mimeType":"text/plain"`),
		Entry("one that only this machine knows", "a.dot", `"type":"resource"`),
	)

	It("must be in the workspace", func() {
		r := run(engine(), "check a\nprompt 'Look.' attach=a.png\nawait turn\n")
		Expect(r.Verdict).To(Equal(results.Error))
		Expect(r.Reason).To(HaveSuffix(`:2: the workspace holds no file "a.png" to attach: add it below as -- a.png ` +
			`--, or write it first`))
	})

	It("is the text of the archive's file as it stands, or decoded", func() {
		Expect(attached("a.txt", "a.txt", "AAEC")).To(ContainSubstring(`"text":"AAEC\n"`))
		Expect(attached("a.txt", "a.txt.base64", "SGVs\nbG8=")).To(ContainSubstring(`"text":"Hello"`))
	})
})
