package faults_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
)

var _ = Describe("the list of faults", func() {
	It("is long, and every entry is documented", func() {
		all := faults.All(faults.ACPv1)
		Expect(len(all)).To(BeNumerically(">=", 80))
		seen := map[string]bool{}
		for _, f := range all {
			Expect(f.Name).To(MatchRegexp(`^[a-z0-9]+(-[a-z0-9]+)*$`))
			Expect(seen).NotTo(HaveKey(f.Name))
			seen[f.Name] = true
			Expect(f.Summary).NotTo(BeEmpty(), f.Name)
			Expect(f.Copies).To(MatchRegexp(`^$|^[\w.-]+/[\w.-]+#\d+$`), f.Name)
			Expect(f.Reddens).NotTo(BeEmpty(), f.Name)
			Expect(len(f.Scenarios) == 0).To(Equal(f.Swept()), f.Name)
			Expect(reflect.ValueOf(f.Hooks()).IsZero()).To(BeFalse(), f.Name)
			found, ok := faults.Find(faults.ACPv1, f.Name)
			Expect(ok).To(BeTrue())
			Expect(found.Summary).To(Equal(f.Summary))
		}
		_, ok := faults.Find(faults.ACPv1, "none")
		Expect(ok).To(BeFalse())
	})

	It("names every agent rule", func() {
		named := map[string]bool{}
		for _, f := range faults.All(faults.ACPv1) {
			for _, r := range f.Reddens {
				named[r] = true
			}
		}
		Expect(slices.Sorted(maps.Keys(named))).To(ContainElements(agentRules))
	})
})

var agentRules = regexp.MustCompile(`\s+`).
	Split(`LATE-CONTENT STDOUT-CLEAN SESSION-KNOWN-FIRST TOOL-CLOSED CANCEL-REASON
	TOOL-ANNOUNCED SHAPE CONFIG-COMPLETE MODE-SYNC LOAD-WINDOW RESUME-SILENT AUTH-CODE CAP-GATE PATH-ABS ROOT-KEYS
	CANCEL-CAUSE ONE-RESPONSE TOOL-RESEND USER-ECHO STATUS-FORWARD PERM-GUARD USAGE-SANE TERM-LIFE PLAN-FULL MSG-RUNS
	LIST-SANE NOTIFY-SILENT INIT-ECHO TERMINAL-REF ELICIT-SCOPE CLOSE-SETTLES DELETE-GONE RCANCEL-OWN `+
		`AUTH-METHODS ERR-FORM`, -1)

// stuck is the line of a battery whose agent did not go on.
var stuck = regexp.MustCompile(`== stuck.*`)

// elsewhere are the faults that only show where an MCP server starts or fails in a call, in
// the agent's processes, where a session is forked or opened in an odd way, where all that a
// list offers is set, where a page is fetched, where a command leaves something running or
// writes to its error output, where the user logs in in a terminal, or where initialize has no
// capabilities.
var elsewhere = []string{"dead-server-ends-no-turn", "cancel-deaf-in-server", "starting-servers-deafen",
	"starting-servers-fail-prompt", "session-memory-kept", "session-descriptors-kept", "session-process-kept",
	"second-process-dies", "fork-is-its-source", "fork-without-history", "fork-ends-its-source",
	"fork-hears-its-source",
	"kind-of-a-writer", "load-keeps-folder", "commands-in-first-folder", "commands-wait-for-input",
	"turn-waits-for-background", "error-output-lost",
	"missing-folder-hangs", "load-elsewhere-hangs", "deleted-load-hangs", "close-behind-load-hangs",
	"close-lost-while-reading",
	"taken-back-new-blocks", "second-command-outlives-cancel",
	"last-value-refused", "mode-back-on-load", "aborted-login-succeeds", "left-out-capabilities-taken-for-full",
	"mcp-named-for-people-skipped",
	"server-tools-in-part", "server-tools-in-first-turn", "server-tools-not-asked-for", "server-called-twice",
	"server-call-not-made", "server-gives-former-result", "server-not-told-of-cancel", "server-events-as-http",
	"server-errors-not-read", "server-program-ends-at-blank", "server-lost-by-cancel"}

// withholding are faults that do not hang, but keep back what a step of the
// battery waits for.
var withholding = []string{"close-returns-early", "new-session-ends-others", "cancel-ends-next-turn",
	"cancel-queues-the-rest", "cancel-skips-one-call", "subagent-asks-as-parent"}

var _ = Describe("a fault", func() {
	// play runs one chapter in directories of its own.
	play := func(root, chapter string, hooks func() refagent.Hooks, patience time.Duration) string {
		dir := filepath.Join(root, "work")
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		return run(dir, filepath.Join(root, "state"), hooks, patience, chapter == "bare", chapters[chapter])
	}

	It("changes what can be seen, and the correct agent is always the same", func() {
		root := GinkgoT().TempDir()
		baseline := map[string]string{}
		for name := range chapters {
			baseline[name] = play(filepath.Join(root, "first", name), name, nil, time.Minute)
			Expect(stuck.FindString(baseline[name])).To(BeEmpty(), name)
			Expect(play(filepath.Join(root, "second", name), name, nil, time.Minute)).To(Equal(baseline[name]), name)
		}
		for name := range chapters {
			Expect(play(filepath.Join(root, "tap", name), name, faults.Nothing, time.Minute)).
				To(Equal(baseline[name]), name)
		}
		var mu sync.Mutex
		var silent []string
		var all sync.WaitGroup
		slots := make(chan struct{}, 12)
		for _, f := range proof.Share(faults.All(faults.ACPv1)) {
			// It takes an order of acts that no chapter has, a server, or a process of its own.
			if f.Swept() || slices.Contains(elsewhere, f.Name) {
				continue
			}
			all.Add(1)
			slots <- struct{}{}
			go func() {
				defer GinkgoRecover()
				defer all.Done()
				defer func() { <-slots }()
				patience, waits := time.Minute, f.Hangs || slices.Contains(withholding, f.Name)
				if waits {
					patience = time.Second
				}
				for _, name := range slices.Sorted(maps.Keys(chapters)) {
					seen := play(filepath.Join(root, f.Name, name), name, f.Hooks, patience)
					if !waits {
						Expect(stuck.FindString(seen)).To(BeEmpty(), "%s in chapter %s", f.Name, name)
					}
					if seen != baseline[name] {
						return
					}
				}
				mu.Lock()
				silent = append(silent, f.Name)
				mu.Unlock()
			}()
		}
		all.Wait()
		Expect(silent).To(BeEmpty(), "these faults change no chapter: add a chapter to "+
			"refagent/faults/battery_test.go "+
			"that shows each, or delete its block in refagent/faults/acp-v1.txt")
	})
})
