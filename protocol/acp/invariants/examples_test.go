package invariants_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
)

var _ = Describe("the examples of each rule", func() {
	for _, rule := range invariants.V1().Rules() {
		Describe(rule.ID, func() {
			examples := invariants.V1().Examples(rule.ID)
			for _, x := range examples {
				name := strings.TrimSpace(fmt.Sprint(x.Point, " ", x.Remark))
				It(name, func() {
					config := rules.Config{}
					if x.Rule != "EMPTY-TURN" { // minimal transcripts have turns without content
						config.Off = map[string]string{"EMPTY-TURN": "minimal"}
					}
					found, checker, also := stage(x.Text, config)
					got := []string{}
					for _, f := range found {
						line := f.Rule + "/" + f.Point
						if f.Rule == x.Rule && f.Point == x.Point {
							Expect(f.Class).To(Equal(x.Class), f.Message)
						}
						got = append(got, line)
						Expect(f.Message).To(MatchRegexp(`^.+[.]$`))
						Expect(f.Entries).NotTo(BeEmpty())
						Expect(f.Citation).NotTo(BeEmpty(), line)
					}
					want := slices.Clone(also)
					if x.Point != "" {
						want = append(want, x.Rule+"/"+x.Point)
					}
					slices.Sort(got)
					slices.Sort(want)
					Expect(slices.Compact(got)).To(ConsistOf(want), "%+v", found)
					Expect(checker.Evidence()).To(HaveKey(x.Rule))
				})
			}
			It("has an example for each point, and one that passes", func() {
				passes := 0
				points := map[string]bool{}
				for _, x := range examples {
					if x.Point == "" {
						passes++
					}
					points[x.Point] = true
				}
				Expect(passes).To(BeNumerically(">", 0))
				for _, p := range rule.Points {
					Expect(points).To(HaveKey(p.ID))
				}
			})
			It("is silent when it is off", func() {
				for _, x := range examples {
					found, _, _ := stage(x.Text, rules.Config{Off: map[string]string{rule.ID: "test"}})
					for _, f := range found {
						Expect(f.Rule).NotTo(Equal(rule.ID))
					}
				}
			})
		})
	}

	It("are for rules that exist", func() {
		files, err := filepath.Glob("examples/*")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).NotTo(BeEmpty())
		for _, f := range files {
			_, ok := invariants.V1().Rule(strings.TrimSuffix(filepath.Base(f), ".txtar"))
			Expect(ok).To(BeTrue(), f)
		}
	})
})
