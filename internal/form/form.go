// Package form checks and fills the forms of an elicitation. A form is an object without nested objects, described in
// a subset of JSON Schema.
package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Check validates a form's values against the agent's schema and returns the problems (ACP v1, ElicitationSchema). It
// accepts any value for a property of an unknown type.
func Check(schema wire.Value, values map[string]any) []string {
	var problems []string
	properties := schema.Get("properties")
	for name := range schema.Get("required").Items() {
		if _, ok := values[name.Str()]; !ok {
			problems = append(problems, fmt.Sprintf("%q is required", name.Str()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		property := properties.Get(name)
		if !property.Exists() {
			problems = append(problems, fmt.Sprintf("the form has no field %q", name))
			continue
		}
		if problem := fitsAny(property, values[name]); problem != "" {
			problems = append(problems, fmt.Sprintf("%q: %s", name, problem))
		}
	}
	return problems
}

func fitsAny(p wire.Value, value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	v, err := wire.Parse(raw)
	if err != nil {
		return err.Error()
	}
	return fits(p, v)
}

func fits(p, v wire.Value) string {
	switch p.Get("type").Str() {
	case "string":
		return fitsString(p, v)
	case "number", "integer":
		return fitsNumber(p, v)
	case "boolean":
		if v.Kind() != wire.Bool {
			return "want a boolean"
		}
	case "array":
		return fitsArray(p, v)
	}
	return ""
}

func fitsString(p, v wire.Value) string {
	if v.Kind() != wire.String {
		return "want a string"
	}
	text := v.Str()
	if problem := within(p, "Length", float64(utf8.RuneCountInString(text)), " characters"); problem != "" {
		return problem
	}
	if pattern := p.Get("pattern"); pattern.Kind() == wire.String {
		if re, err := regexp.Compile(pattern.Str()); err == nil && !re.MatchString(text) {
			return fmt.Sprintf("want a match of %s", pattern.Str())
		}
	}
	if choices := choicesOf(p); choices != nil && !slices.Contains(choices, text) {
		return fmt.Sprintf("want one of %s", strings.Join(choices, ", "))
	}
	var err error
	switch format := p.Get("format").Str(); format {
	case "email":
		_, err = mail.ParseAddress(text)
	case "uri":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && u.Scheme == "" {
			err = fmt.Errorf("no scheme")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return "want a valid " + p.Get("format").Str()
	}
	return ""
}

func fitsNumber(p, v wire.Value) string {
	f, ok := v.Float()
	if v.Kind() != wire.Number || !ok {
		return "want a number"
	}
	if p.Get("type").Is("integer") && f != math.Trunc(f) {
		return "want an integer"
	}
	return within(p, "imum", f, "")
}

// within checks that n is between the property's minKEY and maxKEY, where KEY is key. A missing bound is not checked.
// It returns "" or the problem.
func within(p wire.Value, key string, n float64, unit string) string {
	if least, ok := p.Get("min" + key).Float(); ok && n < least {
		return fmt.Sprintf("want at least %v%s", least, unit)
	}
	if most, ok := p.Get("max" + key).Float(); ok && n > most {
		return fmt.Sprintf("want at most %v%s", most, unit)
	}
	return ""
}

func fitsArray(p, v wire.Value) string {
	if v.Kind() != wire.Array {
		return "want a list"
	}
	if problem := within(p, "Items", float64(v.Len()), " items"); problem != "" {
		return problem
	}
	choices := choicesOf(p.Get("items"))
	for item := range v.Items() {
		if item.Kind() != wire.String {
			return "want a list of strings"
		}
		if choices != nil && !slices.Contains(choices, item.Str()) {
			return fmt.Sprintf("want items of %s", strings.Join(choices, ", "))
		}
	}
	return ""
}

// choicesOf returns the values that an enumeration allows, whether it is written with enum, oneOf or anyOf; nil if
// any value is allowed.
func choicesOf(p wire.Value) []string {
	choices := lists.Collect(p.Get("enum").Items(), wire.Value.Str)
	for _, list := range []string{"oneOf", "anyOf"} {
		for v := range p.Get(list).Items() {
			choices = append(choices, v.Get("const").Str())
		}
	}
	return choices
}

// Fill returns values for a form: the declared defaults and, for required properties without a default, the smallest
// valid value. Fill ignores patterns, so a value may be invalid; Check reports that.
func Fill(schema wire.Value) map[string]any {
	values := map[string]any{}
	required := map[string]bool{}
	for name := range schema.Get("required").Items() {
		required[name.Str()] = true
	}
	for name, p := range schema.Get("properties").Members() {
		if d := p.Get("default"); d.Exists() && !d.IsNull() {
			values[name] = json.RawMessage(bytes.Clone(d.Raw()))
		} else if required[name] {
			values[name] = smallest(p)
		}
	}
	return values
}

// nearestToZero returns the number within the bounds of a schema that is nearest to 0.
func nearestToZero(p wire.Value) float64 {
	if least, ok := p.Get("minimum").Float(); ok && least > 0 {
		return least
	}
	if most, ok := p.Get("maximum").Float(); ok && most < 0 {
		return most
	}
	return 0
}

func smallest(p wire.Value) any {
	switch p.Get("type").Str() {
	case "boolean":
		return false
	case "number":
		return nearestToZero(p)
	case "integer":
		n := nearestToZero(p)
		if n > 0 {
			return math.Ceil(n)
		}
		return math.Floor(n)
	case "array":
		n, _ := p.Get("minItems").Int()
		choices := choicesOf(p.Get("items"))
		list := []string{}
		for i := range min(n, 1000) {
			item := "x"
			if len(choices) > 0 {
				item = choices[int(i)%len(choices)]
			}
			list = append(list, item)
		}
		return list
	}
	if choices := choicesOf(p); len(choices) > 0 {
		return choices[0]
	}
	switch p.Get("format").Str() {
	case "email":
		return "user@example.com"
	case "uri":
		return "https://example.com/"
	case "date":
		return "2000-01-01"
	case "date-time":
		return "2000-01-01T00:00:00Z"
	}
	n, _ := p.Get("minLength").Int()
	return strings.Repeat("x", int(max(0, min(n, 1<<20))))
}
