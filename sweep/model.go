package sweep

import (
	"slices"
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

// Hold is the gate that holds the model at the point of a schedule.
const Hold = "hold"

// Says is a turn of the model with one reply, a text.
func Says(text string) fakellm.TurnNode { return fakellm.NewTurn(fakellm.NewReply(fakellm.Text(text))) }

// Gate is a step at which the model waits.
func Gate(name string) fakellm.StepNode { return fakellm.NewStep("gate", name) }

// Plain is a turn without gates and pauses of its own.
func Plain(t fakellm.TurnNode) fakellm.TurnNode { return t.Without("gate", "pause", "delay") }

// after is the first place of a turn behind so many bytes of what its steps of a kind say;
// nil if there is none.
func after(t fakellm.TurnNode, kind string, bytes int) *fakellm.Place {
	all, total := t.Places(), 0
	for r, rep := range t.Replies {
		for s, st := range rep.Steps {
			if st.Kind != kind {
				continue
			}
			for p, piece := range st.Pieces {
				if total += len(piece); total < bytes {
					continue
				}
				i := slices.Index(all, fakellm.Place{Reply: r, Step: s, Piece: p})
				if i < 0 || i+1 >= len(all) {
					return nil
				}
				return &all[i+1]
			}
		}
	}
	return nil
}
