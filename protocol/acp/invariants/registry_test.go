package invariants_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
)

var _ = Describe("the registry", func() {
	all := invariants.V1().Requirements()

	It("is complete in itself", func() {
		Expect(all).To(HaveLen(512))
		for _, q := range all {
			Expect(q.Statement).NotTo(BeEmpty(), q.ID)
			Expect(q.HowToTest).NotTo(BeEmpty(), q.ID)
			Expect(q.Cite.File).To(MatchRegexp(`^(docs|schema)/`), q.ID)
			Expect(q.Cite.Anchor).NotTo(BeEmpty(), q.ID)
			Expect(len(strings.Fields(q.Cite.Quote))).To(And(BeNumerically(">", 0), BeNumerically("<=", 6)), q.ID)
			Expect([]string{"must", "should", "may", "informational"}).To(ContainElement(q.Level), q.ID)
			Expect([]string{"rfc2119", "prose", "schema", "schema-doc", "jsonrpc", "rfd", "convention"}).
				To(ContainElement(q.Basis), q.ID)
			found, ok := invariants.V1().Requirement(strings.ToLower(q.ID))
			Expect(ok).To(BeTrue())
			Expect(found.ID).To(Equal(q.ID))
		}
	})

	It("names the requirements of the official kit, all 56 of version 1", func() {
		have := map[string]bool{}
		for _, q := range all {
			have[q.Kit] = true
		}
		for area, n := range map[string]int{"TRANSPORT": 2, "JSONRPC": 5, "INIT": 4, "SCHEMA": 2, "SESSION": 2,
			"PROMPT": 3,
			"CANCEL": 2, "LOAD": 3, "RESUME": 2, "LIST": 2, "DELETE": 2, "CLOSE": 2, "ADDDIRS": 1, "MODES": 2,
			"CONFIG":    3,
			"PROMPTCAP": 3, "AUTH": 5, "CLIENTCAP": 3, "EXT": 1, "META": 1, "ERROR": 1, "SHUTDOWN": 1, "STDERR": 1,
			"INFO-PARSE": 1, "INFO-INVALIDREQ": 1, "INFO-UNKNOWNSESSION": 1} {
			for i := range n {
				Expect(have).To(HaveKey(fmt.Sprintf("ACP-%s-%03d", area, i+1)))
			}
		}
		Expect(have).To(HaveLen(56 + 1)) // those without one are under ""
	})

	It("finds nothing under an unknown id", func() {
		_, ok := invariants.V1().Requirement("CANCEL-999")
		Expect(ok).To(BeFalse())
	})

	It("binds every core requirement to a rule or check, or says why not", func() {
		waiting := invariants.V1().Waiting()
		for _, q := range all {
			bound := len(q.Rules)+len(q.Checks) > 0
			switch {
			case bound:
				Expect(q.Excluded).To(BeEmpty(), "%s has rules or checks: delete it below excluded in bindings.yaml",
					q.ID)
				Expect(waiting).NotTo(ContainElement(q.ID),
					"%s has rules or checks: delete it below waiting in bindings.yaml", q.ID)
			case q.Core && q.Excluded == "":
				Expect(waiting).To(ContainElement(q.ID), "%s has no rule and no check: name it in a check of "+
					"a scenario or a point of a rule, or exclude it with a reason in bindings.yaml", q.ID)
			}
			if q.Excluded != "" {
				Expect(waiting).NotTo(ContainElement(q.ID), "%s is excluded: delete it below waiting in bindings.yaml",
					q.ID)
			}
		}
	})

	It("binds at least 85 of 100 core musts, once nothing waits", func() {
		core, must, bound := 0, 0, 0
		for _, q := range all {
			if !q.Core {
				continue
			}
			core++
			if q.Level == "must" {
				must++
				if len(q.Rules)+len(q.Checks) > 0 {
					bound++
				}
			}
		}
		Expect(core).To(Equal(274))
		Expect(must).To(Equal(215))
		AddReportEntry("core musts bound", bound)
		if waiting := len(invariants.V1().Waiting()); waiting == 0 {
			Expect(float64(bound) / float64(must)).To(BeNumerically(">=", 0.85))
		} else {
			AddReportEntry("core requirements waiting", waiting)
		}
	})

	It("derives the tiers", func() {
		tier := func(id string) rules.Tier {
			q, ok := invariants.V1().Requirement(id)
			Expect(ok).To(BeTrue(), id)
			return q.Tier
		}
		Expect(tier("CANCEL-001")).To(Equal(rules.Mandatory))
		Expect(tier("STDIO-001")).To(Equal(rules.Mandatory), "stdio is the only transport here")
		Expect(tier("FS-001")).To(Equal(rules.Mandatory), "what a client leaves out is ours to choose")
		Expect(tier("LOAD-004")).To(Equal(rules.Capability))
		Expect(tier("PLAN-002")).To(Equal(rules.Capability))
		Expect(tier("CANCEL-003")).To(Equal(rules.Advisory))
		Expect(tier("PERM-010")).To(Equal(rules.Informational), "a duty of the client")
		Expect(tier("PROMPT-016")).To(Equal(rules.Informational))
		Expect(rules.Mandatory.String()).To(Equal("MANDATORY"))
	})

	It("names the ids of the official kit", func() {
		kit := map[string]bool{}
		for _, q := range all {
			if q.Kit != "" {
				Expect(q.Kit).To(MatchRegexp(`^ACP-[A-Z]+(-[A-Z]+)?-[0-9]{3}$`))
				kit[q.Kit] = true
			}
		}
		Expect(len(kit)).To(BeNumerically(">=", 50))
	})

	It("quotes the sentence behind each must of the pages that a Fail rests on, and no other", func() {
		used := map[string]bool{}
		for _, r := range invariants.V1().Rules() {
			for _, p := range r.Points {
				backed := r.ID == "WIRE-VALID" // of models the protocol says nothing, and the session is dead
				for _, id := range p.Requirements {
					q, ok := invariants.V1().Requirement(id)
					Expect(ok).To(BeTrue(), "%s/%s names %s", r.ID, p.ID, id)
					if q.Level != "must" {
						continue
					}
					switch q.Basis {
					case "rfc2119", "schema", "jsonrpc":
						backed = true
					default:
						if q.Sentence != "" {
							backed = true
							used[id] = used[id] || p.Class == rules.Fail
						}
					}
				}
				if p.Class == rules.Fail {
					Expect(backed).To(BeTrue(), "%s/%s is of class fail without a must that allows it: "+
						"lower the class in the rule, or quote the sentence in prose.yaml", r.ID, p.ID)
				}
			}
		}
		for _, q := range all {
			if q.Sentence != "" {
				Expect(used).To(HaveKeyWithValue(q.ID, true),
					"the sentence of %s backs no Fail: delete it in prose.yaml", q.ID)
			}
		}
	})

	It("has rules with ids, sides and points of their own", func() {
		ids := map[string]bool{}
		agent, client := 0, 0
		for _, r := range invariants.V1().Rules() {
			Expect(ids).NotTo(HaveKey(r.ID))
			ids[r.ID] = true
			if r.Side == rules.OfClient {
				client++
				Expect(r.ID).To(HavePrefix("C-"))
			} else {
				agent++
			}
			Expect(r.Sentence).To(MatchRegexp(`^[A-Z$].*\.$|^(initialize|session/resume) .*\.$`), r.ID)
			points := map[string]bool{}
			for _, p := range r.Points {
				Expect(points).NotTo(HaveKey(p.ID), r.ID)
				points[p.ID] = true
				Expect(p.Says).NotTo(BeEmpty())
				Expect(p.Requirements).NotTo(BeEmpty(), "%s/%s", r.ID, p.ID)
			}
			_, ok := invariants.V1().Rule(r.ID)
			Expect(ok).To(BeTrue())
		}
		Expect(agent).To(BeNumerically(">=", 35))
		Expect(client).To(BeNumerically(">=", 10))
	})
})

var updateBindings = flag.Bool("update-bindings", false, "write the checks of the shipped scenarios to bindings.yaml")

var (
	checkLine     = regexp.MustCompile(`^\s*check\s+(.+)`)
	requirementID = regexp.MustCompile(`^[A-Z]+-[0-9]+$`)
)

// shippedChecks are the checks of the scenarios beside this package, by
// requirement.
func shippedChecks() map[string][]string {
	checks := map[string][]string{}
	root := filepath.Join("..", "..", "..", "scenarios", "suites")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".txtar" || strings.Contains(path, "testdata") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, strings.TrimSuffix(path, ".txtar"))
		if err != nil {
			return err
		}
		script, _, _ := strings.Cut(string(data), "\n-- ")
		if strings.Contains("\n"+script, "\nprotocol acp-v2\n") {
			return nil // of version 2 alone
		}
		for line := range strings.Lines(script) {
			m := checkLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
			if m == nil {
				continue
			}
			var about []string
			slug := ""
			for _, w := range strings.Fields(m[1]) {
				if !requirementID.MatchString(w) {
					slug = w
					continue
				}
				about = append(about, w)
				_, known := invariants.V1().Requirement(w)
				Expect(known).To(BeTrue(), "%s names %s", path, w)
			}
			if slug == "" && len(about) > 0 {
				slug = strings.ToLower(about[0])
			}
			for _, id := range about {
				checks[id] = append(checks[id], filepath.ToSlash(rel)+"#"+slug)
			}
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
	for id := range checks {
		slices.Sort(checks[id])
		checks[id] = slices.Compact(checks[id])
	}
	return checks
}

// The scenarios are the source: they name requirements in their checks. The
// file repeats that, so that the registry knows without them.
var _ = Describe("bindings.yaml", func() {
	It("names the checks of the shipped scenarios (-update-bindings writes them)", func() {
		shipped := shippedChecks()
		if *updateBindings {
			writeBindings(shipped)
			return
		}
		for _, q := range invariants.V1().Requirements() {
			Expect(q.Checks).To(Equal(shipped[q.ID]), "the checks of %s in bindings.yaml differ from the scenarios: "+
				"run ci/pages, which writes it", q.ID)
		}
	})
})

func writeBindings(shipped map[string][]string) {
	const file = "bindings.yaml"
	old, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	head, rest, ok := strings.Cut(string(old), "\nchecks:\n")
	Expect(ok).To(BeTrue())
	_, tail, ok := strings.Cut(rest, "\n\n")
	Expect(ok).To(BeTrue())
	var out strings.Builder
	out.WriteString(head + "\nchecks:\n")
	for _, q := range invariants.V1().Requirements() {
		if ids := shipped[q.ID]; len(ids) > 0 {
			fmt.Fprintf(&out, "  %s: [%s]\n", q.ID, strings.Join(ids, ", "))
		}
	}
	out.WriteString("\n")
	for line := range strings.Lines(tail) {
		id, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "  - ")), " ")
		id = strings.TrimSuffix(id, ":")
		if q, known := invariants.V1().Requirement(id); known && len(shipped[id])+len(q.Rules) > 0 {
			continue // neither waiting nor excluded any longer
		}
		out.WriteString(line)
	}
	Expect(os.WriteFile(file, []byte(out.String()), 0o644)).To(Succeed())
}
