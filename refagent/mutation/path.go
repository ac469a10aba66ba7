package mutation

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ref is a reference to values: to members of the current message, to members of the request that it answers, or to
// notes.
type ref struct {
	word   string // "": the message's body; ".": the whole message; else a name
	note   bool   // word is the name of a note
	global bool   // for a note: it belongs to the connection
	key    *ref   // for a note: reference to the value it belongs to; may be nil
	path   []segment
}

// segment is one step of a path. It selects a member by name, an element by index, or the members or elements that
// meet a filter.
type segment struct {
	name   string
	index  int          // index of an element, if name is a number
	filter []*condition // conditions that must all be true
}

// words matches the words with special values.
var words = lazily(`^(SESSION|NEW|MESSAGE|UPDATE|IT|REQUEST|REQUESTID|PROMPT|PROMPTS|OPEN|KEY|SIZE)\b`)

var noteName = lazily(`^(@@?)([a-zA-Z]\w*)(?:\[([^\]]+)\])?`)

// lazily returns a function that compiles an expression on its first call. Most agents run without a mutation and
// need no expressions.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// parseRef parses a reference such as toolCall.toolCallId, .id, @asked[.id] or content.[type=diff].path.
func parseRef(s string) (*ref, error) {
	r := &ref{}
	rest := s
	switch m := noteName().FindStringSubmatch(s); {
	case m != nil:
		r.note, r.global, r.word = true, m[1] == "@@", m[2]
		if m[3] != "" {
			var err error
			if r.key, err = parseRef(m[3]); err != nil {
				return nil, err
			}
		}
		rest = s[len(m[0]):]
	case words().MatchString(s):
		r.word = words().FindString(s)
		rest = s[len(r.word):]
	case strings.HasPrefix(s, "."):
		r.word = "."
	default:
		rest = "." + s
	}
	if rest == "" {
		return r, nil
	}
	if rest[0] != '.' || rest == "." {
		return nil, fmt.Errorf("%q is no path", s)
	}
	for _, part := range splitOutside(rest[1:], '.') {
		seg, err := parseSegment(part)
		if err != nil {
			return nil, err
		}
		r.path = append(r.path, seg)
	}
	return r, nil
}

func parseSegment(part string) (segment, error) {
	if inner, ok := strings.CutPrefix(part, "["); ok {
		var seg segment
		for one := range strings.SplitSeq(strings.TrimSuffix(inner, "]"), "&") {
			c, err := parseCondition(one)
			if err != nil {
				return segment{}, err
			}
			seg.filter = append(seg.filter, c)
		}
		return seg, nil
	}
	n, _ := strconv.Atoi(part)
	if part == "" || strings.ContainsAny(part, " \"{}") {
		return segment{}, fmt.Errorf("%q is no member of a path", part)
	}
	return segment{name: part, index: n}, nil
}

// splitOutside splits s at each byte at that is not inside brackets.
func splitOutside(s string, at byte) (parts []string) {
	depth, from := 0, 0
	for i := range len(s) {
		switch {
		case s[i] == '[':
			depth++
		case s[i] == ']':
			depth--
		case s[i] == at && depth == 0:
			parts, from = append(parts, s[from:i]), i+1
		}
	}
	return append(parts, s[from:])
}

// picks reports whether the segment selects the member or element v. at is the key of the member, or the index of the
// element in a list of n elements.
func (s segment) picks(m *moment, at any, n int, v any) bool {
	i, list := at.(int)
	switch {
	case s.filter != nil:
		return !slices.ContainsFunc(s.filter, func(c *condition) bool { return c.test(m, c.left.of(m, at, v)) == c.not })
	case s.name == "*":
		return true
	case list:
		return s.name == strconv.Itoa(s.index) && (i == s.index || i == n+s.index)
	}
	return at == s.name
}

// find returns the values that a path selects in v.
func find(m *moment, v any, path []segment) (all []any) {
	if len(path) == 0 {
		return []any{v}
	}
	switch v := v.(type) {
	case map[string]any:
		if inner, has := v[path[0].name]; has {
			return find(m, inner, path[1:])
		}
		for key, inner := range v {
			if path[0].picks(m, key, len(v), inner) {
				all = append(all, find(m, inner, path[1:])...)
			}
		}
	case []any:
		for i, inner := range v {
			if path[0].picks(m, i, len(v), inner) {
				all = append(all, find(m, inner, path[1:])...)
			}
		}
	}
	return all
}

// edit changes the values that a path selects in v. It calls change with each value. change returns the new value and
// true, or false to remove the value. If the last member of the path is missing, edit calls change with has false.
func edit(m *moment, v any, path []segment, change func(old any, has bool) (any, bool)) any {
	step := func(inner any, has bool) (any, bool) {
		if len(path) == 1 {
			return change(inner, has)
		}
		return edit(m, inner, path[1:], change), true
	}
	switch v := v.(type) {
	case map[string]any:
		keys := []string{path[0].name}
		if path[0].filter != nil || path[0].name == "*" {
			keys = slices.Collect(maps.Keys(v))
		}
		for _, key := range keys {
			inner, has := v[key]
			if !has && len(path) > 1 || has && !path[0].picks(m, key, len(v), inner) {
				continue
			}
			if made, keep := step(inner, has); keep {
				v[key] = made
			} else {
				delete(v, key)
			}
		}
	case []any:
		out := []any{}
		for i, inner := range v {
			keep := true
			if path[0].picks(m, i, len(v), inner) {
				inner, keep = step(inner, true)
			}
			if keep {
				out = append(out, inner)
			}
		}
		return out
	}
	return v
}

// values returns the values that a reference currently selects.
func (r *ref) values(m *moment) []any {
	switch {
	case r.note:
		n := m.notes[r.slot(m)]
		if n == nil {
			return nil
		}
		return find(m, n.value, r.path)
	case r.word == "":
		return find(m, m.body, r.path)
	}
	var all []any
	for _, v := range m.special(r.word) {
		all = append(all, find(m, v, r.path)...)
	}
	return all
}

// of returns the values that the reference in a filter selects in a member or element v. at is the key or the index
// of v.
func (r *ref) of(m *moment, at, v any) []any {
	if r.word == "KEY" {
		return []any{at}
	}
	return find(m, v, r.path)
}

// value returns the first value that a reference selects, or nil if it selects none.
func (r *ref) value(m *moment) any {
	if all := r.values(m); len(all) > 0 {
		return all[0]
	}
	return nil
}

// slot returns the key in Player.notes of the note to which the reference refers.
func (r *ref) slot(m *moment) string {
	scope, key := m.session, ""
	if r.global {
		scope = "*"
	}
	if r.key != nil {
		key = string(encode(r.key.value(m)))
	}
	return scope + "\x00" + r.word + "\x00" + key
}

// change replaces each value that the reference selects by the result of the function change, as edit does.
func (r *ref) change(m *moment, change func(old any, has bool) (any, bool)) {
	switch n := m.notes[r.slot(m)]; {
	case r.note && n == nil:
	case r.note && r.path == nil:
		n.value, _ = change(n.value, true)
	case r.note:
		n.value = edit(m, n.value, r.path, change)
	case r.word == ".":
		edit(m, map[string]any(m.message), r.path, change)
	case m.body != nil:
		edit(m, m.body, r.path, change)
	}
	m.changed = true
}
