package sweep_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

var _ = Describe("the order of schedules", func() {
	It("reaches each kind of situation before any again, and each with another action", func() {
		var all []sweep.Schedule
		for _, state := range []string{"a", "b", "c"} {
			for i := range 5 {
				for rank, action := range []string{"cancel", "load", "close"} {
					all = append(all, sweep.Schedule{Scenario: fmt.Sprint(i), State: state, Action: action, Rank: rank})
				}
			}
		}
		got := sweep.Arranged(all, 1)
		Expect(got).To(ConsistOf(all))
		for round := range 3 {
			states, actions := map[string]bool{}, map[string]bool{}
			for _, s := range got[3*round : 3*round+3] {
				states[s.State], actions[s.Action] = true, true
			}
			Expect(states).To(HaveLen(3), "round %d", round)
			Expect(len(actions)).To(BeNumerically(">=", 2), "round %d", round)
		}
		pairs := map[string]bool{}
		for _, s := range got[:9] {
			pairs[s.State+s.Action] = true
		}
		Expect(pairs).To(HaveLen(9), "no pair comes twice before each has come once")
	})

	It("tries an action of one situation before those of many come again", func() {
		all := []sweep.Schedule{{Scenario: "s", State: "a", Action: "kill", Rank: 9}}
		for _, state := range []string{"a", "b", "c"} {
			for i := range 5 {
				all = append(all, sweep.Schedule{Scenario: fmt.Sprint(i), State: state, Action: "cancel"})
			}
		}
		Expect(sweep.Arranged(all, 1)[:4]).To(ContainElement(HaveField("Action", "kill")))
	})

	It("acts in the turn with the most kinds of entries first", func() {
		var all []sweep.Schedule
		for i := range 8 {
			all = append(all, sweep.Schedule{Scenario: fmt.Sprint(i), State: "a", Action: "cancel", Kinds: i})
		}
		for seed := range 5 {
			Expect(sweep.Arranged(all, int64(seed))[0].Kinds).To(Equal(7))
		}
	})
})

var _ = Describe("schedules of version 2", func() {
	It("run once where they only differ in what they are called", func() {
		e := engine("")
		e.Protocol = acp.V2()
		var err error
		e.Profile, err = agents.Shipped("reference-acp-v2")
		Expect(err).NotTo(HaveOccurred())
		all, err := acp.V2().Shipped()
		Expect(err).NotTo(HaveOccurred())
		one := all[slices.IndexFunc(all,
			func(s *scenarios.Scenario) bool { return s.ID == "permission/two-in-one-reply" })]
		list, err := sweep.Drawn(context.Background(),
			&sweep.Sweeper{Planner: schedules.V2(), Engine: e, Points: []string{"permission*"}}, one)
		Expect(err).NotTo(HaveOccurred())
		seen := map[string]string{}
		for _, s := range list {
			a, _ := s.Write(nil)
			a.Lines = slices.DeleteFunc(a.Lines, func(l *script.Line) bool { return l.Kind == script.Comment })
			Expect(seen).NotTo(HaveKey(string(a.Text())), s.Point+", "+s.Action)
			seen[string(a.Text())] = s.Point
		}
		Expect(len(seen)).To(BeNumerically(">", 20))
	})
})

var _ = Describe("findings", func() {
	seen := func(id, rule, point, message, state, action string) sweep.Sighting {
		return sweep.Sighting{ID: id, Rule: rule, Point: point, Message: message, State: state, Action: action,
			Class: results.Fail}
	}

	It("are one where one point of a rule is broken, wherever that is", func() {
		got := sweep.Clusters(
			seen("1", "R", "p", `The turn "s-1" at #12 failed.`, "at once", "cancel"),
			seen("2", "R", "p", `The turn "s-2" at #7 failed.`, "idle", "cancel twice"),
			seen("3", "R", "other", "The turn never ended.", "idle", "cancel"))
		Expect(got).To(HaveLen(2))
		Expect(got[0].Seen).To(Equal(2))
		Expect(got[0].First).To(Equal(1))
		Expect(got[0].Elsewhere).To(Equal([]string{"cancel twice, idle"}))
	})

	It("are two where a check fails after acts of two kinds", func() {
		Expect(sweep.Clusters(seen("1", "works-again", "", "no end", "idle", "cancel"),
			seen("2", "works-again", "", "no end", "idle", "load"))).To(HaveLen(2))
	})

	It("take in what only shows where they do, and nothing else", func() {
		got := sweep.Clusters(
			seen("1", "R", "p", "broken", "idle", "cancel"), seen("2", "R", "p", "broken", "idle", "load"),
			seen("1", "ends", "", "expected an end", "idle", "cancel"),
			seen("2", "again", "", "expected more", "idle", "load"),
			seen("3", "again", "", "expected more", "idle", "load"))
		Expect(got).To(HaveLen(2))
		Expect(got[0].Rule).To(Equal("R"))
		Expect(got[0].With).To(Equal([]string{"ends"}))
		Expect(got[1].Rule).To(Equal("again"))
	})

	It("take in checks that miss something after a known failure, but no rule and nothing before it", func() {
		known := func(id string) sweep.Sighting {
			g := seen(id, "R", "p", "broken", "idle", "cancel")
			g.Known, g.At = "a reason", 20
			return g
		}
		after, before := seen("1", "ends", "", "expected an end", "idle", "cancel"),
			seen("1", "begins", "", "expected a begin", "idle", "cancel")
		after.At, before.At = 30, 10
		got := sweep.Clusters(known("1"), known("2"), after, before, seen("2", "S", "p", "broken", "idle", "cancel"))
		Expect(got[0].With).To(Equal([]string{"ends"}))
		Expect([]string{got[0].Rule, got[1].Rule, got[2].Rule}).To(ConsistOf("R", "S", "begins"))
	})
})

var _ = Describe("what bounds a sweep", func() {
	It("is the time, but for what runs when it is up", func() {
		const budget = 2 * time.Second
		began := time.Now()
		var explored time.Time
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Budget: budget}
		w.Progress = func(p sweep.Progress) {
			if p.Phase == "explore" && explored.IsZero() {
				explored = time.Now() // the baselines do not count
			}
		}
		out := swept(w, ordinary...)
		Expect(out.Run.Sweep.Explored).To(BeNumerically(">", 0))
		Expect(out.Run.Sweep.PairsTried).To(And(BeNumerically(">", 0), BeNumerically("<", out.Run.Sweep.Pairs)))
		GinkgoWriter.Println("took", time.Since(began), "with the baselines, and from the first schedule on",
			time.Since(explored))
	})

	It("is their number, which counts what differs", func() {
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Max: 12}, "prompt-turn/text")
		Expect(out.Run.Sweep.Explored).To(Equal(12))
	})

	It("says why there is nothing to sweep", func() {
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Points: []string{"no such point"}},
			"prompt-turn/text")
		Expect(out.Run.Notes).To(ContainElement(HavePrefix("nothing to sweep: no point with a possible action " +
			"matches --points")))
		Expect(out.Run.Exit).To(Equal(2))

		out = swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine("")}, "initialize/bare")
		Expect(out.Run.Notes).To(ContainElement(HavePrefix("nothing to sweep: none of the scenarios has a turn")))
	})

	It("leaves out what cannot be played, with a note, and fails for none of it", func() {
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Max: 3, Actions: []string{"cancel"}}
		out, err := w.Run(context.Background(), []*scenarios.Scenario{scenario("prompt-turn/text")})
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Run.Exit).To(Equal(0))
		note, verdict := sweep.Unplayable()
		Expect(note).To(Equal("sweep/s/1/p/a cannot be played: there is no such word"))
		Expect(verdict).To(Equal(results.Skip))
	})
})
