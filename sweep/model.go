package sweep

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
)

// readModel takes llm.yaml apart, without its blank lines and the comments that
// stand above a first item. A script that is wrong is kept as it is.
func readModel(src string) *fakellm.Document {
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

// says is a turn of one reply, a text.
func says(text string) fakellm.TurnNode {
	return fakellm.TurnNode{Replies: []fakellm.ReplyNode{{Steps: []fakellm.StepNode{fakellm.NewText("text", text)}}}}
}

// plain is a turn without gates and pauses of its own.
func plain(t fakellm.TurnNode) fakellm.TurnNode { return t.Without("gate", "pause", "delay") }

func gate(name string) fakellm.StepNode { return fakellm.NewStep("gate", name) }
