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

// Awaited is a converted scenario that also awaits the turns which the recording ended in:
// where nothing else went wrong, that they never ended did.
func Awaited(text []byte) []byte {
	f, _ := script.Parse("", text) // it was made here
	var open []string
	end := 0 // behind the last line that does something
	for i, l := range f.Lines {
		if l.Kind != script.Command {
			continue
		}
		end = i + 1
		switch {
		case l.Says("prompt") && len(l.Words) > 1:
			open = append(open, l.Words[0].String())
		case l.Says("await", "turn"):
			name := ""
			for _, w := range l.Words {
				if key, _, of, ok := w.Cut("="); ok && key == "session" {
					name = of.String()
				}
			}
			if i := slices.IndexFunc(open, func(s string) bool { return s == name || name == "" }); i >= 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	for _, name := range open {
		f.Lines = slices.Insert(f.Lines, end, script.New("await turn session=%s", script.Text(name)))
		end++
	}
	return script.Format(f)
}
