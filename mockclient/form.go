package mockclient

import (
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

	"github.com/acp-test/acp-test/wire"
)

// CheckForm says what in the values of a form does not fit the schema the agent
// asked with (ACP v1, ElicitationSchema). Properties of a type it does not know
// fit anything.
func CheckForm(schema wire.Value, values map[string]any) []string {
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
			problems = append(problems, fmt.Sprintf("%q is not in the form", name))
			continue
		}
		raw, err := json.Marshal(values[name])
		if err == nil {
			var v wire.Value
			if v, err = wire.Parse(raw); err == nil {
				if problem := fits(property, v); problem != "" {
					problems = append(problems, fmt.Sprintf("%q: %s", name, problem))
				}
				continue
			}
		}
		problems = append(problems, fmt.Sprintf("%q: %v", name, err))
	}
	return problems
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
	if n, ok := p.Get("minLength").Int(); ok && int64(utf8.RuneCountInString(text)) < n {
		return fmt.Sprintf("want at least %d characters", n)
	}
	if n, ok := p.Get("maxLength").Int(); ok && int64(utf8.RuneCountInString(text)) > n {
		return fmt.Sprintf("want at most %d characters", n)
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
	if least, ok := p.Get("minimum").Float(); ok && f < least {
		return fmt.Sprintf("want at least %v", least)
	}
	if most, ok := p.Get("maximum").Float(); ok && f > most {
		return fmt.Sprintf("want at most %v", most)
	}
	return ""
}

func fitsArray(p, v wire.Value) string {
	if v.Kind() != wire.Array {
		return "want a list"
	}
	if n, ok := p.Get("minItems").Int(); ok && int64(v.Len()) < n {
		return fmt.Sprintf("want at least %d items", n)
	}
	if n, ok := p.Get("maxItems").Int(); ok && int64(v.Len()) > n {
		return fmt.Sprintf("want at most %d items", n)
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

// choicesOf are the values of an enum in either of its spellings; nil if
// anything goes.
func choicesOf(p wire.Value) []string {
	var choices []string
	for v := range p.Get("enum").Items() {
		choices = append(choices, v.Str())
	}
	for _, list := range []string{"oneOf", "anyOf"} {
		for v := range p.Get(list).Items() {
			choices = append(choices, v.Get("const").Str())
		}
	}
	return choices
}

// FillForm makes up values for a form: declared defaults, and for required
// properties without one the smallest value that fits. A pattern is not solved;
// CheckForm tells.
func FillForm(schema wire.Value) map[string]any {
	values := map[string]any{}
	required := map[string]bool{}
	for name := range schema.Get("required").Items() {
		required[name.Str()] = true
	}
	for name, p := range schema.Get("properties").Members() {
		if d := p.Get("default"); d.Exists() && !d.IsNull() {
			values[name] = rawJSON(d.Raw())
		} else if required[name] {
			values[name] = smallest(p)
		}
	}
	return values
}

func smallest(p wire.Value) any {
	switch p.Get("type").Str() {
	case "boolean":
		return false
	case "number", "integer":
		least, hasLeast := p.Get("minimum").Float()
		most, hasMost := p.Get("maximum").Float()
		switch {
		case hasLeast && least > 0:
			return ceilIf(p, least)
		case hasMost && most < 0:
			if p.Get("type").Is("integer") {
				return math.Floor(most)
			}
			return most
		}
		return 0
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

func ceilIf(p wire.Value, f float64) float64 {
	if p.Get("type").Is("integer") {
		return math.Ceil(f)
	}
	return f
}
