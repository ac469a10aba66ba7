package main

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios"
)

var _ = Describe("the order in which a budget is spent", func() {
	It("is what failed, what finds most for its time, and the others by turns", func() {
		list := []*scenarios.Scenario{{ID: "mine/new"}, {ID: "mine/yesterday"}, {ID: "mine/last-week"},
			{ID: "cancel/idle"},
			{ID: "mine/failed"}}
		now := time.Now()
		past := history{ran: map[string]lastRun{"mine/yesterday": {At: now.AddDate(0, 0, -1), Took: time.Second},
			"mine/last-week": {At: now.AddDate(0, 0, -7), Took: time.Second}}}
		Expect(finders("acp-v1")["cancel/idle"]).NotTo(BeEmpty(), "it finds faults")
		Expect(past.order(list, map[string]bool{"mine/failed": true}, "acp-v1", "")).To(Equal(
			[]string{"mine/failed", "cancel/idle", "mine/new", "mine/last-week", "mine/yesterday"}))
	})

	It("takes what is quicker of two that find the same, and of each kind one finder", func() {
		var twins []string
		finds := finders("acp-v1")
		for id, kinds := range finds {
			for other, same := range finds {
				if id < other && len(kinds) == 1 && len(same) == 1 && kinds[0] == same[0] {
					twins = []string{id, other}
				}
			}
		}
		Expect(twins).To(HaveLen(2), "two scenarios find one fault alone, and the same")
		past := history{ran: map[string]lastRun{twins[0]: {Took: 2 * time.Second},
			twins[1]: {Took: time.Second, At: time.Now()}}}
		list := []*scenarios.Scenario{{ID: twins[0]}, {ID: "mine/new"}, {ID: twins[1]}}
		order := past.order(list, nil, "acp-v1", "a commit")
		Expect(order[0]).To(Equal(twins[1]))
		Expect(past.order(list, nil, "acp-v1", "a commit")).To(Equal(order), "one commit has one order")
	})
})
