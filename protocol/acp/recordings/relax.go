package recordings

import (
	"slices"

	"github.com/acp-test/acp-test/scenarios/script"
)

// Relaxed is a converted scenario that says nothing of how turns and requests end: one
// that is to show what an agent does wrong must not ask for it.
func Relaxed(text []byte) []byte {
	f, _ := script.Parse("", text) // it was made here
	for i, l := range f.Lines {
		if !l.Says("await", "turn") && !l.Says("await", "response") {
			continue
		}
		keep := slices.DeleteFunc(slices.Clone(l.Words), func(w script.Word) bool {
			key, _, _, option := w.Cut("=")
			stop := l.Says("await", "turn") && !option && !w.Is("turn")
			return stop || option && key == "code"
		})
		relaxed := script.New("await %s", keep)
		relaxed.As = l.As
		f.Lines[i] = relaxed
	}
	return script.Format(f)
}
