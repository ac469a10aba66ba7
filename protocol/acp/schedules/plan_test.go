package schedules_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/ci/inside"
	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// ordinary are scenarios of each kind of point.
var ordinary = []string{"permission/allow-once-edit", "prompt-turn/two-turns", "tool-calls/execute", "terminal/output",
	"prompt-turn/many-chunks"}

// observed are scenarios after a run with the reference agent.
type observed struct {
	bases []*sweep.Script
}

func observe(list ...*scenarios.Scenario) observed {
	return observeIn(acp.V1(), schedules.V1(), "reference", list...)
}

func observeIn(of *scenarios.Protocol, planner *sweep.Planner, agent string, list ...*scenarios.Scenario) (o observed) {
	profile, err := agents.Shipped(agent)
	Expect(err).NotTo(HaveOccurred())
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	e := &scenarios.Engine{Protocol: of, Profile: profile, Self: self, Cwd: GinkgoT().TempDir(), Host: os.Environ(),
		Out: GinkgoT().TempDir(), Temp: GinkgoT().TempDir(), Seed: 1, Connect: inside.Connect()}
	o.bases = make([]*sweep.Script, len(list))
	each(len(list), 16, func(i int) { // most of a run is waiting
		text, err := list[i].Source()
		Expect(err).NotTo(HaveOccurred())
		base, _ := planner.Base(of.CommandTable(), list[i].ID, text)
		o.bases[i] = base
		sc := list[i]
		e.Run(context.Background(), sc)
		dir := filepath.Join(e.Out, filepath.FromSlash(sc.ID))
		f, err := os.Open(filepath.Join(dir, "transcript.jsonl"))
		if err != nil {
			return // nothing was run
		}
		defer f.Close()
		t, err := transcript.Load(f, nil)
		Expect(err).NotTo(HaveOccurred())
		diff, _ := os.ReadFile(filepath.Join(dir, "workspace.diff"))
		var effects []sweep.Effect
		for line := range strings.Lines(string(diff)) {
			if kind, name, _ := strings.Cut(strings.TrimSpace(line), " "); kind == "new" || kind == "changed" ||
				kind == "deleted" {
				effects = append(effects, sweep.Effect{What: kind, File: strings.TrimPrefix(name, "file ")})
			}
		}
		base.Observe(t, effects)
	})
	return o
}

// each calls f for 0 to n-1, so many at a time.
func each(n, atOnce int, f func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		wait.Go(func() {
			defer GinkgoRecover()
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}

// schedules are those of a seed at the points and with the actions that match.
func (o observed) schedules(seed uint64, point, action string) (list []sweep.Schedule) {
	for _, b := range o.bases {
		more, _ := b.Schedules(o.bases, sweep.Wanted{
			Action: func(name string) bool { return sweep.Matches(action, name) },
			Point:  func(name, _ string) bool { return sweep.Matches(point, name) },
			Drawn:  func(turn int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(turn))) },
		})
		list = append(list, more...)
	}
	return list
}

func named(s sweep.Schedule) string {
	return fmt.Sprintf("%s/%d/%s/%s", s.Scenario, s.Turn+1, s.Point, s.Action)
}

func text(s sweep.Schedule) []byte {
	a, _ := s.Write(nil)
	return a.Text()
}

func shipped(ids ...string) (list []*scenarios.Scenario) {
	all, err := acp.V1().Shipped()
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(all, func(s *scenarios.Scenario) bool {
		return s.Role == "agent" || len(ids) > 0 && !slices.Contains(ids, s.ID)
	})
}

var _ = Describe("a schedule", func() {
	It("is a scenario of less than 90 lines, whatever the point and the action", func() {
		for _, id := range ordinary {
			list := observe(shipped(id)...).schedules(1, "*", "*")
			Expect(len(list)).To(BeNumerically(">", 100), id)
			for _, s := range list {
				script, _, _ := bytes.Cut(text(s), []byte("-- llm.yaml --"))
				Expect(bytes.Count(script, []byte("\n"))).To(BeNumerically("<", 90), named(s))
			}
		}
	})

	It("has sessions of its own, and leaves a second process alone", func() {
		own := filepath.Join(GinkgoT().TempDir(), "own.txtar")
		Expect(os.WriteFile(own, []byte("session new other\nprompt 'Go.'\nawait turn any\nbeside\nsession new third\n"+
			"prompt third 'On.'\nawait turn any\n-- llm.yaml --\nturns:\n  - - - text: One.\n  - - - text: Two.\n"),
			0o600)).To(Succeed())
		owns, err := acp.V1().Load(own)
		Expect(err).NotTo(HaveOccurred())
		list := observe(owns...).schedules(1, "*", "*")
		Expect(list).NotTo(BeEmpty())
		for _, s := range list {
			Expect(string(text(s))).NotTo(ContainSubstring("beside\n"))
			Expect(bytes.Count(text(s), []byte("session new other\n"))).To(BeNumerically("<=", 1), "%s", text(s))
		}
	})

	It("is one of every shipped scenario, also where that says what sweeps say", func() {
		own := filepath.Join(GinkgoT().TempDir(), "own.txtar")
		Expect(os.WriteFile(own, []byte("prompt 'Keep talking elsewhere.'\nawait turn any\n"+
			"prompt 'Once more, please.'\nawait turn any\nprompt 'Are you still there?'\nawait turn any\n"+
			"-- llm.yaml --\nturns:\n  - - - text: One.\n  - - - text: Two.\n  - - - text: Three.\n"), 0o600)).
			To(Succeed())
		owns, err := acp.V1().Load(own)
		Expect(err).NotTo(HaveOccurred())
		all := shipped()
		some := proof.Share(all)
		list := observe(append(some, owns...)...).schedules(1, "*", "*")
		var mu sync.Mutex
		var wrong []string
		texts, said := map[uint64]bool{}, 0
		each(len(list), runtime.NumCPU(), func(i int) {
			t := text(list[i])
			_, rest, _ := bytes.Cut(t, []byte("\n")) // the first line only names it
			h := fnv.New64a()
			_, _ = h.Write(rest)
			mu.Lock()
			again := texts[h.Sum64()]
			texts[h.Sum64()] = true
			if !again && bytes.Contains(t, []byte("'Now: Are you still there?'")) {
				said++
			}
			mu.Unlock()
			if again {
				return
			}
			if _, err := acp.V1().Parse(named(list[i]), named(list[i]), t); err != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, named(list[i])+": "+err.Error())
			}
		})
		Expect(wrong).To(BeEmpty())
		GinkgoWriter.Println(len(texts), "schedules, of which in", said, "the sweep had to say something else")
		Expect(said).To(BeNumerically(">", 100))
		// Some scenarios have far fewer situations than others.
		Expect(len(texts)).To(BeNumerically(">", 40_000*len(some)/len(all)/2))
	})

	It("loads the session of the script beside another one, and none that it has just opened", func() {
		list := observe(shipped("load/fresh-process")...).schedules(1, "*second*", "nothing")
		loads := 0
		for _, s := range list {
			script := string(text(s))
			Expect(script).NotTo(MatchRegexp(`(?m)^session new main\n(.*\n)*session load main`), named(s))
			if strings.Contains(script, "session load main") {
				loads++
			}
		}
		Expect(loads).To(BeNumerically(">", 0))
	})

	It("asks no load of a session that is at work in the background", func() {
		all, err := acp.V2().Shipped()
		Expect(err).NotTo(HaveOccurred())
		demands := func(id string) bool {
			list := observeIn(acp.V2(), schedules.V2(), "reference-acp-v2",
				all[slices.IndexFunc(all, func(s *scenarios.Scenario) bool { return s.ID == id })])
			written := list.schedules(1, "idle", "load")
			Expect(written).NotTo(BeEmpty(), id)
			return strings.Contains(string(text(written[0])), "await response L result?")
		}
		Expect(demands("background/listed")).To(BeFalse())
		Expect(demands("turns/echo")).To(BeTrue())
	})

	It("shares a process with others in either version", func() {
		all, err := acp.V2().Shipped("turns")
		Expect(err).NotTo(HaveOccurred())
		list := observeIn(acp.V2(), schedules.V2(), "reference-acp-v2",
			all[slices.IndexFunc(all, func(s *scenarios.Scenario) bool { return s.ID == "turns/two" })]).
			schedules(1, "gate*", "cancel")
		list = slices.DeleteFunc(list, func(s sweep.Schedule) bool { return s.Shared() == "" })
		Expect(len(list)).To(BeNumerically(">", 1))
		chain, _ := schedules.V2().Chain(list)
		Expect(string(chain.Text())).To(HavePrefix("protocol acp-v2\n"))
		_, err = acp.V2().Parse("s", "s.txtar", chain.Text())
		Expect(err).NotTo(HaveOccurred(), "%s", chain.Text())
	})

	It("merges a turn with those of other scenarios in orders that only the seed decides", func() {
		o := observe(shipped("prompt-turn/two-turns", "permission/allow-once-edit", "tool-calls/read")...)
		merged := func(seed uint64) map[string]string {
			out := map[string]string{}
			for _, s := range o.schedules(seed, "merge * with *", "nothing") {
				out[named(s)] = string(text(s))
			}
			return out
		}
		seven := merged(7)
		names := slices.Collect(maps.Keys(seven))
		Expect(names).To(ContainElement("prompt-turn/two-turns/1/merge 1 with permission/allow-once-edit/nothing"))
		Expect(names).To(ContainElement("permission/allow-once-edit/1/merge 1 with prompt-turn/two-turns/nothing"))
		Expect(slices.Collect(maps.Values(seven))).To(ContainElement(MatchRegexp("(?m)^cmp main.go want/main.go$")))
		Expect(merged(7)).To(Equal(seven))
		Expect(merged(8)).NotTo(Equal(seven))
	})
})
