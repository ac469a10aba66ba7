package second_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/invariants/notation"
	"github.com/acp-test/acp-test/protocol/acp/invariants/second"
	"github.com/acp-test/acp-test/rules"
)

// The examples of each rule, which help shows, are its tests: each of its points is found, with
// its class and nothing else, and there is one that passes.
func TestExamples(t *testing.T) {
	for _, rule := range second.Rules().Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			shown := map[string]bool{}
			for _, x := range second.Rules().Examples(rule.ID) {
				shown[x.Point] = true
				found, checker, also := notation.V2().Stage(second.Rules(), x.Text, rules.Config{Version: 2})
				got, want := []string{}, slices.Clone(also)
				for _, f := range found {
					got = append(got, f.Rule+"/"+f.Point)
					if f.Rule == x.Rule && f.Point == x.Point && f.Class != x.Class {
						t.Errorf("%s %s: class %s: %s", x.Class, x.Point, f.Class, f.Message)
					}
					if !strings.HasSuffix(f.Message, ".") || len(f.Entries) == 0 || f.Citation == "" {
						t.Errorf("%s: a finding without a sentence, its entries or a citation: %+v", x.Point, f)
					}
				}
				if x.Point != "" {
					want = append(want, x.Rule+"/"+x.Point)
				}
				slices.Sort(got)
				slices.Sort(want)
				if got = slices.Compact(got); !slices.Equal(got, want) {
					t.Errorf("%s %s: found %q, want %q\n%s", x.Point, x.Remark, got, want, messages(found))
				}
				if checker.Evidence()[rule.ID] == 0 {
					t.Errorf("%s %s: nothing was judged", x.Point, x.Remark)
				}
				off := rules.Config{Version: 2, Off: map[string]string{rule.ID: "test"}}
				for _, f := range first(notation.V2().Stage(second.Rules(), x.Text, off)) {
					if f.Rule == rule.ID {
						t.Errorf("%s is off, and finds %s", rule.ID, f.Message)
					}
				}
			}
			for _, p := range append([]rules.Point{{}}, rule.Points...) {
				if !shown[p.ID] {
					t.Errorf("there is no example of point %q", p.ID)
				}
			}
		})
	}
	files, err := filepath.Glob("examples/*")
	if err != nil || len(files) != len(second.Rules().Rules()) {
		t.Errorf("%d files for %d rules (%v)", len(files), len(second.Rules().Rules()), err)
	}
}

func first(found []rules.Finding, _ *rules.Checker, _ []string) []rules.Finding { return found }

func messages(found []rules.Finding) (text string) {
	for _, f := range found {
		text += fmt.Sprintf("  %s %s/%s %s %v\n", f.Class, f.Rule, f.Point, f.Message, f.Entries)
	}
	return text
}
