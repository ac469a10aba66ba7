// Package glob matches names and texts with patterns in which * and ? stand for
// what is not known. No other letter has a meaning.
package glob

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Path reports whether a pattern fits a name in which slashes part levels: * is
// any text on one level, ** as a level of its own any levels, ? one letter.
func Path(pattern, name string) bool {
	return doublestar.MatchUnvalidated(escape(pattern), name)
}

// Text reports whether a pattern fits a text in which slashes mean nothing: * is
// any text, ? one letter.
func Text(pattern, text string) bool {
	one := strings.NewReplacer("/", "\x00", "**", "*")
	return doublestar.MatchUnvalidated(escape(one.Replace(pattern)), strings.ReplaceAll(text, "/", "\x00"))
}

func escape(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `{`, `\{`).Replace(pattern)
}
