package hearing

import (
	"html"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// takeOut removes a text from the joined pieces, at or after the offset after. Pieces of the agent's own text may
// interrupt the text. end is the offset at which the removed text was, and left has the remaining pieces. ok is false
// if the text was not found.
func takeOut(pieces []string, after int, text string) (end int, left []string, ok bool) {
	all := strings.Join(pieces, "")
	if i := strings.Index(all[min(after, len(all)):], text); i >= 0 {
		i += after
		return i, cutOut(pieces, i, i+len(text)), true
	}
	at, rest := 0, text
	for _, p := range pieces {
		if at >= after && rest != "" && strings.HasPrefix(rest, p) {
			rest = rest[len(p):]
			end = at
		} else {
			left = append(left, p)
			at += len(p)
		}
	}
	return min(end, at), left, rest == ""
}

// cutOut returns pieces without the bytes from one offset to another. The offsets count in the joined text.
func cutOut(pieces []string, from, to int) (left []string) {
	at := 0
	for _, p := range pieces {
		a, b := min(max(from-at, 0), len(p)), min(max(to-at, 0), len(p))
		at += len(p)
		left = append(left, lists.Where([]string{p[:a], p[b:]}, func(part string) bool { return part != "" })...)
	}
	return left
}

// sameLetters reports whether two texts have the same characters, in any order.
func sameLetters(a, b string) bool {
	x, y := []rune(a), []rune(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// Bare returns a text without white space and invisible characters.
func Bare(text string) string {
	return strings.Map(func(r rune) rune {
		if blank(r) {
			return -1
		}
		return r
	}, text)
}

// blank reports whether a character is white space or invisible.
func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// Loose returns a text in a form in which it can be compared with tool results: without white space, and without
// escapes of JSON and XML.
func Loose(text string) string { return escapes.Replace(Bare(html.UnescapeString(text))) }

func clip(s string) string { return wire.Clip(s, 120) }
