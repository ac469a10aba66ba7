package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema is an official JSON Schema: it judges values of its types and makes
// up values to be judged.
type official struct {
	defs     map[string]map[string]any
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
	rng      *rand.Rand
}

func loadSchema(version int, name string) *official {
	GinkgoHelper()
	path := filepath.Join("..", "..", "..", "ci", "schema", "node_modules", "@agentclientprotocol", "sdk", "schema",
		fmt.Sprint("v", version), name)
	file, err := os.Open(path)
	if err != nil {
		Fail(fmt.Sprintf("the official schema is not installed: run ci/test (or: npm ci --prefix ci/schema): %v", err))
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		Fail(err.Error())
	}
	s := &official{
		defs:     map[string]map[string]any{},
		compiler: jsonschema.NewCompiler(),
		compiled: map[string]*jsonschema.Schema{},
		rng:      rand.New(rand.NewPCG(1, 1)),
	}
	for name, def := range doc.(map[string]any)["$defs"].(map[string]any) {
		s.defs[name] = def.(map[string]any)
	}
	for format, bounds := range map[string][2]string{
		"int32": {"-2147483648", "2147483647"}, "int64": {"-9223372036854775808", "9223372036854775807"},
		"uint16": {"0", "65535"}, "uint32": {"0", "4294967295"}, "uint64": {"0", "18446744073709551615"},
	} {
		s.compiler.RegisterFormat(&jsonschema.Format{Name: format, Validate: func(v any) error {
			n, ok := v.(json.Number)
			if !ok {
				return nil
			}
			low, _ := new(big.Rat).SetString(bounds[0])
			high, _ := new(big.Rat).SetString(bounds[1])
			if r, ok := new(big.Rat).SetString(n.String()); !ok || r.Cmp(low) < 0 || r.Cmp(high) > 0 {
				return fmt.Errorf("%s is no %s", n, format)
			}
			return nil
		}})
	}
	// Whether a text is a URI, an expression or a time is a matter of the rules, not of the shape.
	for _, name := range []string{"uri", "regex", "date-time"} {
		s.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	s.compiler.AssertFormat()
	if err := s.compiler.AddResource("schema.json", doc); err != nil {
		Fail(err.Error())
	}
	return s
}

// allows is the verdict of the schema about a JSON text.
func (s *official) allows(name string, value any) bool {
	GinkgoHelper()
	c := s.compiled[name]
	if c == nil {
		var err error
		if c, err = s.compiler.Compile("schema.json#/$defs/" + name); err != nil {
			Fail(err.Error())
		}
		s.compiled[name] = c
	}
	return c.Validate(value) == nil
}

// form is one way to satisfy a schema: an object with these properties, or a
// value that is no object.
type form struct {
	props    map[string]map[string]any
	required map[string]bool
	plain    map[string]any
}

// forms resolves references and multiplies out unions.
func (s *official) forms(node map[string]any) []form {
	if target, ok := node["$ref"].(string); ok {
		return s.forms(s.defs[filepath.Base(target)])
	}
	base := form{props: map[string]map[string]any{}, required: map[string]bool{}}
	if props, ok := node["properties"].(map[string]any); ok {
		for name, prop := range props {
			base.props[name] = prop.(map[string]any)
		}
	}
	for _, name := range sequence(node["required"]) {
		base.required[name.(string)] = true
	}
	all := []form{base}
	parts := false
	for _, part := range sequence(node["allOf"]) {
		parts = true
		all = cross(all, s.forms(part.(map[string]any)))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if node[key] == nil {
			continue
		}
		parts = true
		var alternatives []form
		for _, part := range sequence(node[key]) {
			alternatives = append(alternatives, s.forms(part.(map[string]any))...)
		}
		all = cross(all, alternatives)
	}
	if !parts && node["properties"] == nil {
		return []form{{plain: node}}
	}
	return all
}

func cross(a, b []form) []form {
	var all []form
	for _, x := range a {
		for _, y := range b {
			if y.plain != nil {
				if len(x.props) == 0 {
					all = append(all, y)
				} else {
					all = append(all, x) // a part that allows any object
				}
				continue
			}
			merged := form{props: maps.Clone(x.props), required: maps.Clone(x.required)}
			for name, prop := range y.props {
				if merged.props[name]["const"] == nil {
					merged.props[name] = prop
				}
			}
			maps.Copy(merged.required, y.required)
			all = append(all, merged)
		}
	}
	return all
}

func sequence(v any) []any {
	list, _ := v.([]any)
	return list
}

// value makes up a value; it nearly always satisfies the schema.
func (s *official) value(node map[string]any) any {
	forms := s.forms(node)
	return s.fill(forms[s.rng.IntN(len(forms))])
}

func (s *official) fill(f form) any {
	if f.plain != nil {
		return s.plain(f.plain)
	}
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(f.props)) {
		if f.required[name] || s.rng.IntN(2) == 0 {
			object[name] = s.value(f.props[name])
		}
	}
	return object
}

func (s *official) plain(node map[string]any) any {
	if c, ok := node["const"]; ok {
		return c
	}
	kinds := sequence(node["type"])
	if kind, ok := node["type"].(string); ok {
		kinds = []any{kind}
	}
	if len(kinds) == 0 {
		return s.junk()
	}
	switch kinds[s.rng.IntN(len(kinds))] {
	case "null":
		return nil
	case "boolean":
		return s.rng.IntN(2) == 0
	case "integer":
		if node["minimum"] == json.Number("1") {
			return json.Number(pick(s.rng, "1", "7", "65535"))
		}
		return json.Number(pick(s.rng, "0", "1", "7", "65535"))
	case "number":
		if node["maximum"] != nil {
			return json.Number(pick(s.rng, "0", "0.5", "1"))
		}
		return json.Number(pick(s.rng, "0", "0.5", "-3e2"))
	case "array":
		items, _ := node["items"].(map[string]any)
		list := make([]any, s.rng.IntN(3))
		if node["minItems"] != nil && len(list) == 0 {
			list = make([]any, 1)
		}
		for i := range list {
			list[i] = s.value(items)
		}
		return list
	case "object":
		object := map[string]any{}
		if values, ok := node["additionalProperties"].(map[string]any); ok {
			for i := range s.rng.IntN(3) {
				object[fmt.Sprint("key", i)] = s.value(values)
			}
		}
		return object
	}
	return pick(s.rng, "a", "_custom", "some text")
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// wrongs are values that do not fit most places.
func wrongs() []any {
	return []any{
		nil, true, "", "zzz", "_zzz", json.Number("0"), json.Number("-1"), json.Number("1.5"), json.Number("2.0"),
		json.Number("70000"), json.Number("4294967296"), json.Number("18446744073709551616"),
		[]any{}, []any{nil}, []any{"x"}, []any{json.Number("5")}, []any{map[string]any{}},
		map[string]any{}, map[string]any{"a": "b"}, map[string]any{"a": json.Number("1")},
		map[string]any{"type": "text"},
		"pending", "string", "boolean", "terminal", "http", "object", "select",
	}
}

func (s *official) junk() any { return pick(s.rng, wrongs()...) }

// mutate changes one place of a value, which may be the value itself.
func (s *official) mutate(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 || s.rng.IntN(6) == 0 {
			break
		}
		v = maps.Clone(v)
		key := pick(s.rng, slices.Sorted(maps.Keys(v))...)
		switch s.rng.IntN(4) {
		case 0:
			delete(v, key)
		case 1:
			v[key] = s.junk()
		default:
			v[key] = s.mutate(v[key])
		}
		return v
	case []any:
		if len(v) == 0 || s.rng.IntN(6) == 0 {
			break
		}
		v = slices.Clone(v)
		i := s.rng.IntN(len(v))
		v[i] = s.mutate(v[i])
		return v
	}
	return s.junk()
}
