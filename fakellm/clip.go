package fakellm

import (
	"strings"
	"unicode/utf8"
)

// clip shortens text for a message to about n characters on one line.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}
