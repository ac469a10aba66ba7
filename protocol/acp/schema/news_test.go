package schema_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/schema"
)

// promoted reports whether the news say that a part of the tables is stable though the pinned
// schema calls it unstable, or does not have it.
func promoted(v *schema.Version, part string) bool {
	f := schema.LatestNews().Touching(protocolOf(v), part)
	return f != nil && f.State == "stable"
}

// promoted reports whether the form is a variant of a union that the news call stable.
func (f form) promoted(v *schema.Version, union string) bool {
	for _, node := range f.props {
		if tag, ok := node["const"].(string); ok && promoted(v, union+"="+tag) {
			return true
		}
	}
	return false
}

func protocolOf(v *schema.Version) string { return fmt.Sprint("acp-v", v.Number()) }

// keysOf are the keys and tags that a schema has of a type.
func (s *official) keysOf(name string) map[string]bool {
	all := map[string]bool{}
	if def, ok := s.defs[name]; ok {
		for _, f := range s.forms(def) {
			for prop, node := range f.props {
				all["."+prop] = true
				if tag, ok := node["const"].(string); ok {
					all["="+tag] = true
				}
			}
		}
		for _, key := range []string{"oneOf", "anyOf"} {
			for _, part := range sequence(def[key]) {
				if value, ok := part.(map[string]any)["const"].(string); ok {
					all["="+value] = true
				}
			}
		}
	}
	return all
}

var _ = Describe("the news", func() {
	news := schema.LatestNews()

	It("name a state for each protocol, and a known state of each feature", func() {
		Expect(news.Protocols).To(HaveLen(2))
		for _, f := range news.Features {
			Expect([]string{"stable", "unstable", "withdrawn"}).To(ContainElement(f.State), f.Name)
			Expect(f.Date).To(MatchRegexp(`^(2026-\d\d-\d\d|\?)$`), f.Name)
			Expect([]string{f.Name, f.Since}).NotTo(ContainElement(""), f.Name)
			Expect(f.Touches).NotTo(BeEmpty(), f.Name)
		}
	})

	for _, v := range []*schema.Version{schema.V1(), schema.V2()} {
		It("have an entry for all that the tables of "+protocolOf(v)+" have beyond the pinned schema", func() {
			pinned := loadSchema(v.Number(), "schema.unstable.json")
			methods := map[string]bool{}
			for _, def := range pinned.defs {
				if name, ok := def["x-method"].(string); ok {
					methods[name] = true
				}
			}
			need := func(part string) {
				Expect(news.Touching(protocolOf(v), part)).NotTo(BeNil(), "news.yaml has no entry for %s", part)
			}
			for _, m := range v.Methods() {
				if !methods[m.Name] && !strings.HasPrefix(m.Name, "mcp/") && !strings.HasPrefix(m.Name, "proxy/") {
					need(m.Name)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(pinned.defs)) {
				known := pinned.keysOf(name)
				stable, unstable := v.Fields(name)
				for _, key := range append(stable, unstable...) {
					if !known["."+key] && ownKeys[name+"."+key] == "" {
						need(name + "." + key)
					}
				}
				if name == "SessionUpdate" || name == "ToolCallContent" || name == "ContentBlock" ||
					name == "BackgroundWork" {
					for _, variant := range v.Variants(name) {
						if !known["="+variant.Tag] {
							need(name + "=" + variant.Tag)
						}
					}
				}
			}
		})
		It("touch parts that the tables of "+protocolOf(v)+" have", func() {
			for _, f := range news.Features {
				if !slices.Contains(f.Protocols, protocolOf(v)) {
					continue
				}
				found := false
				for _, part := range f.Touches {
					found = found || v.Has(part)
					Expect(v.Has(part) || len(f.Protocols) > 1).To(BeTrue(), "%s has no %s", protocolOf(v), part)
				}
				Expect(found).To(BeTrue(), "%s touches nothing of %s", f.Name, protocolOf(v))
			}
		})
	}
})
