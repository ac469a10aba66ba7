package sweep

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
)

// ReadModel takes llm.yaml apart, without its blank lines and the comments that
// stand above a first item. A script that is wrong is kept as it is.
func ReadModel(src string) *fakellm.Document {
	d, err := fakellm.ParseDocument("llm.yaml", []byte(src))
	if err != nil {
		return &fakellm.Document{Rest: src}
	}
	d.Lead = nil
	for i := range d.Turns {
		d.Turns[i].Lead = nil
		for j := range d.Turns[i].Replies {
			r := &d.Turns[i].Replies[j]
			r.Lead = nil
			for k := range r.Steps {
				r.Steps[k].Text = withoutBlank(r.Steps[k].Text)
			}
		}
	}
	return d
}

func withoutBlank(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
