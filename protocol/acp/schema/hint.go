package schema

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// article returns the name of a kind with its article.
func article(k wire.Kind) string {
	switch k {
	case wire.Null, wire.Missing:
		return k.String()
	case wire.Array, wire.Object:
		return "an " + k.String()
	}
	return "a " + k.String()
}

// excerpt returns the beginning of a value's JSON text, at most 40 characters, for a message.
func excerpt(v wire.Value) string { return wire.Clip(string(v.Raw()), 40) }

// either returns values as a list in words, such as "a", "b" or "c".
func either(values []string) string {
	quoted := lists.Map(values, wire.Quote)
	last := max(len(quoted)-1, 0)
	if last == 0 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

func meant(name string) string {
	if name == "" {
		return ""
	}
	return " (" + wire.Quote(name) + " is meant?)"
}

// listed returns the values of an enum, or the stable tags of a union.
func (s *shape) listed() []string {
	if s.kind == enum {
		return s.values
	}
	var tags []string
	for _, v := range s.variants {
		if !v.unstable {
			tags = append(tags, v.tag)
		}
	}
	return tags
}

func startsCustom(v wire.Value) bool { return strings.HasPrefix(v.Str(), "_") }

// closestKey returns the field of a record that the writer of an unknown key probably meant, or "". It ignores fields
// that v already has.
func (s *shape) closestKey(name string, v wire.Value) string {
	var free []string
	for i := range s.fields {
		if !v.Get(s.fields[i].name).Exists() {
			free = append(free, s.fields[i].name)
		}
	}
	return closest(name, free)
}

// closest returns the known name that the writer of name probably meant, or "". There are three ways to be close: the
// names differ only in case and separators, one is the end of the other (modeId, currentModeId), or at most two
// letters differ.
func closest(name string, known []string) string {
	folded := fold(name)
	if len(folded) < 2 {
		return ""
	}
	if i := slices.IndexFunc(known, func(k string) bool { return fold(k) == folded }); i >= 0 {
		return known[i]
	}
	for _, k := range known {
		f := fold(k)
		if short, long := min(len(f), len(folded)), max(len(f), len(folded)); short >= 4 && short*3 >= long &&
			(strings.HasSuffix(f, folded) || strings.HasSuffix(folded, f)) {
			return k
		}
	}
	best, least := "", 3
	for _, k := range known {
		if d := distance(folded, fold(k)); d < least && d*3 < len(folded) {
			best, least = k, d
		}
	}
	return best
}

// fold returns a form of a name that is equal for session_id, sessionId and Session-ID.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// distance returns the Levenshtein distance of two short names, in bytes.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
