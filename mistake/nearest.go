package mistake

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Nearest returns "did you mean …?" with the known word that Closest finds, or "" if it finds none.
func Nearest(word string, known []string) string {
	if best := Closest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return ""
}

// Closest returns the known word that a misspelt word probably means, or "". It prefers the shortest known word that
// begins with the misspelt one. Otherwise it returns the known word that differs in the fewest letters, if these are
// at most a third of the word's letters, plus one. It returns "" if no known word is that close.
func Closest(word string, known []string) string {
	begun, best, distance := "", "", len(word)/3+2
	for _, k := range slices.Sorted(slices.Values(known)) {
		if strings.HasPrefix(k, word) && len(word) > 2 && (begun == "" || len(k) < len(begun)) {
			begun = k
		}
		if d := edits([]rune(strings.ToLower(word)), []rune(strings.ToLower(k))); d < distance {
			best, distance = k, d
		}
	}
	return cmp.Or(begun, best)
}

// Meant returns the result of Nearest in parentheses, for the end of a message, or "".
func Meant(word string, known []string) string { return behind(Nearest(word, known)) }

// Suggested returns the result of Suggest in parentheses, for the end of a message, or "".
func Suggested(word string, known []string) string { return behind(Suggest(word, known)) }

func behind(hint string) string {
	if hint == "" {
		return ""
	}
	return " (" + hint + ")"
}

// Suggest returns the result of Nearest. If no known word is close, it returns the list of all known words instead.
func Suggest(word string, known []string) string {
	if s := Nearest(word, known); s != "" || len(known) == 0 {
		return s
	}
	return "known: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// edits returns the number of edits that turn a into b. An edit inserts, deletes or replaces a letter, or swaps two
// neighbouring letters.
func edits(a, b []rune) int {
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
