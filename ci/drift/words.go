package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/ci/must"
)

// fact is the text of the constraint that a schema sets at one place of a type, and of the description there.
type fact struct{ says, about string }

// parts maps the places of a type to their facts. The place "" is the type itself, ".name" a field, "=value" a value
// or a variant.
type parts map[string]fact

type object = map[string]any

// read returns the types of a schema file.
func read(file string) map[string]parts {
	raw := must.Get(os.ReadFile(file))
	var schema struct {
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		must.Fail("%s: %w", file, err)
	}
	all := map[string]parts{}
	for name, def := range schema.Defs {
		all[name] = parts{}
		all[name].add("", def)
	}
	return all
}

// add records the facts of the place at and of all places below it.
func (p parts) add(at string, s object) {
	about, _ := s["description"].(string)
	rest := maps.Clone(s)
	delete(rest, "properties")
	if fields, ok := s["properties"].(object); ok {
		delete(rest, "required")
		for name, field := range fields {
			f, _ := field.(object)
			needed := "may be left out"
			if required, _ := s["required"].([]any); slices.Contains(required, any(name)) {
				needed = "must be there"
			}
			description, _ := f["description"].(string)
			p[at+"."+name] = fact{say(f) + ", " + needed, description}
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		if len(list) == 0 {
			continue
		}
		delete(rest, key)
		for i, v := range list {
			variant, _ := v.(object)
			p.add(fmt.Sprintf("%s=%s", at, tag(variant, i)), variant)
		}
	}
	p[at] = fact{say(rest), about}
}

// tag returns a name that distinguishes a variant from the others.
func tag(variant object, i int) string {
	if c, ok := variant["const"]; ok {
		return fmt.Sprint(c)
	}
	fields, _ := variant["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if f, _ := fields[name].(object); f["const"] != nil {
			return fmt.Sprint(f["const"])
		}
	}
	if title, ok := variant["title"].(string); ok {
		return title
	}
	if only := say(variant); only != "" {
		return only
	}
	return fmt.Sprint(i + 1)
}

// say describes a schema in a few words, without its fields, variants and description.
func say(s object) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		switch v := s[key]; key {
		case "description", "title":
		case "$ref":
			name, _ := v.(string)
			words = append(words, name[strings.LastIndex(name, "/")+1:])
		case "type":
			words = append(words, each(v, " or "))
		case "const":
			words = append(words, fmt.Sprintf("%q", v))
		case "enum":
			words = append(words, "one of "+each(v, ", "))
		case "items":
			words = append(words, "of "+each(v, " or "))
		case "allOf", "anyOf", "oneOf":
			words = append(words, each(v, " or "))
		default:
			text, _ := json.Marshal(v) // v came from JSON, so no error is possible
			words = append(words, key+" "+string(text))
		}
	}
	return strings.Join(words, " ")
}

func each(v any, between string) string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var words []string
	for _, one := range list {
		if s, ok := one.(object); ok {
			words = append(words, say(s))
		} else {
			words = append(words, fmt.Sprint(one))
		}
	}
	return strings.Join(words, between)
}

// words describes the differences, one line per place, type by type. ours returns a text with the type's position in
// this project's tables.
func words(was, is map[string]parts, ours func(typeName string) string) string {
	var b strings.Builder
	names := maps.Clone(is)
	maps.Copy(names, was)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		lines := differences(name, was[name], is[name])
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "- %s%s\n", name, ours(name))
		for _, line := range lines {
			fmt.Fprintf(&b, "  - %s\n", line)
		}
	}
	return b.String()
}

func differences(name string, was, is parts) (lines []string) {
	switch {
	case was == nil:
		return []string{"added: " + list(is)}
	case is == nil:
		return []string{"removed"}
	}
	places := maps.Clone(is)
	maps.Copy(places, was)
	for _, at := range slices.Sorted(maps.Keys(places)) {
		older, had := was[at]
		newer, has := is[at]
		parent := above(at)
		_, before := was[parent]
		_, after := is[parent]
		if parent != "" && !(before && after) {
			continue // the difference of its variant is already in the list
		}
		what := "the type"
		if at != "" {
			what = name + at
		}
		switch {
		case !had:
			lines = append(lines, strings.TrimSuffix("added "+what+": "+newer.says, ": "))
		case !has:
			lines = append(lines, "removed "+what)
		case older.says != newer.says:
			lines = append(lines, fmt.Sprintf("changed %s: was %s, is %s", what, older.says, newer.says))
		case older.about != newer.about:
			lines = append(lines, "described in other words: "+what)
		}
	}
	return lines
}

// above returns the variant that contains a place, or "" if the place is not in a variant.
func above(at string) string {
	if i := strings.LastIndex(at, "."); i > 0 && strings.HasPrefix(at, "=") {
		return at[:i]
	}
	return ""
}

// list returns the names of the fields and values of a type.
func list(p parts) string {
	names := slices.Sorted(maps.Keys(p))
	names = slices.DeleteFunc(names, func(at string) bool { return at == "" || above(at) != "" })
	if len(names) == 0 {
		return p[""].says
	}
	for i, at := range names {
		names[i] = strings.TrimLeft(at, ".=")
	}
	return strings.Join(names, ", ")
}
