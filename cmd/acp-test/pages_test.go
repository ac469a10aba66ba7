package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sebdah/goldie/v2"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
)

// TestReferencePages compares docs/reference and docs/bugs.md with the program. ci/pages writes
// them, by the flag -update.
func TestReferencePages(t *testing.T) {
	g := goldie.New(t, goldie.WithFixtureDir("../../docs/reference"), goldie.WithNameSuffix(".md"),
		goldie.WithDiffEngine(goldie.ClassicDiff))
	all := pages(rootCommand(&host{}))
	all["results"] = resultsPage(t)
	ruleLink := regexp.MustCompile(`\(rules\.md#([^)]*)\)`)
	for name, text := range all {
		for _, link := range ruleLink.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(all["rules"], "\n### "+strings.ToUpper(link[1])+"\n") {
				t.Errorf("docs/reference/%s.md links to rules.md#%s, which does not exist: mend cmd/acp-test/pages.go",
					name, link[1])
			}
		}
		const from = "<!-- Written from the program by ci/pages -->\n"
		g.Assert(t, name, []byte(from+text))
	}
	if t.Failed() {
		t.Log("the program and docs/reference or docs/bugs.md differ: run ci/pages and commit the difference")
	}
}

// resultsPage describes results.json by its schema.
func resultsPage(t *testing.T) string {
	src, err := os.ReadFile("../../docs/schema/results.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type shape struct {
		Description string
		Ref         string `json:"$ref"`
		Type        any
		Enum        []any
		Const       any
		Items       *shape
		Required    []string
		Properties  map[string]*shape
		More        json.RawMessage   `json:"additionalProperties"`
		Defs        map[string]*shape `json:"$defs"`
	}
	var schema shape
	if err := json.Unmarshal(src, &schema); err != nil {
		t.Fatal(err)
	}
	var kind func(s *shape) string
	kind = func(s *shape) string {
		switch {
		case s.Ref != "":
			name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
			return "[" + name + "](#" + name + ")"
		case s.Const != nil:
			return fmt.Sprint(s.Const)
		case s.Items != nil:
			return "list of " + kind(s.Items)
		}
		return fmt.Sprint(s.Type)
	}
	var b strings.Builder
	b.WriteString("# results.json\n\nThe outcome of a run, for programs. [results.schema.json]" +
		"(../schema/results.schema.json) is the same for validators. `version` changes when a reader of the older " +
		"form would misunderstand the newer one.\n")
	table := func(title string, s *shape) {
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		if s.Description != "" {
			b.WriteString(strings.ToUpper(s.Description[:1]) + s.Description[1:] + ".\n\n")
		}
		if len(s.Enum) > 0 {
			fmt.Fprintf(&b, "One of %v.\n", strings.Trim(fmt.Sprint(s.Enum), "[]"))
			return
		}
		b.WriteString("| member | type | |\n|---|---|---|\n")
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			about := p.Description
			if !slices.Contains(s.Required, name) {
				about = strings.TrimPrefix(about+"; may be absent", "; ")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, kind(p), about)
		}
	}
	table("The file", &schema)
	for _, name := range slices.Sorted(maps.Keys(schema.Defs)) {
		table(name, schema.Defs[name])
	}
	return b.String()
}

// Each requirement is explained by what passes and fails, or by why nothing judges it.
func TestRequirementsAreExplained(t *testing.T) {
	for _, q := range invariants.V1().Requirements() {
		want := []string{"An example that breaks it", " tests it:"}
		if len(q.Rules)+len(q.Checks) == 0 {
			want = []string{"No rule and no scenario of acp-test judges this requirement.", "- not judged: "}
		}
		text := explainRequirement(q)
		if !slices.ContainsFunc(want, func(w string) bool { return strings.Contains(text, w) }) {
			t.Errorf("none of %q is in:\n%s", want, text)
		}
	}
}
