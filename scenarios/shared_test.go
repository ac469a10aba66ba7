package scenarios_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	harness "github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// sharing is an engine of the reference agent, with a fault or none, as processes.
func sharing(fault string, share bool) *scenarios.Engine {
	e := engine()
	e.Golden = &golden.Store{Embedded: golden.Shipped()}
	e.Share = share
	if fault != "" {
		p := *e.Profile
		p.Timeouts.Start = 10 * time.Second // it does not start slowly
		e.Profile, e.ExtraArgs = &p, []string{"--fault", fault}
	}
	return e
}

// verdicts are the verdicts of a run by scenario.
func verdicts(r results.Run) map[string]results.Verdict {
	out := map[string]results.Verdict{}
	for _, res := range r.Results {
		out[res.ID] = res.Verdict
	}
	return out
}

var _ = Describe("processes that scenarios share", func() {
	var all map[string]*scenarios.Scenario
	BeforeEach(func() { all = suite() })

	It("ask the model server of the scenario that runs, also on connections that they kept", func() {
		url, lend, err := scenarios.Outlet()
		Expect(err).NotTo(HaveOccurred())
		var client http.Client
		for _, name := range []string{"one", "two"} {
			server := &http.Server{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }),
			}
			go server.Serve(lend()) //nolint:errcheck // it ends with the test
			DeferCleanup(server.Close)
			answer, err := client.Get(url)
			Expect(err).NotTo(HaveOccurred())
			Expect(io.ReadAll(answer.Body)).To(BeEquivalentTo(name))
			answer.Body.Close()
		}
	})

	It("run none where rounds are compared: what another scenario left there would differ", func(ctx context.Context) {
		r := sharing("", true).RunAll(ctx, named(all, []string{"prompt-turn/text", "prompt-turn/two-turns"}),
			scenarios.Plan{Jobs: 1,
				Repeat: 2, Perturb: func(string, int) scenarios.Perturbation { return scenarios.Perturbation{} }})
		Expect(r.Results).To(HaveLen(4))
		Expect(r.Results).To(HaveEach(HaveField("Shared", BeNil())))
	})

	It("run most scenarios of the correct agent, which pass there", func(ctx context.Context) {
		list := named(all, []string{"prompt-turn/*", "permission/*", "tool-calls/*"})
		r := sharing("", true).RunAll(ctx, list, scenarios.Plan{Jobs: 2})
		Expect(r.Counts.Pass).To(Equal(len(list)))
		shared, processes, again := 0, map[int]bool{}, 0
		for _, res := range r.Results {
			if res.Shared != nil {
				shared++
				processes[res.Shared.Process] = true
				if res.Shared.Verdict != 0 {
					again++
				}
			}
		}
		Expect(shared).To(BeNumerically(">", len(list)*3/4))
		Expect(len(processes)).To(BeNumerically("<", len(list)/3))
		Expect(again).To(BeZero())
	})

	It("are given back with nothing of the one before", func(ctx context.Context) {
		list := named(all, []string{"cancel/mid-*", "cancel/tool-running", "files/*"})
		r := sharing("", true).RunAll(ctx, list, scenarios.Plan{Jobs: 1})
		Expect(r.Counts.Pass).To(Equal(len(list)), "%v", verdicts(r))
	})

	It("run one scenario alone for each reason to skip", func(ctx context.Context) {
		e := sharing("", true)
		e.Golden, e.ExtraArgs = nil, []string{"--liberty", "own-shell"}
		r := e.RunAll(ctx, named(all, []string{"prompt-turn/text", "terminal/*"}), scenarios.Plan{Jobs: 1})
		skipped, again := map[string]int{}, map[string]int{}
		for _, res := range r.Results {
			if res.Verdict == results.Skip && res.Shared != nil {
				skipped[res.Reason]++
				if res.Shared.Verdict != 0 {
					again[res.Reason]++
				}
			}
		}
		Expect(slices.Max(slices.Collect(maps.Values(skipped)))).To(BeNumerically(">", 1), "%v", skipped)
		for reason, n := range again {
			Expect(n).To(Equal(1), reason)
		}
	})

	It("do not hide why the agent cannot be started", func(ctx context.Context) {
		p := *engine().Profile
		p.Command = []string{filepath.Join(GinkgoT().TempDir(), "agent.sh")}
		Expect(os.WriteFile(p.Command[0], []byte("#!/no/such/interpreter\n"), 0o755)).To(Succeed())
		e := engineFor(&p)
		e.Share = true
		r := e.RunAll(ctx, named(all, []string{"prompt-turn/text", "prompt-turn/two-turns"}), scenarios.Plan{Jobs: 1})
		for _, res := range r.Results {
			Expect(res.Verdict).To(Equal(results.Error))
			Expect(res.Reason).To(ContainSubstring("starting agent"))
		}
	})

	It("tell what fails only after others, and after which", func(ctx context.Context) {
		ids := []string{"permission/allow-always", "permission/allow-always-same-file"}
		e := sharing("permission-wrong-session", true)
		r := e.RunAll(ctx, named(all, append(ids, "prompt-turn/text")), scenarios.Plan{Jobs: 1})
		Expect(verdicts(sharing("permission-wrong-session", false).
			RunAll(ctx, named(all, ids), scenarios.Plan{Jobs: 1}))).To(
			HaveKeyWithValue(ids[1], results.Pass))
		at := slices.IndexFunc(r.Results, func(r results.Result) bool { return r.ID == ids[1] })
		res := r.Results[at]
		Expect(res.Verdict).To(Equal(results.Fail), "a MUST is broken, and was seen twice")
		Expect(res.Shared.Verdict).To(Equal(results.Fail))
		Expect(res.Shared.After).To(Equal(ids[:1]))
		Expect(res.Findings).To(ContainElement(SatisfyAll(
			HaveField("Rule", results.AfterOthersRule), HaveField("Class", results.Fail),
			HaveField("Message", SatisfyAll(ContainSubstring(ids[0]), ContainSubstring("TOOL-ANNOUNCED"))),
			HaveField("Detail", ContainSubstring("--fresh=false -j 1 --run '^("+ids[0]+"|"+ids[1]+")$'")),
		)))
		for _, name := range []string{"shared-transcript.jsonl", "transcript.jsonl"} {
			Expect(e.Out + "/" + ids[1] + "/" + name).To(BeAnExistingFile())
		}
	})

	It("are not asked for longer than a minute which of the others it takes", func(ctx context.Context) {
		defer scenarios.LeakTime(time.Nanosecond)()
		ids := []string{"permission/allow-always", "permission/allow-always-same-file"}
		r := sharing("permission-wrong-session", true).RunAll(ctx, named(all, ids), scenarios.Plan{Jobs: 1})
		Expect(r.Results[1].Findings).To(ContainElement(SatisfyAll(HaveField("Rule", results.AfterOthersRule),
			HaveField("Detail", "acp-test did not find within 1ns which of them cause the failure"))))
	})

	It("give the verdicts that processes of their own give", func(ctx context.Context) {
		chosen := []string{"cancel-error", "new-session-ends-others", "permission-never-asked",
			"exits-on-malformed-input",
			"command-without-description"}
		if everywhere {
			chosen = nil
			for _, f := range proved() {
				chosen = append(chosen, f.Name)
			}
		}
		var mu sync.Mutex
		differ := map[string]map[string][2]results.Verdict{} // alone and shared, by fault and scenario
		harness.Each(chosen, 8, func(name string) {
			defer GinkgoRecover()
			f, ok := faults.Find(faults.ACPv1, name)
			Expect(ok).To(BeTrue(), name)
			list := named(all, append([]string{"prompt-turn/text", "tool-calls/edit", "permission/by-kind"},
				f.Scenarios...))
			var got [2]map[string]results.Verdict
			for i, share := range []bool{false, true} {
				e := sharing(name, share)
				if f.Hangs {
					e.StepTimeout = time.Second
				}
				got[i] = verdicts(e.RunAll(ctx, list, scenarios.Plan{Jobs: 2}))
			}
			for id, alone := range got[0] {
				if shared := got[1][id]; shared != alone {
					mu.Lock()
					if differ[name] == nil {
						differ[name] = map[string][2]results.Verdict{}
					}
					differ[name][id] = [2]results.Verdict{alone, shared}
					mu.Unlock()
				}
			}
		})
		maps.DeleteFunc(differ, func(name string,
			_ map[string][2]results.Verdict) bool {
			return ofProcess[name] != ""
		})
		Expect(differ).To(BeEmpty())
	})
})

// ofProcess are the faults that a scenario shows in some processes and not in others, and why.
var ofProcess = map[string]string{
	"talks-before-initialize":    "initialize is sent once to a process, so its first scenario shows it",
	"update-for-unknown-session": "it does so at its first session, so the first scenario of a process shows it",
	"stdout-torn-end":            "a process ends behind all its scenarios",
	"exits-on-malformed-input":   "whether it is gone before the next line is written is a race of its own",
	"cwd-ignored":                "the folder that a process was started in is the workspace of no scenario",
}
