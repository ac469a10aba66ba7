package schema

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// Fields returns the keys of a type, the unstable ones apart; nil if it is not
// a record.
func (v *Version) Fields(typeName string) (stable, unstable []string) {
	s := v.shapes[typeName]
	if s == nil || s.kind != record {
		return nil, nil
	}
	for _, f := range s.fields {
		if f.unstable || v.unstable[typeName] {
			unstable = append(unstable, f.name)
		} else {
			stable = append(stable, f.name)
		}
	}
	return stable, unstable
}

// HasPath reports whether all steps of a dotted path are keys, beginning with a
// type.
func (v *Version) HasPath(typeName, path string) bool {
	s := v.shapes[typeName]
steps:
	for _, step := range strings.Split(path, ".") {
		for _, f := range s.fields {
			if f.name == step {
				s = f.shape
				continue steps
			}
		}
		return false
	}
	return true
}

// Fits reports whether a value is what the schema calls valid. Check says it
// with severities, which inside of something unstable are all the same.
func (v *Version) Fits(typeName string, value wire.Value) bool {
	s, w := v.shapes[typeName], walk{}
	w.check(ref{shape: s}, value, Fatal, s, tags{})
	return w.bad == 0
}

// Compile is compile, to try bad tables.
var Compile = compile

// Has reports whether the tables have a part that the news name.
func (v *Version) Has(part string) bool {
	if _, ok := v.methods[part]; ok || v.shapes[part] != nil {
		return true
	}
	name, key, isKey := strings.Cut(part, ".")
	name, tag, isTag := strings.Cut(name, "=")
	s := v.shapes[name]
	switch {
	case s == nil:
		return false
	case isKey:
		return slices.ContainsFunc(s.fields, func(f field) bool { return f.name == key })
	case isTag:
		return slices.Contains(s.drafts, tag) ||
			slices.ContainsFunc(s.variants, func(x variant) bool { return x.tag == tag })
	}
	return false
}
