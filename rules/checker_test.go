package rules_test

import (
	"testing"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// late reports at the end, in an order of its own, as one that walks a map does.
type late struct{ watch *rules.Watch }

func (late) Observe(transcript.Entry) {}

func (l late) Finish(rules.End) {
	for _, seq := range []int{3, 1, 2} {
		l.watch.Report("loud", 0, "", string(rune('a'+seq)), []int{seq}, "The agent shouts.")
	}
}

func TestFindingsOfTheEndAreInTheOrderOfTheirEntries(t *testing.T) {
	set, err := rules.New(rules.Definition{Rules: []rules.Rule{shout},
		Watch: func(c *rules.Checker) rules.Observer { return late{c.Watch(shout)} }})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range set.NewChecker(rules.Config{}).Finish(rules.End{}) {
		if f.Entries[0] != i+1 {
			t.Errorf("finding %d is about entry %d", i, f.Entries[0])
		}
	}
}
