package acpreport

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Upgrade tells the author of a version 1 agent what the agent still lacks for version 2. It compares a run in version
// 1 with a run in version 2. Rules are the rules of version 2.
type Upgrade struct {
	Rules  *rules.Set
	V1, V2 results.Run
	// Habits are the agent's habits in version 1 that version 2 forbids.
	Habits []Broken
	// Differences are the scenarios whose results differ between the versions.
	Differences []Difference
}

// Difference is a scenario with a different result in each version.
type Difference struct{ Scenario, V1, V2 string }

// Speaks reports whether some scenario of the version 2 run started the agent and passed or failed.
func (u Upgrade) Speaks() bool {
	return slices.ContainsFunc(u.V2.Results, func(r results.Result) bool {
		return !r.NotStarted && (r.Verdict == results.Pass || r.Verdict == results.Fail)
	})
}

// Missing returns the requirements of version 2 that the agent breaks.
func (u Upgrade) Missing() []results.RequirementOutcome {
	if u.V2.Conformance == nil || !u.Speaks() {
		return nil
	}
	return lists.Where(u.V2.Conformance.Requirements, func(q results.RequirementOutcome) bool {
		return q.Verdict == results.Fail || q.Verdict == results.Warn
	})
}

// Markdown writes a checklist in Markdown.
func (u Upgrade) Markdown(w io.Writer) error {
	var b strings.Builder
	name, version := u.agent()
	fmt.Fprintf(&b, "# ACP version 2: %s\n\n", strings.TrimSpace(name+" "+version))
	missing := u.Missing()
	switch {
	case !u.Speaks():
		b.WriteString("The agent does not speak version 2. The lists below name what it does in version 1 that " +
			"breaks version 2, and what version 2 requires in addition.\n")
		u.habits(&b)
	case len(missing) == 0:
		b.WriteString("The agent speaks version 2 and meets each of its requirements that were tested.\n")
	default:
		fmt.Fprintf(&b, "The agent speaks version 2. It breaks %d of its requirements.\n", len(missing))
		u.missing(&b, missing)
	}
	if u.Speaks() {
		u.differences(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// agent returns the name and version that the agent gives for itself, from either run.
func (u Upgrade) agent() (name, version string) {
	for _, r := range slices.Concat(u.V2.Results, u.V1.Results) {
		if r.AgentName != "" {
			return r.AgentName, r.AgentVersion
		}
	}
	return cmp.Or(u.V1.Agent.Title, u.V1.Agent.Profile), ""
}

func (u Upgrade) habits(b *strings.Builder) {
	fmt.Fprint(b, "\n## What breaks\n\n")
	for _, h := range u.Habits {
		fmt.Fprintf(b, "- [ ] **%s** %s (%d times, first in %s). %s\n", h.Requirement, h.Does, h.Count, h.First, h.Instead)
	}
	fmt.Fprint(b, "\n## What version 2 requires in addition\n\n")
	for _, id := range besides {
		q, _ := u.Rules.Requirement(id)
		fmt.Fprintf(b, "- [ ] **%s** %s\n", id, q.Statement)
	}
}

// besides lists the requirements of version 2 that have no counterpart in version 1.
var besides = []string{"V2-INIT-001", "V2-INIT-003", "V2-PRM-002", "V2-PRM-003", "V2-PRM-005", "V2-CAN-002",
	"V2-SES-003", "V2-SES-006"}

func (u Upgrade) missing(b *strings.Builder, list []results.RequirementOutcome) {
	fmt.Fprint(b, "\n## What is missing\n\n")
	for _, m := range list {
		q, _ := u.Rules.Requirement(m.ID)
		fmt.Fprintf(b, "- [ ] **%s** %s (%s)\n", m.ID, q.Statement, q.Cite)
		for _, what := range u.shown(m.ID) {
			fmt.Fprintf(b, "  - %s\n", what)
		}
	}
}

// most is the maximum number of violations listed for one requirement.
const most = 3

// shown returns up to most violations of a requirement, each with its scenario.
func (u Upgrade) shown(id string) (list []string) {
	add := func(scenario, what string) {
		line := strings.Join(strings.Fields(what), " ")
		known := slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, line) })
		if len(list) < most && !known {
			list = append(list, line+" `"+scenario+"`")
		}
	}
	for _, r := range u.V2.Results {
		for _, f := range r.Findings {
			if slices.Contains(f.Requirements, id) && (f.Class == results.Fail || f.Class == results.Warn) {
				add(r.ID, f.Rule+": "+f.Message)
			}
		}
		for _, c := range r.Checks {
			if c.Failure != nil && slices.Contains(c.Requirements, id) && c.Verdict != results.Inconclusive {
				add(r.ID, fmt.Sprintf("expected %s, got %s.", strings.Join(c.Failure.Expected, " or "),
					cmp.Or(c.Failure.Observed, "nothing")))
			}
		}
	}
	return list
}

func (u Upgrade) differences(b *strings.Builder) {
	fmt.Fprint(b, "\n## What differs between the versions\n\n")
	if len(u.Differences) == 0 {
		fmt.Fprint(b, "Nothing: in both versions each scenario had the same conversation, effects and stop reasons.\n")
		return
	}
	fmt.Fprint(b, "| scenario | version 1 | version 2 |\n|---|---|---|\n")
	cell := func(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) }
	for _, d := range u.Differences {
		fmt.Fprintf(b, "| %s | %s | %s |\n", d.Scenario, cell(d.V1), cell(d.V2))
	}
}

// Told returns one text for each session: what the agent said in each turn and how the turn ended. The texts can be
// compared between the versions. They do not depend on the order of turns in different sessions.
func Told(p *scenarios.Protocol, t *transcript.Transcript) (sessions []string) {
	said, order := map[int]*strings.Builder{}, map[string][]int{}
	open := map[string][]int{} // prompts whose turns have not ended, by session
	ends := map[int]string{}
	for e := range t.All() {
		if p.Prompts(e) {
			said[e.Seq], order[e.Session] = &strings.Builder{}, append(order[e.Session], e.Seq)
			open[e.Session] = append(open[e.Session], e.Seq)
			continue
		}
		if list := open[e.Session]; len(list) > 0 && e.Source == transcript.Agent {
			said[list[0]].WriteString(p.Said(e))
		}
		if stop, ok := p.TurnEnd(e); ok && said[e.Ref] != nil && ends[e.Ref] == "" {
			ends[e.Ref] = stop
			open[e.Session] = slices.DeleteFunc(open[e.Session], func(n int) bool { return n == e.Ref })
		}
	}
	for _, prompts := range order {
		turns := lists.Map(prompts, func(seq int) string {
			return fmt.Sprintf("%q, %s", said[seq], cmp.Or(ends[seq], "no end"))
		})
		sessions = append(sessions, strings.Join(counted(turns), "; "))
	}
	slices.Sort(sessions)
	return sessions
}

// counted merges equal consecutive turns into one text that gives their number.
func counted(turns []string) (out []string) {
	for len(turns) > 0 {
		n := 1
		for n < len(turns) && turns[n] == turns[0] {
			n++
		}
		if out = append(out, turns[0]); n > 1 {
			out[len(out)-1] += fmt.Sprintf(" (%d times)", n)
		}
		turns = turns[n:]
	}
	return out
}
