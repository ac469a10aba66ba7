package scenarios

import (
	"fmt"
	"slices"
	"strings"
)

// Mistake is something wrong with a scenario file, a profile or a command
// line: the user's to mend, never the agent's.
type Mistake struct {
	File         string
	Line, Column int // from 1; 0 if unknown
	Message      string
	// Hint says what would be right: "did you mean …", the usage of a command.
	Hint string
}

func (m *Mistake) Error() string {
	s := m.Where() + ": " + m.Message
	if m.Hint != "" {
		s += " (" + m.Hint + ")"
	}
	return s
}

// Where is "file:line:column", as far as it is known.
func (m *Mistake) Where() string {
	s := m.File
	if m.Line > 0 {
		s += fmt.Sprintf(":%d", m.Line)
		if m.Column > 0 {
			s += fmt.Sprintf(":%d", m.Column)
		}
	}
	return s
}

// nearest returns "did you mean …" for the known word closest to a misspelt
// one, or "" if none is close.
func nearest(word string, known []string) string {
	best, distance := "", len(word)/3+2
	for _, k := range slices.Sorted(slices.Values(known)) {
		if strings.HasPrefix(k, word) && len(word) > 2 {
			return fmt.Sprintf("did you mean %q?", k)
		}
		if d := edits(word, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// suggestion is nearest in parentheses, to stand behind a message.
func suggestion(word string, known []string) string {
	if s := nearest(word, known); s != "" {
		return " (" + s + ")"
	}
	return ""
}

// edits is the number of letters to insert, delete, replace or swap.
func edits(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
