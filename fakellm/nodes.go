package fakellm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/wire"
)

// nodesOf writes steps as a script has them, with all variables replaced.
func nodesOf(steps []Step) []StepNode {
	out := make([]StepNode, 0, len(steps))
	for i := range steps {
		out = append(out, nodeOf(&steps[i]))
	}
	return out
}

func nodeOf(s *Step) StepNode {
	switch s.Kind {
	case StepThinking:
		return textNode("thinking", s.Chunks)
	case StepRefusal:
		return textNode("refusal", s.Chunks)
	case StepTool:
		return toolNode(s)
	case StepGate:
		return NewStep("gate", quoted(s.Gate))
	case StepPause:
		return NewStep("pause", s.Pause.String())
	case StepDelay:
		return NewStep("delay", fmt.Sprintf("{ttft: %v, per_chunk: %v}", s.Delay.TTFT, s.Delay.PerChunk))
	case StepUsage:
		return usageNode(s.Usage)
	case StepStop:
		return NewStep("stop", string(s.Stop))
	case StepFail:
		return NewStep("fail", s.Fail.flow())
	}
	return textNode("text", s.Chunks)
}

func quoted(s string) string { return string(yamlfile.Quote(nil, s)) }

// textNode is NewText; one piece that is said again and again stands there once.
func textNode(kind string, chunks []string) StepNode {
	const many = 50
	if n := len(chunks); n > many && len(slices.Compact(slices.Clone(chunks))) == 1 {
		s := NewStep(kind, yamlfile.QuoteAll(chunks[:1]), "repeat: "+strconv.Itoa(n))
		s.Pieces = chunks
		return s
	}
	return NewText(kind, chunks...)
}

func usageNode(u Usage) StepNode {
	return NewStep("usage", fmt.Sprintf("{input: %d, output: %d, cached: %d, reasoning: %d}", u.Input, u.Output, u.Cached,
		u.Reasoning))
}

func toolNode(s *Step) StepNode {
	var more []string
	if s.Raw {
		more = append(more, "raw: "+yamlfile.QuoteAll(s.Chunks))
	} else if len(s.Args) > 0 {
		more = append(more, "args: "+string(appendFlow(nil, s.Args)))
	}
	if s.Pieces > 1 {
		more = append(more, "chunks: "+strconv.Itoa(s.Pieces))
	}
	if s.Gate != "" {
		more = append(more, "args_gate: "+quoted(s.Gate))
	}
	if s.GateAt > 0 {
		more = append(more, "args_gate_at: "+strconv.Itoa(s.GateAt))
	}
	return NewStep("tool", quoted(s.Tool), more...)
}

// appendFlow writes a value in flow style, which YAML shares with JSON but for the
// space behind a colon.
func appendFlow(b []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(wire.AppendString(b, m.key), ": "...)
			b = appendFlow(b, m.value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendFlow(b, item)
		}
		return append(b, ']')
	}
	return appendJSON(b, v)
}

// String is the span as a script has it.
func (s Span) String() string {
	if s.Max <= s.Min {
		return s.Min.String()
	}
	return s.Min.String() + ".." + s.Max.String()
}

// flow is the fault as the mapping below the key fail.
func (f *Fail) flow() string {
	var parts []string
	add := func(set bool, format string, a ...any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, a...))
		}
	}
	add(f.Status != 0, "status: %d", f.Status)
	add(f.Type != "", "type: %s", quoted(f.Type))
	add(f.Message != "", "message: %s", quoted(f.Message))
	add(f.HasRetryAfter, "retry_after: %v", f.RetryAfter)
	if len(f.Headers) > 0 {
		var headers object
		for _, h := range f.Headers {
			headers = append(headers, member{h[0], h[1]})
		}
		add(true, "headers: %s", appendFlow(nil, headers))
	}
	add(f.Times > 0, "times: %d", f.Times)
	add(f.AfterChunks > 0, "after_chunks: %d", f.AfterChunks)
	add(f.Disconnect != "", "disconnect: %s", f.Disconnect)
	add(f.Hang, "hang: true")
	add(f.Malformed != "", "malformed: %s", f.Malformed)
	add(f.Truncate != "", "truncate: %s", f.Truncate)
	add(f.ContentType != "", "content_type: %s", quoted(f.ContentType))
	if f.Body != nil {
		add(true, "body: %s", quoted(*f.Body))
	}
	if f.Slow != nil {
		add(true, "slow: {bytes: %d, every: %v}", f.Slow.Bytes, max(f.Slow.Every, time.Nanosecond))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// answerEntry is the entry of what is said to a request. id is what later requests
// call the answer by, if the wire format has that.
func answerEntry(n int, id string, steps []StepNode) object {
	o := object{{"n", n}}
	if id != "" {
		o = append(o, member{"id", id})
	}
	texts := []any{}
	for _, s := range steps {
		texts = append(texts, s.Text)
	}
	return append(o, member{"steps", texts})
}
