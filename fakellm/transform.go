package fakellm

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// transform turns the text of an argument into what an agent's tool wants; with
// is what stands behind the colon, "" if nothing does.
type transform func(text, with string) string

// transforms are what may stand in ${name|transform}.
var transforms = map[string]transform{
	"prefix": func(text, with string) string {
		var b strings.Builder
		for line := range strings.Lines(text) {
			b.WriteString(with + line)
		}
		return b.String()
	},
	"chomp": func(text, _ string) string { return strings.TrimSuffix(text, "\n") },
	"json": func(text, _ string) string {
		quoted := appendJSON(nil, text)
		return string(quoted[1 : len(quoted)-1])
	},
	"shell": func(text, _ string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" },
}

// Transforms returns the names of the transformations that a Tool's templates
// may ask for, sorted:
//
//	chomp     without the newline at the end
//	json      as the inside of a JSON string
//	prefix:X  with X before each line
//	shell     as one word of a POSIX shell
func Transforms() []string { return slices.Sorted(maps.Keys(transforms)) }

// place is where an argument is put in: $$, ${name|transform:with|…} or $name.
var place = regexp.MustCompile(`\$\$|\$\{([a-z_]+)((?:\|[^|}]*)*)\}|\$([a-z_]+)`)

// insert puts the arguments in; $$ is a dollar. A name that is no argument stays.
func insert(s string, args object) string {
	return place.ReplaceAllStringFunc(s, func(found string) string {
		m := place.FindStringSubmatch(found)
		switch {
		case found == "$$":
			return "$"
		case m[1] != "":
			text, ok := args.text(m[1])
			if !ok {
				return found
			}
			for step := range strings.SplitSeq(strings.TrimPrefix(m[2], "|"), "|") {
				name, with, _ := strings.Cut(step, ":")
				if change := transforms[name]; change != nil {
					text = change(text, with)
				}
			}
			return text
		}
		// A name may be followed by more letters: mcp__$server__$tool.
		for name := m[3]; name != ""; name = name[:len(name)-1] {
			if text, ok := args.text(name); ok {
				return text + m[3][len(name):]
			}
		}
		return found
	})
}

// text is an argument as text: what is none is written as JSON.
func (o object) text(name string) (string, bool) {
	v, ok := o.get(name)
	if text, is := v.(string); is {
		return text, true
	}
	return string(appendJSON(nil, v)), ok
}
