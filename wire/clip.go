package wire

import "unicode/utf8"

// Clip returns the first n bytes of a text, or fewer so that no character is cut
// in two, with an ellipsis behind them; a text that is not longer as it is.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
