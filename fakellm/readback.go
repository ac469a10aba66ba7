package fakellm

import (
	"bytes"

	"github.com/acp-test/acp-test/wire"
)

// said is a real provider's answer, converted back to steps.
type said struct {
	steps []Step
	tools map[string]int // index of the step of each tool call, by the API's id for the call
	usage Usage
	used  bool
	stop  Stop
	ended bool
	// pieces contains the texts and the pieces of arguments in the order of arrival.
	pieces []piece
}

// spoken contains the names, in a transcript, of the kinds of steps whose content arrives in pieces.
var spoken = [...]string{StepText: "text", StepThinking: "thinking", StepRefusal: "refusal", StepTool: "tool"}

// piece is the text of one chunk, with the index of the step it belongs to.
type piece struct {
	step int
	text string
}

// say adds a piece to the current step, or starts a new step if the current step has another kind. It ignores an
// empty piece.
func (h *said) say(kind StepKind, piece string) {
	if piece == "" {
		return
	}
	if n := len(h.steps); n == 0 || h.steps[n-1].Kind != kind {
		h.steps = append(h.steps, Step{Kind: kind})
	}
	h.add(len(h.steps)-1, piece)
}

func (h *said) add(step int, text string) {
	h.steps[step].Chunks = append(h.steps[step].Chunks, text)
	h.pieces = append(h.pieces, piece{step, text})
}

func (h *said) tool(key, name string) {
	if h.tools == nil {
		h.tools = map[string]int{}
	}
	h.tools[key] = len(h.steps)
	h.steps = append(h.steps, Step{Kind: StepTool, Tool: name, Raw: true})
}

func (h *said) args(key, piece string) {
	if i, ok := h.tools[key]; ok && piece != "" {
		h.add(i, piece)
	}
}

func (h *said) end(s Stop) { h.stop, h.ended = s, true }

// reader reads the body of a provider's answer while it arrives, whether it is streamed or not.
type reader struct {
	format format
	body   bytes.Buffer
	said   said
	line   int // offset in body of the first incomplete line
	data   []byte
	begun  map[int]string // by step: the rest of a secret whose beginning was in the last piece
}

func (r *reader) write(b []byte) {
	r.body.Write(b)
	if bytes.IndexByte(b, '\n') < 0 {
		return
	}
	all := r.body.Bytes()
	end := bytes.LastIndexByte(all, '\n') + 1
	for line := range bytes.Lines(all[r.line:end]) {
		r.event(line)
	}
	r.line = end
}

// event reads one line of an event stream.
func (r *reader) event(line []byte) {
	line = bytes.TrimRight(line, "\r\n")
	if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		r.data = append(r.data, bytes.TrimPrefix(rest, []byte(" "))...)
		return
	}
	if len(line) == 0 && len(r.data) > 0 {
		if v, err := wire.Parse(r.data); err == nil {
			r.format.readEvent(&r.said, v)
		}
		r.data = nil
	}
}

// finish returns the complete answer. It may be called only after the body has ended.
func (r *reader) finish() *said {
	v, err := wire.Parse(r.body.Bytes())
	switch {
	case err != nil: // the body was a stream of events
	case v.Kind() != wire.Array:
		r.format.readBody(&r.said, v)
	default:
		for item := range v.Items() {
			r.format.readEvent(&r.said, item)
		}
	}
	return &r.said
}

func number64(v wire.Value, to *int) bool {
	n, ok := v.Int()
	if ok {
		*to = int(n)
	}
	return ok
}

// spent reads the token counts of a usage object. A count that is missing keeps its old value.
func (h *said) spent(u wire.Value, input, output, cached, reasoning string) {
	if u.Kind() != wire.Object {
		return
	}
	h.used = true
	number64(u.Path(input), &h.usage.Input)
	number64(u.Path(output), &h.usage.Output)
	number64(u.Path(cached), &h.usage.Cached)
	if reasoning != "" {
		number64(u.Path(reasoning), &h.usage.Reasoning)
	}
}
