package secret

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
)

var (
	// assigned matches "key: value" or "the key is value", if the name begins with the text.
	assigned = lazy.Regexp(`(?i)^` + assignment)
	// counted matches names of amounts or places, whose values are no secrets. word matches words that stand in the
	// place of a secret's value, such as "missing".
	counted = lazy.Regexp(`(?i)limit|max|count|budget|usage|expir|ttl|type|length|name|path|file|url`)
	word    = lazy.Regexp(`(?i)^(?:required|missing|invalid|expired?|incorrect|unknown|optional|string|number|boolean|` +
		`undefined|default|disabled|enabled|rejected|accepted|revoked|needed|removed|hidden|masked|\*+)$`)
)

// assignment is the pattern of "key: value" and "the key is value" in running text. Its groups are the name, what
// stands between, and the value.
const assignment = `([a-z0-9_.-]*(?:api[ _-]?key|token|secret|passw(?:or)?d|passphrase|authorization|credential|` +
	`cookie|[_-]key|_auth)s?)\\*["'\x60]?(\s*[:=]\s*|\s+(?:is|was|are|equals)\s+)\\*["'\x60]?` +
	`(?:(?:bearer|basic|token)\s+)?([^\s"'\x60,;&)\]}\\{\[<]{5,}[^\s"'\x60,;&)\]}\\.:!?{\[<])`

// meaning are the words with which the name of a secret ends, but for a plural.
var meaning = [][]byte{[]byte("_key"), []byte("-key"), []byte("apikey"), []byte("api key"), []byte("token"),
	[]byte("secret"), []byte("password"), []byte("passwd"), []byte("passphrase"), []byte("authorization"),
	[]byte("credential"), []byte("cookie"), []byte("_auth")}

// plausible reports whether the value after a name in running text may be a secret. rest is the text after the value.
// Code, paths and words about secrets are not plausible. A value before a bracket, as in config["token"], must
// contain a digit. After "is", the value must contain a digit, or small letters and a capital letter that is not its
// first.
func plausible(name, separator, value string, rest []byte) bool {
	digit := strings.ContainsAny(value, "0123456789")
	switch {
	case !Name(strings.ReplaceAll(name, " ", "_")), Name(value), counted().MatchString(name), word().MatchString(value),
		strings.ContainsAny(value, "($"), filepath.IsAbs(value):
		return false
	case len(rest) > 0 && strings.IndexByte("{[<", rest[0]) >= 0:
		return digit
	case strings.ContainsAny(separator, ":="):
		return digit || !strings.Contains(value, ".")
	}
	return digit || strings.ToLower(value[1:]) != value[1:] && strings.ToUpper(value) != value
}

// Assigned replaces values that are secret according to running text, such as "key: value" or "the key is value".
func Assigned(b []byte, mark func(secret string) string) []byte {
	return substitute(b, slices.DeleteFunc(assignments(b), func(m []int) bool {
		return !plausible(string(b[m[2]:m[3]]), string(b[m[4]:m[5]]), string(b[m[6]:m[7]]), b[m[7]:])
	}), mark)
}

// assignments returns what FindAllSubmatchIndex would for the assignments that begin at the boundary of a word. The
// pattern is tried only at names that a separator follows, because nearly all text has none, and each text that is
// written or shown is searched.
func assignments(b []byte) (all [][]int) {
	end := 0
	for _, n := range namesIn(b) {
		from := n.from
		for from > end && nameLetter(b[from-1]) {
			from--
		}
		for from < n.from && !boundary(b, from) {
			from++
		}
		if n.from < end || !boundary(b, from) {
			continue
		}
		m := assigned().FindSubmatchIndex(b[from:])
		if m == nil {
			continue
		}
		for i := range m {
			m[i] += from
		}
		all, end = append(all, m), m[1]
	}
	return all
}

// ending is the last word of a name: b[from:to].
type ending struct{ from, to int }

// namesIn returns the last words of the names of secrets in b that a separator follows, in their order.
func namesIn(b []byte) (all []ending) {
	lower := lowered(b)
	for _, word := range meaning {
		for from := 0; ; {
			n := bytes.Index(lower[from:], word)
			if n < 0 {
				break
			}
			from += n + len(word)
			if separated(lower[from:]) {
				all = append(all, ending{from - len(word), from})
			}
		}
	}
	slices.SortFunc(all, func(a, b ending) int { return cmp.Compare(a.from, b.from) })
	return all
}

// separated reports whether a separator between a name and its value, and a value of some length, may follow where the
// name's last word ends.
func separated(rest []byte) bool {
	rest = unquoted(bytes.TrimPrefix(rest, []byte("s")))
	after := bytes.TrimLeft(rest, blanks)
	switch {
	case len(after) == 0:
		return false
	case after[0] == ':' || after[0] == '=':
		value := unquoted(bytes.TrimLeft(after[1:], blanks))
		return len(value) >= 5 && !bytes.ContainsAny(value[:5], blanks+"\"'`,;&)]}\\{[<")
	}
	return len(after) < len(rest) && strings.IndexByte("iwae", after[0]) >= 0
}

const blanks = "\t\n\f\r "

// unquoted returns text without a quotation mark at its start, which backslashes may escape.
func unquoted(text []byte) []byte {
	text = bytes.TrimLeft(text, `\`)
	if len(text) > 0 && strings.IndexByte("\"'`", text[0]) >= 0 {
		return text[1:]
	}
	return text
}

// boundary reports whether a word begins or ends at index i.
func boundary(b []byte, i int) bool {
	return (i > 0 && wordLetter(b[i-1])) != (i < len(b) && wordLetter(b[i]))
}

func nameLetter(c byte) bool { return wordLetter(c) || c == '.' || c == '-' }

func wordLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// lowered returns b with small letters instead of the capitals of ASCII, at the same indexes.
func lowered(b []byte) []byte {
	first := slices.IndexFunc(b, func(c byte) bool { return c >= 'A' && c <= 'Z' })
	if first < 0 {
		return b
	}
	out := slices.Clone(b)
	for i, c := range out[first:] {
		if c >= 'A' && c <= 'Z' {
			out[first+i] = c | 0x20
		}
	}
	return out
}

// Hinted reports whether Named or Assigned may find something. It is faster than they are.
func Hinted(b []byte) bool {
	flag, parameter, pair := notations(b)
	return flag || parameter || pair || hasLogin(b) || len(namesIn(b)) > 0
}
