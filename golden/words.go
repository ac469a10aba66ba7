package golden

import (
	"regexp"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
)

// Piece is a part of two texts: of both (' '), of the wanted one alone ('-') or of the
// other alone ('+').
type Piece struct {
	Op   rune
	Text string
}

// token is a word, a run of what else is no space, or spaces; a line break stands alone.
var token = regexp.MustCompile(`\n|[^\S\n]+|[\pL\pN_]+|[^\s\pL\pN_]`)

// Words compares two texts word by word. The pieces without '+' are want, those without
// '-' are got.
func Words(want, got string) []Piece {
	// A difference of lines, with a word on each.
	const newline = "\x00"
	lines := func(text string) string {
		var b strings.Builder
		for _, t := range token.FindAllString(text, -1) {
			b.WriteString(strings.ReplaceAll(t, "\n", newline) + "\n")
		}
		return b.String()
	}
	var pieces []Piece
	add := func(op rune, words string) {
		text := strings.ReplaceAll(strings.ReplaceAll(words, "\n", ""), newline, "\n")
		if last := len(pieces) - 1; last >= 0 && pieces[last].Op == op {
			pieces[last].Text += text
		} else if text != "" {
			pieces = append(pieces, Piece{op, text})
		}
	}
	old, at := lines(want), 0
	for _, e := range udiff.Lines(old, lines(got)) {
		add(' ', old[at:e.Start])
		add('-', old[e.Start:e.End])
		add('+', e.New)
		at = e.End
	}
	add(' ', old[at:])
	return pieces
}
