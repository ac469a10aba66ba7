package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/transcript"
)

// compareSpaces checks that a replay keeps the white space between the words of a prompt and of a reply of the model.
// raw has the texts of the model.
func (w *watch) compareSpaces(k *talk, r *replayed, ev *event, raw string) {
	if w.version.states {
		return
	}
	for _, x := range k.past {
		if x.topic == thoughtChunk || x.raw.Len() < tellsApart { // a short text may be elsewhere in the replay
			continue
		}
		at := hearing.RunTogether(x.raw.String(), r.raw(x.topic).String())
		lost := at != "" && (x.topic == userChunk || strings.Contains(raw, at))
		w.judge("joined", lost, ev, "", []int{x.seq, ev.request.seq},
			"%s left out the white space at %q in the message that began with #%d.", ev.Method, clip(at), x.seq)
	}
}

// modelTexts returns a builder that receives, while the transcript is read, the texts of the model, with a NUL byte
// before each reply.
func (w *watch) modelTexts() *strings.Builder {
	var texts strings.Builder
	n := 0
	w.On(func(ev *event) {
		if ev.Kind != transcript.ModelChunk || !ev.body.Get("says").Is("text") || texts.Len() >= 4*rememberedText {
			return
		}
		if ev.number() != n {
			n = ev.number()
			texts.WriteByte(0)
		}
		texts.WriteString(fakellm.ChunkText(ev.body))
	}, modelEvent)
	return &texts
}
