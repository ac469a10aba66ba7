// Package glob matches names and texts with patterns in which * and ? are
// wildcards. All other characters stand for themselves.
package glob

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Path reports whether a pattern matches a name whose levels are separated by slashes. * matches any text on one
// level, and ? matches one character. ** as a level matches any number of levels.
func Path(pattern, name string) bool {
	return doublestar.MatchUnvalidated(escape(pattern), name)
}

// Text reports whether a pattern matches a text in which slashes have no meaning: * matches any text, and ? one
// character.
func Text(pattern, text string) bool {
	one := strings.NewReplacer("/", "\x00", "**", "*")
	return doublestar.MatchUnvalidated(escape(one.Replace(pattern)), strings.ReplaceAll(text, "/", "\x00"))
}

func escape(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `{`, `\{`).Replace(pattern)
}
