package fakellm

import (
	"bytes"

	"github.com/acp-test/acp-test/wire"
)

// said is an answer of a real provider, read back into steps.
type said struct {
	steps []Step
	tools map[string]int // the step of each tool call, by what the API calls it
	usage Usage
	used  bool
	stop  Stop
	ended bool
}

// say appends a piece of a text; empty ones say nothing.
func (h *said) say(kind StepKind, piece string) {
	if piece == "" {
		return
	}
	if n := len(h.steps); n > 0 && h.steps[n-1].Kind == kind {
		h.steps[n-1].Chunks = append(h.steps[n-1].Chunks, piece)
		return
	}
	h.steps = append(h.steps, Step{Kind: kind, Chunks: []string{piece}})
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
		h.steps[i].Chunks = append(h.steps[i].Chunks, piece)
	}
}

func (h *said) end(s Stop) { h.stop, h.ended = s, true }

// readAnswer reads a whole body, streamed or not.
func readAnswer(f format, body []byte) *said {
	h := &said{}
	if v, err := wire.Parse(body); err == nil {
		if v.Kind() != wire.Array {
			f.readBody(h, v)
			return h
		}
		for item := range v.Items() {
			f.readEvent(h, item)
		}
		return h
	}
	var data []byte
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			continue
		}
		if len(line) == 0 && len(data) > 0 {
			if v, err := wire.Parse(data); err == nil {
				f.readEvent(h, v)
			}
			data = nil
		}
	}
	return h
}

func number64(v wire.Value, to *int) bool {
	n, ok := v.Int()
	if ok {
		*to = int(n)
	}
	return ok
}

// spent reads the members of a usage that are there.
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
