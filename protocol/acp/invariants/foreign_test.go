package invariants_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/rules"
)

// foreign are values that nobody expects in a place.
var foreign = []any{nil, 7, "x", true, []any{}, map[string]any{}, block, []any{block},
	[]any{[]any{7}}, -1e300}

var _ = Describe("a value that nobody expects", func() {
	for _, v := range versions {
		It("leaves the rules standing, in whatever an agent says: "+v.name, func() {
			n := 0
			for _, rule := range v.set.Rules() {
				for _, x := range v.set.Examples(rule.ID) {
					lines := strings.Split(x.Text, "\n")
					for i, line := range lines {
						at := strings.Index(line, "{")
						if !strings.HasPrefix(line, "<--") || at < 0 {
							continue
						}
						for _, changed := range withForeign(line[at:], n) {
							n++
							text := slices.Clone(lines)
							text[i] = line[:at] + changed
							found, _, _ := v.dialect.stage(v.set, strings.Join(text, "\n"), rules.Config{})
							for _, f := range found {
								Expect(f.Entries).NotTo(BeEmpty(), strings.Join(text, "\n"))
							}
						}
					}
				}
			}
			Expect(n).To(BeNumerically(">", 1000))
		})
	}
})

// block is a content block that stands alone.
var block = map[string]any{"type": "text", "text": "said"}

// withForeign are copies of an object with a foreign value in one place, each place in turn, and one with content
// that is a bare block. Which value it is goes around, beginning with the n-th.
func withForeign(object string, n int) (all []string) {
	var root map[string]any
	if json.Unmarshal([]byte(object), &root) != nil {
		return nil
	}
	var visit func(at any)
	put := func(old any, set func(any)) {
		set(foreign[(n+len(all))%len(foreign)])
		text, err := json.Marshal(root)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, string(text))
		set(old)
		visit(old)
	}
	visit = func(at any) {
		switch at := at.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(at)) {
				put(at[key], func(x any) { at[key] = x })
			}
		case []any:
			for i, old := range at {
				put(old, func(x any) { at[i] = x })
			}
		}
	}
	visit(root)
	root["content"] = block
	text, err := json.Marshal(root)
	Expect(err).NotTo(HaveOccurred())
	return append(all, string(text))
}
