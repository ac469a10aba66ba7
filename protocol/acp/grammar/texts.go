package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/sweep"
)

// text draws a text with a number that is unique in the conversation. About one text in twenty is long.
func (w *writer) text() string {
	w.n++
	most := 6
	switch w.r.IntN(20) {
	case 0:
		most = 400
	case 1, 2, 3:
		return fmt.Sprintf("Nr%d.", w.n) // another text may begin with this whole text
	case 4: // wherever it is cut off, a character of two units may be there
		if !w.plain() {
			return fmt.Sprintf("Nr%d %s.", w.n, strings.Repeat("🙂", 40+w.n%2)+strings.Repeat("a🙂", 60))
		}
	}
	if w.plain() {
		return fmt.Sprintf("Number %d.", w.n)
	}
	start := "" // of a heading or a list
	if w.one(20) {
		start = pick(w.r, []string{"# ", "- ", "> "})
	}
	out := []string{start + fmt.Sprintf("Nr%d", w.n)}
	for range 1 + w.r.IntN(most) {
		out = append(out, pick(w.r, sweep.Words))
	}
	sep := " "
	if w.r.IntN(6) == 0 {
		sep = "\n"
	}
	return strings.Join(out, sep) + pick(w.r, []string{".", "", "!", " fin.", "\n"})
}

// pieces cuts a text into pieces between characters.
func (w *writer) pieces(text string) []string {
	runes := []rune(text)
	n := min(len(runes), 1+w.r.IntN(4))
	var cuts []int
	for range n - 1 {
		cuts = append(cuts, 1+w.r.IntN(len(runes)-1))
	}
	slices.Sort(cuts)
	var out []string
	from := 0
	for _, at := range append(slices.Compact(cuts), len(runes)) {
		out = append(out, string(runes[from:at]))
		if from = at; w.r.IntN(64) == 0 {
			out = append(out, "") // some model servers send empty pieces
		}
	}
	return out
}

// pick draws an element of a list.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// weighted is one of several alternatives. off says that the alternative is impossible now.
type weighted[T any] struct {
	weight int
	value  T
	off    bool
}

// choose draws an alternative by weight. If the drawn one is off, choose draws again; ok is false if all are off. This
// way, the result changes little when other alternatives are switched off. So a conversation stays nearly the same
// when earlier parts of it are left out.
func choose[T any](r *rand.Rand, list []weighted[T]) (value T, ok bool) {
	sum := 0
	for _, a := range list {
		sum += a.weight
	}
	for range 64 * min(sum, 1) {
		at := r.IntN(sum)
		for _, a := range list {
			if at -= a.weight; at < 0 {
				if !a.off {
					return a.value, true
				}
				break
			}
		}
	}
	a, ok := lists.Find(list, func(a weighted[T]) bool { return !a.off && a.weight > 0 })
	return a.value, ok
}
