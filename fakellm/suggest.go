package fakellm

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// suggest returns a hint that names the known word nearest to a misspelt one,
// or lists all if none is near.
func suggest(word string, known []string) string {
	best, distance := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), k); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	if len(known) == 0 {
		return ""
	}
	known = slices.Sorted(slices.Values(known))
	return "known: " + strings.Join(known, ", ")
}

// editDistance counts the letters to insert, delete, replace or swap.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := [3][]int{make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i, c := range x {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i + 1
		for j, d := range y {
			cost := 1
			if c == d {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && c == y[j-1] && x[i-1] == d {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(y)]
}

// clip shortens text for a message to about n characters on one line.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}
