package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/wire"
)

// Text of at most whole bytes is shown completely. Longer text is cut after
// head characters, and its size and hash are added.
const (
	whole = 400
	head  = 200
)

// Quote returns text in quotes on one line. It cuts long text and appends its
// digest.
func Quote(s string) string {
	if len(s) <= whole {
		return strconv.Quote(s)
	}
	cut := 0
	for range head {
		_, size := utf8.DecodeRuneInString(s[cut:])
		cut += size
	}
	return strconv.Quote(s[:cut]+"…") + " " + Digest(s)
}

// Digest returns the size of text and the first bytes of its SHA-256 hash.
func Digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return thousands(len(s)) + " bytes sha256:" + hex.EncodeToString(sum[:4])
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// IsWord reports whether s is unambiguous without quotes: letters, digits, "_"
// and "-", beginning with a letter or "_".
func IsWord(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '-')) {
			return false
		}
	}
	return s != ""
}

// QuoteUnlessWord returns text without quotes if it is a word, else in quotes.
func QuoteUnlessWord(s string) string {
	if IsWord(s) {
		return s
	}
	return Quote(s)
}

// PathText returns a path, in quotes only if it needs them.
func PathText(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n\r\"=[]{},") || strconv.Quote(s) != `"`+s+`"` {
		return Quote(s)
	}
	return s
}

// compact appends a JSON value in full, on one line. It sorts keys, because
// their order has no meaning, and adds quotes only where needed. key is the
// name of the member with this value.
func compact(b []byte, m *Mask, key string, v wire.Value) []byte {
	if key != "" && !m.plain && slices.Contains(m.values, key) {
		return append(b, "<any>"...)
	}
	switch v.Kind() {
	case wire.String:
		return m.str(b, key, v.Str())
	case wire.Number:
		return append(b, m.number(key, string(v.Raw()))...)
	case wire.Array:
		b = append(b, '[')
		first := true
		for item := range v.Items() {
			b = separated(b, &first)
			b = compact(b, m, key, item)
		}
		return append(b, ']')
	case wire.Object:
		b = append(b, '{')
		first := true
		for _, member := range sortedMembers(v) {
			if m.Hides(member.key) {
				continue
			}
			b = separated(b, &first)
			b = append(b, QuoteUnlessWord(m.Text(member.key))...)
			b = append(b, ": "...)
			b = compact(b, m, m.under(key, member.key), member.value)
		}
		return append(b, '}')
	case wire.Missing:
		return append(b, "<missing>"...)
	}
	return append(b, v.Raw()...)
}

// separated appends a comma, except on the first call with first set.
func separated(b []byte, first *bool) []byte {
	if !*first {
		b = append(b, ", "...)
	}
	*first = false
	return b
}

// str appends a string, or a placeholder if the string differs from run to run.
func (m *Mask) str(b []byte, key, s string) []byte {
	switch {
	case key == softwareVersion && !m.plain:
		return append(b, "<version>"...)
	case s != "" && strings.Trim(s, "0123456789") == "" && volatile(key) && !m.plain: // a number in quotes
		return append(b, "<n>"...)
	}
	return append(b, Quote(m.Text(s))...)
}

// under returns the key that decides how the value of member is masked. key is
// the name of the enclosing object.
func (m *Mask) under(key, member string) string {
	switch {
	case volatile(key):
		return key // a duration that is given in parts
	case member == "version" && slices.Contains(m.software, key):
		return softwareVersion
	}
	return member
}

// softwareVersion is a key for the version of a program, which is masked. Its
// NUL byte keeps it distinct from real keys.
const softwareVersion = "\x00version"

type member struct {
	key   string
	value wire.Value
}

func sortedMembers(v wire.Value) []member {
	members := make([]member, 0, v.Len())
	for key, value := range v.Members() {
		members = append(members, member{key, value})
	}
	sort.SliceStable(members, func(i, j int) bool { return members[i].key < members[j].key })
	return members
}
