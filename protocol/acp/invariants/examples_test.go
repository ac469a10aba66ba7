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

// versions are the versions of the protocol that have rules, and the folder of their examples.
var versions = []struct {
	name    string
	set     *rules.Set
	dialect dialect
	folder  string
}{{"version 1", invariants.V1(), dialectV1(), "examples"}, {"version 2", invariants.V2(), dialectV2(), "v2/examples"}}

// unclear are parts of messages that a value is missing from, or that nobody reads at once.
const unclear = `%!|<nil>|  | ,|\b1 (tools|calls|requests|entries|turns|sessions)\b|\bis none[.,;]|\bnone is\b|` +
	`\bin place of\b|\bso often\b|\bbeside\b|\bof its own accord\b|\$[A-Z]+\b|\bwhat (it|they) (is|are)\b`

var _ = Describe("the examples of each rule", func() {
	for _, v := range versions {
		for _, rule := range v.set.Rules() {
			Describe(v.name+" "+rule.ID, func() {
				examples := v.set.Examples(rule.ID)
				for _, x := range examples {
					It(strings.TrimSpace(fmt.Sprint(x.Point, " ", x.Remark)), func() {
						config := rules.Config{}
						if x.Rule != "EMPTY-TURN" { // minimal transcripts have turns without content
							config.Off = map[string]string{"EMPTY-TURN": "minimal"}
						}
						found, checker, also := v.dialect.stage(v.set, x.Text, config)
						got := []string{}
						for _, f := range found {
							line := f.Rule + "/" + f.Point
							if f.Rule == x.Rule && f.Point == x.Point {
								Expect(f.Class).To(Equal(x.Class), f.Message)
							}
							got = append(got, line)
							Expect(f.Message).To(And(MatchRegexp(`^[^ ].*[^.][.]$`), Not(MatchRegexp(unclear))))
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
						if v.name == "version 2" {
							Expect(checker.Evidence()[x.Rule]).To(BeNumerically(">", 0))
						}
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
						found, _, _ := v.dialect.stage(v.set, x.Text,
							rules.Config{Off: map[string]string{rule.ID: "test"}})
						for _, f := range found {
							Expect(f.Rule).NotTo(Equal(rule.ID))
						}
					}
				})
			})
		}
		It("are for rules that exist in "+v.name, func() {
			files, err := filepath.Glob(v.folder + "/*")
			Expect(err).NotTo(HaveOccurred())
			Expect(files).To(HaveLen(len(v.set.Rules())))
			for _, f := range files {
				_, ok := v.set.Rule(strings.TrimSuffix(filepath.Base(f), ".txtar"))
				Expect(ok).To(BeTrue(), f)
			}
		})
	}
})
