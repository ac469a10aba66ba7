package golden

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/transcript"
	udiff "github.com/aymanbagabas/go-udiff"
)

// contextLines is the number of equal lines that Diff shows around a difference.
const contextLines = 3

// GoesOn reports whether got begins with the conversation in want and then
// continues. got must contain the lines of want in order. Up to the editor's
// last act in want, got may have no other lines. After that act, a line of want
// may also be the beginning of a line of got.
func GoesOn(want, got string) bool {
	rest := strings.Split(strings.TrimRight(want, "\n"), "\n")
	acts := 0
	for i, line := range rest {
		if strings.HasPrefix(strings.TrimSpace(line), Arrow(transcript.Editor)) {
			acts = i + 1
		}
	}
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case len(rest) == 0:
			return true
		case line == rest[0], acts <= 0 && strings.HasPrefix(line, strings.TrimSuffix(rest[0], `"`)):
			rest, acts = rest[1:], acts-1
		case acts > 0:
			return false
		}
	}
	return len(rest) == 0
}

// Diff returns the changes that turn want into got, or "" if the texts are
// equal. Its first line explains the signs: "-" marks lines only in want, "+"
// lines only in got. Other lines are context.
func Diff(want, got string) string {
	if want == got {
		return ""
	}
	edits := udiff.Lines(want, got)
	unified, err := udiff.ToUnifiedDiff("want", "got", want, edits, contextLines)
	if err != nil {
		// This cannot happen, because edits was computed from want.
		return fmt.Sprintf("-%s\n+%s\n", want, got)
	}
	var b strings.Builder
	b.WriteString("-want +got\n")
	for _, h := range unified.Hunks {
		fmt.Fprintf(&b, "@@ line %d @@\n", h.FromLine)
		for _, l := range h.Lines {
			switch l.Kind {
			case udiff.Delete:
				b.WriteByte('-')
			case udiff.Insert:
				b.WriteByte('+')
			default:
				b.WriteByte(' ')
			}
			b.WriteString(strings.TrimSuffix(l.Content, "\n"))
			if !strings.HasSuffix(l.Content, "\n") {
				b.WriteString("\n\\ no line break at the end")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Piece is a part of two compared texts. Op is ' ' if both have it, '-' if only
// want has it, and '+' if only got has it.
type Piece struct {
	Op   rune
	Text string
}

// token matches a word, a run of spaces, a line break, or one other character.
var token = lazy.Regexp(`\n|[^\S\n]+|[\pL\pN_]+|[^\s\pL\pN_]`)

// Words compares two texts word by word. All pieces except those with Op '+'
// make up want; all except those with '-' make up got.
func Words(want, got string) []Piece {
	// udiff compares lines, so each word is put on its own line.
	const newline = "\x00"
	lines := func(text string) string {
		var b strings.Builder
		for _, t := range token().FindAllString(text, -1) {
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
