package acp

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
)

// Fields returns what the specification says about the members of messages, for the inspector page.
func Fields(p *scenarios.Protocol) inspector.Fields {
	v, file := schema.V1(), "schema/v1/schema.json#$defs/"
	if p.Name == NameV2 {
		v, file = schema.V2(), "schema/v2/schema.json#"
	}
	f := inspector.Fields{Calls: map[string][]string{}, Types: map[string]any{}, Cite: file, Says: map[string][]int{}}
	words := map[string]bool{} // names that can only mean a member or a method: true; ordinary words: false
	for _, m := range v.Methods() {
		f.Calls[m.Name] = []string{m.Params, m.Result}
		words[m.Name] = strings.Contains(m.Name, "/")
	}
	for name, d := range v.Describe() {
		f.Types[name] = d
		for _, field := range d.Fields {
			word := strings.TrimSuffix(field[0], "?")
			words[word] = strings.ToLower(word) != word
		}
	}
	for _, q := range p.Rules.Requirements() {
		n := len(f.Statements)
		f.Statements = append(f.Statements, [4]string{q.ID, q.Level, q.Statement, q.Cite.String()})
		for _, key := range about(q, words) {
			f.Says[key] = append(f.Says[key], n)
		}
	}
	return f
}

var (
	definition = lazy.Regexp(`^(?:\$defs/)?(\w+)(?:/properties/(\w+))?`)
	word       = lazy.Regexp(`[\w/]+`)
)

// about returns the keys under which the page lists a requirement. They are the type or member that the requirement
// cites, and the members and methods in its text. words has the names that count.
func about(q rules.Requirement, words map[string]bool) []string {
	var keys []string
	if m := definition().FindStringSubmatch(q.Cite.Anchor); m != nil && strings.HasSuffix(q.Cite.File, ".json") {
		keys = append(keys, strings.TrimSuffix(m[1]+"."+m[2], "."))
	}
	for _, w := range word().FindAllString(q.Statement, -1) {
		if words[w] && !slices.Contains(keys, w) {
			keys = append(keys, w)
		}
	}
	return keys
}
