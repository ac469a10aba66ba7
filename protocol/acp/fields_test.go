package acp_test

import (
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/scenarios"
)

var _ = Describe("what the page says of the members of messages", func() {
	for _, p := range []*scenarios.Protocol{acp.V1(), acp.V2()} {
		It("names a type for each, in "+p.Name, func() {
			f := acp.Fields(p)
			known := func(expression string) bool {
				name := regexp.MustCompile(`(\[\+?\]|\{\}|\|null)`).ReplaceAllString(expression, "")
				_, ok := f.Types[name]
				return ok || slices.Contains(strings.Fields("string boolean number object any"),
					strings.Split(name, ",")[0]) ||
					strings.HasPrefix(name, "whole number from") || strings.HasPrefix(name, "number from") ||
					strings.HasPrefix(name, "string but")
			}
			for method, types := range f.Calls {
				Expect(known(types[0])).To(BeTrue(), "%s has %v", method, types)
			}
			for name, t := range f.Types {
				d := t.(schema.Description)
				for _, part := range append(slices.Clone(d.Fields), d.Forms...) {
					Expect(known(part[1])).To(BeTrue(), "%s has %v", name, part)
				}
				Expect(d.Is != "" || len(d.Fields)+len(d.Forms)+len(d.Values) > 0 || d.By == "").To(BeTrue(), name)
			}
			Expect(f.Calls["session/prompt"]).To(Equal([]string{"PromptRequest", "PromptResponse"}))
		})
	}

	It("cites what the specification demands of a member and of a method", func() {
		f := acp.Fields(acp.V1())
		Expect(f.Types["PromptResponse"].(schema.Description).Fields).
			To(ContainElement([]string{"stopReason", "StopReason"}))
		Expect(f.Types["StopReason"].(schema.Description).Values).To(ContainElement("cancelled"))
		Expect(f.Types["ContentBlock"].(schema.Description).By).To(Equal("type"))
		Expect(f.Types["ReadTextFileRequest"].(schema.Description).Fields).
			To(ContainElement([]string{"line?", "uint32|null"}))
		said := func(key string) (ids []string) {
			for _, n := range f.Says[key] {
				ids = append(ids, f.Statements[n][0])
				Expect(f.Statements[n][3]).To(MatchRegexp(`^\S+#\S+ ".+"$`))
			}
			return ids
		}
		Expect(said("session/cancel")).To(ContainElement("CANCEL-001"))
		Expect(said("RequestId")).To(ContainElement("RPC-004"))
		Expect(said("sessionId")).NotTo(BeEmpty())
	})
})
