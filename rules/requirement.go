package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

// Requirement is one testable sentence of the specification.
type Requirement struct {
	ID   string
	Side Side
	// Level is "must", "should", "may" or "informational". Basis is the kind of
	// source: "rfc2119", "prose", "schema", "schema-doc", "jsonrpc", "rfd" or
	// "convention".
	Level, Basis string
	// Core means that the requirement is stable, concerns the agent, and is based
	// on the specification.
	Core bool
	// Tier decides how the requirement counts in the verdict.
	Tier Tier
	// AppliesWhen is the condition under which the requirement applies: "always",
	// "feature:X", or the path of a capability that the agent must advertise.
	// After "!", it is a capability that the agent must not advertise.
	AppliesWhen string
	// Statement is the requirement in our words. HowToTest describes a way to test
	// it.
	Statement, HowToTest string
	Cite                 Cite
	// Kit is the id of the same requirement in acp-tck, or "".
	Kit string
	// Rules and Checks list the ids of the rules and checks that can show a
	// violation. Excluded is the reason why none can, or "".
	Rules, Checks []string
	Excluded      string
	// Sentence is the wording of a must in the specification's pages. It is set
	// only if a Fail depends on that wording.
	Sentence string
}

// Cite is a passage of the specification: a file in its repository, a heading
// or definition in that file, and a quote of at most six words.
type Cite struct{ File, Anchor, Quote string }

// String returns the citation as one line.
func (c Cite) String() string { return fmt.Sprintf("%s#%s %q", c.File, c.Anchor, c.Quote) }

// Tier says how a requirement counts in the verdict.
type Tier uint8

// The tiers. A violation of a Mandatory or Capability requirement makes the
// agent fail. Violations in other tiers are only reported.
const (
	Mandatory     Tier = iota // a core must that applies to every agent
	Capability                // any other core must
	Advisory                  // a core should
	Informational             // any other requirement
)

func (t Tier) String() string {
	return [...]string{"MANDATORY", "CAPABILITY", "ADVISORY", "INFORMATIONAL"}[min(t, Informational)]
}

// MarshalText returns the name of the tier.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

type registry struct {
	all    []Requirement
	byID   map[string]int
	prose  map[string]string
	checks bindings
}

// bindings is the content of bindings.yaml. Its maps have the ids of
// requirements as keys.
type bindings struct {
	// Checks maps a requirement to the ids of the checks that test it.
	Checks map[string][]string `yaml:"checks"`
	// Waiting lists requirements that still need a check.
	Waiting []string `yaml:"waiting"`
	// Excluded maps a requirement that no test can show to be violated to the
	// reason.
	Excluded map[string]string `yaml:"excluded"`
}

// Requirements returns all requirements in the order of the registry.
func (s *Set) Requirements() []Requirement { return slices.Clone(s.registry.all) }

// Requirement returns the requirement with this id, in any letter case.
func (s *Set) Requirement(id string) (Requirement, bool) {
	i, ok := s.registry.byID[strings.ToUpper(id)]
	if !ok {
		return Requirement{}, false
	}
	return s.registry.all[i], true
}

// Statement returns the statement of the first id that is a known requirement,
// or "" if none is.
func (s *Set) Statement(ids []string) string {
	for _, id := range ids {
		if q, ok := s.Requirement(id); ok {
			return q.Statement
		}
	}
	return ""
}

// Waiting returns the core requirements that still need a check.
func (s *Set) Waiting() []string { return slices.Clone(s.registry.checks.Waiting) }

// citation returns the citation of the first of the ids. It returns "" if ids
// is empty.
func (r *registry) citation(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	if i, ok := r.byID[ids[0]]; ok {
		return r.all[i].Cite.String()
	}
	return Cite{}.String()
}

func readRegistry(d Definition) (r *registry, err error) {
	r = &registry{byID: map[string]int{}}
	defer mistake.Catch(&err)
	for name, from := range map[string]struct {
		src  []byte
		into any
	}{"bindings.yaml": {d.Bindings, &r.checks}, "prose.yaml": {d.Prose, &r.prose}} {
		root, err := yamlfile.Parse(name, from.src)
		if err != nil {
			return nil, err
		}
		root.Decode(from.into, name, "")
	}
	for i, line := range strings.Split(d.Requirements, "\n") {
		if err := r.line(line); err != nil {
			return nil, fmt.Errorf("requirements.txt:%d: %w", i+1, err)
		}
	}
	for _, rule := range d.Rules {
		for _, id := range rule.Requirements() {
			i, ok := r.byID[id]
			if !ok {
				return nil, fmt.Errorf("rule %s names requirement %s, which does not exist", rule.ID, id)
			}
			r.all[i].Rules = append(r.all[i].Rules, rule.ID)
		}
	}
	for i := range r.all {
		q := &r.all[i]
		q.Tier = tierOf(*q, q.AppliesWhen == "always" || d.Everywhere != nil && d.Everywhere(q.AppliesWhen))
		q.Checks, q.Excluded, q.Sentence = r.checks.Checks[q.ID], r.checks.Excluded[q.ID], r.prose[q.ID]
	}
	return r, nil
}

// line reads one line of requirements.txt.
func (r *registry) line(line string) error {
	if line == "" || line[0] == '#' {
		return nil
	}
	if line[0] != ' ' {
		return r.head(strings.Fields(line))
	}
	if len(r.all) == 0 {
		return fmt.Errorf("text before the first requirement")
	}
	q := &r.all[len(r.all)-1]
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "when":
		q.AppliesWhen = rest
	case "test":
		q.HowToTest = rest
	case "cite":
		where, quote, ok := strings.Cut(rest, ": ")
		file, anchor, ok2 := strings.Cut(where, "#")
		if !ok || !ok2 {
			return fmt.Errorf("cite %q does not have the form FILE#ANCHOR: QUOTE", rest)
		}
		q.Cite = Cite{file, anchor, quote}
	default:
		q.Statement = line
	}
	return nil
}

func (r *registry) head(words []string) error {
	if len(words) != 5 && (len(words) != 7 || words[5] != "tck") {
		return fmt.Errorf("want ID SIDE LEVEL BASIS TIER [tck ID]")
	}
	side := slices.Index(sideNames[:], words[1])
	if side < 0 {
		return fmt.Errorf("side %q is not one of %q", words[1], sideNames)
	}
	q := Requirement{ID: words[0], Side: Side(side), Level: words[2], Basis: words[3], Core: words[4] == "core",
		AppliesWhen: "always"}
	if len(words) == 7 {
		q.Kit = words[6]
	}
	if _, twice := r.byID[q.ID]; twice {
		return fmt.Errorf("requirement %s is defined twice", q.ID)
	}
	r.byID[q.ID] = len(r.all)
	r.all = append(r.all, q)
	return nil
}

func tierOf(q Requirement, always bool) Tier {
	switch {
	case q.Core && q.Level == "must" && always:
		return Mandatory
	case q.Core && q.Level == "must":
		return Capability
	case q.Core && q.Level == "should":
		return Advisory
	}
	return Informational
}
