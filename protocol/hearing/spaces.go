package hearing

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lists"
)

// joined returns the model's text around the first white space that the agent left out between two words. If the agent
// left out none, or showed other words than those of the replies, the result is "".
func (t *Turn) joined(owed []*reply) string {
	said := strings.Join(lists.Map(owed, func(x *reply) string { return x.raw.String() }), "\n")
	shown := t.raw.String()
	if t.replaced || Bare(said) != Bare(shown) {
		return ""
	}
	return gap([]rune(said), []rune(shown))
}

// RunTogether returns the part of said around the first white space between two words that is not in shown. Other words
// may be before and after those of said. The result is "" if shown has the words with their white space, or lacks them.
func RunTogether(said, shown string) (at string) {
	if strings.Contains(shown, strings.TrimSpace(said)) {
		return ""
	}
	words, all := Bare(said), Bare(shown)
	for from := 0; words != ""; from += len(words) {
		i := strings.Index(all[from:], words)
		if i < 0 {
			return at
		}
		from += i
		if at = gap([]rune(said), spread(shown, from, from+len(words))); at == "" {
			return ""
		}
	}
	return ""
}

// spread returns the part of a text that Bare returns as the bytes from one offset to another.
func spread(text string, from, to int) (part []rune) {
	at := 0
	for _, r := range text {
		if at >= from && at < to {
			part = append(part, r)
		}
		if !blank(r) {
			at += utf8.RuneLen(r)
		}
	}
	return part
}

// gap returns the part of said around the first white space between two words that shown lacks. The words of both are
// the same.
func gap(said, shown []rune) string {
	within := false // a word was read, so that white space parts it from the next
	for i, j := 0, 0; ; i, j = i+1, j+1 {
		i0, j0 := i, j
		for i < len(said) && blank(said[i]) {
			i++
		}
		for j < len(shown) && blank(shown[j]) {
			j++
		}
		if i == len(said) || j == len(shown) {
			return ""
		}
		if within && j == j0 && slices.ContainsFunc(said[i0:i], unicode.IsSpace) {
			return string(said[max(i0-around, 0):min(i+around, len(said))])
		}
		within = true
	}
}

// around is how many characters of a text are quoted before and after a place in it.
const around = 12
