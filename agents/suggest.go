package agents

import "strings"

// suggest names the known word that is meant by a misspelt one, else all of
// them.
func suggest(word string, known []string) string {
	best, distance := "", len(word)/3+2
	for _, k := range known {
		if d := edits(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "known: " + strings.Join(known, ", ")
}

// edits counts the letters to insert, delete, replace or swap with the next to
// turn a into b.
func edits(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
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
