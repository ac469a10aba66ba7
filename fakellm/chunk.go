package fakellm

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// spokenChunk is a chunk of an answer: of what kind of step it is, and what it says.
type spokenChunk struct {
	kind StepKind
	text string
}

// told appends the entries of the chunks that are about to leave: one for those of one
// kind, which leave in one write. A reply of many chunks would else be slowed down by
// its transcript. They are written by hand, for the same reason.
func (x *exchange) told() {
	for from := 0; from < len(x.said); {
		kind, to := x.said[from].kind, from+1
		size := len(x.said[from].text)
		for ; to < len(x.said) && x.said[to].kind == kind; to++ {
			size += len(x.said[to].text) + len(`"",`)
		}
		raw := make([]byte, 0, size+size/8+64)
		raw = append(raw, `{"n":`...)
		raw = strconv.AppendInt(raw, int64(x.n), 10)
		raw = append(raw, `,"i":`...)
		raw = strconv.AppendInt(raw, int64(x.chunks-len(x.said)+from+1), 10)
		raw = append(raw, `,"says":"`...)
		raw = append(raw, spoken[kind]...)
		raw = append(raw, `","data":`...)
		raw = appendTexts(raw, x.said[from:to])
		x.s.cfg.Transcript.Events(0, transcript.Model, transcript.ModelChunk, x.session, append(raw, '}'))
		from = to
	}
	clear(x.said)
	x.said = x.said[:0]
}

// appendTexts appends what one chunk says as a string, and what several say as a list.
func appendTexts(b []byte, chunks []spokenChunk) []byte {
	if len(chunks) == 1 {
		return wire.AppendString(b, chunks[0].text)
	}
	b = append(b, '[')
	for i, c := range chunks {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, c.text)
	}
	return append(b, ']')
}

// ChunkTexts are the texts of the chunks that a ModelChunk entry tells of.
func ChunkTexts(details wire.Value) iter.Seq[string] {
	return func(yield func(string) bool) {
		data := details.Get("data")
		if data.Kind() != wire.Array {
			yield(data.Str())
			return
		}
		for text := range data.Items() {
			if !yield(text.Str()) {
				return
			}
		}
	}
}

// ChunkText is what the chunks of a ModelChunk entry say, joined.
func ChunkText(details wire.Value) string {
	return strings.Join(slices.Collect(ChunkTexts(details)), "")
}
