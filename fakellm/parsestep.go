package fakellm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
)

// stepOptions are the kinds of steps, each with the keys it takes beside its
// own.
var stepOptions = []struct {
	key     string
	options []string
}{
	{"text", []string{"chunks", "repeat"}},
	{"thinking", []string{"chunks", "repeat"}},
	{"refusal", []string{"chunks", "repeat"}},
	{"tool", []string{"args", "raw", "chunks", "args_gate", "args_gate_at"}},
	{"gate", nil},
	{"pause", nil},
	{"delay", nil},
	{"usage", nil},
	{"stop", nil},
	{"fail", nil},
	{"when", nil},
	{"must", nil},
}

func stepKeys() []string {
	var keys []string
	for _, o := range stepOptions {
		keys = append(keys, o.key)
	}
	return keys
}

// step reads one step into the reply.
func (p *scriptParser) step(r *Reply, n *node) {
	if n.kind != mapNode || len(n.fields) == 0 {
		p.fail(n, "steps: "+strings.Join(stepKeys(), ", "), "a step must be a mapping such as \"text: Hello\", not %s", n.what())
	}
	kind, options := "", []string(nil)
	for _, o := range stepOptions {
		if n.field(o.key) != nil && kind == "" {
			kind, options = o.key, o.options
		}
	}
	if kind == "" {
		p.fail(n.fields[0].at, mistake.Suggest(n.fields[0].key, stepKeys()), "unknown step %q", n.fields[0].key)
	}
	for _, f := range n.fields {
		if f.key == kind || slices.Contains(options, f.key) {
			continue
		}
		if slices.Contains(stepKeys(), f.key) {
			p.fail(f.at, "", "a step does one thing: %q and %q must be two steps, each with its own dash", kind, f.key)
		}
		p.fail(f.at, mistake.Suggest(f.key, options), "unknown key %q in a %s step", f.key, kind)
	}
	v := n.field(kind)
	s := Step{Line: n.line}
	switch kind {
	case "when":
		if len(r.Steps) > 0 {
			p.fail(n, "", "when must come before the other steps of its reply")
		}
		r.When = append(r.When, p.guard(v)...)
		return
	case "must":
		r.Must = p.flag(v, "must")
		return
	case "text", "thinking", "refusal":
		s.Kind = map[string]StepKind{"text": StepText, "thinking": StepThinking, "refusal": StepRefusal}[kind]
		s.Chunks = p.chunks(n, v, kind)
	case "tool":
		p.toolStep(&s, n, v)
	case "gate":
		s.Kind, s.Gate = StepGate, p.gate(v)
	case "pause":
		s.Kind, s.Pause = StepPause, p.span(v, "pause")
	case "delay":
		s.Kind, s.Delay = StepDelay, p.delay(v)
	case "usage":
		s.Kind, s.Usage = StepUsage, p.usage(v)
	case "stop":
		s.Kind, s.Stop = StepStop, Stop(p.oneOf(v, "stop", "end", "length", "refusal", "tool"))
	case "fail":
		s.Kind, s.Fail = StepFail, p.fault(v)
	}
	r.Steps = append(r.Steps, s)
}

func (p *scriptParser) oneOf(n *node, what string, known ...string) string {
	w := p.word(n, what)
	if !slices.Contains(known, w) {
		p.fail(n, mistake.Suggest(w, known), "%s cannot be %q", what, w)
	}
	return w
}

func (p *scriptParser) gate(n *node) string {
	name := p.word(n, "the name of a gate")
	if p.gates != nil {
		p.gates[name] = true
	}
	return name
}

// chunks reads a text and how it is cut: `text: [a, b]`, or `text: ab` with
// `chunks: 2` or `chunks: [a, b]`.
func (p *scriptParser) chunks(n, v *node, what string) []string {
	repeat := 1
	if f := n.field("repeat"); f != nil {
		repeat = p.number(f, "repeat", 1)
	}
	c := n.field("chunks")
	if v.kind == listNode {
		if c != nil {
			p.fail(c, "", "%s is a list of pieces already", what)
		}
		return slices.Repeat(p.pieces(v, what), repeat)
	}
	whole := p.text(v, what)
	if len(whole)*repeat > maxText {
		p.fail(v, "", "%s would be longer than %d bytes", what, maxText)
	}
	whole = strings.Repeat(whole, repeat)
	switch {
	case c == nil:
		return []string{whole}
	case c.kind == listNode:
		pieces := p.pieces(c, "chunks")
		if got := strings.Join(pieces, ""); got != whole {
			p.fail(c, fmt.Sprintf("together they are %q", clip(got, 60)), "the chunks are not the pieces of %s", what)
		}
		return pieces
	}
	return cut(whole, p.number(c, "chunks", 1))
}

// maxText bounds one text, so that a mistake in repeat shows at once.
const maxText = 256 << 20

func (p *scriptParser) pieces(n *node, what string) []string {
	var out []string
	for _, item := range p.list(n, what) {
		out = append(out, p.text(item, "a piece of "+what))
	}
	return out
}

// cut splits s into n pieces of nearly the same number of characters, fewer if
// s has fewer characters.
func cut(s string, n int) []string {
	if n <= 1 {
		return []string{s}
	}
	starts := make([]int, 0, len(s))
	for i := range s {
		starts = append(starts, i)
	}
	if n = min(n, len(starts)); n <= 1 {
		return []string{s}
	}
	out := make([]string, n)
	from := 0
	for i := range out {
		to := len(s)
		if next := (i + 1) * len(starts) / n; next < len(starts) {
			to = starts[next]
		}
		out[i], from = s[from:to], to
	}
	return out
}

func (p *scriptParser) toolStep(s *Step, n, v *node) {
	s.Kind, s.Tool = StepTool, p.word(v, "tool")
	args, raw := n.field("args"), n.field("raw")
	switch {
	case args != nil && raw != nil:
		p.fail(raw, "", "a tool has either args or raw arguments, not both")
	case args != nil && args.kind == mapNode:
		s.Args = p.object(args)
	case args != nil && args.kind != nullNode:
		p.fail(args, "", "args must be a mapping, not %s", args.what())
	case raw != nil && raw.kind == listNode:
		s.Raw, s.Chunks = true, p.pieces(raw, "raw")
	case raw != nil:
		s.Raw, s.Chunks = true, []string{p.text(raw, "raw")}
	}
	if c := n.field("chunks"); c != nil {
		if s.Raw {
			p.fail(c, "give raw as a list", "raw arguments are cut by a list")
		}
		s.Pieces = p.number(c, "chunks", 1)
	}
	if g := n.field("args_gate"); g != nil {
		s.Gate = p.gate(g)
	}
	if at := n.field("args_gate_at"); at != nil {
		if s.Gate == "" {
			p.fail(at, "", "args_gate_at needs args_gate")
		}
		s.GateAt = p.number(at, "args_gate_at", 1)
	}
}

func (p *scriptParser) usage(n *node) Usage {
	p.keys(n, "usage", "input", "output", "cached", "reasoning")
	u := defaultUsage
	for _, f := range n.fields {
		v := p.number(f.node, f.key, 0)
		switch f.key {
		case "input":
			u.Input = v
		case "output":
			u.Output = v
		case "cached":
			u.Cached = v
		case "reasoning":
			u.Reasoning = v
		}
	}
	return u
}

var faultKeys = []string{"status", "type", "message", "retry_after", "headers", "times", "after_chunks", "disconnect", "hang", "malformed", "truncate", "content_type", "body", "slow"}

func (p *scriptParser) fault(n *node) *Fail {
	p.keys(n, "fail", faultKeys...)
	f := &Fail{Line: n.line}
	var ends []string
	for _, m := range n.fields {
		switch m.key {
		case "status":
			if f.Status = p.number(m.node, "status", 200); f.Status > 599 {
				p.fail(m.node, "", "status must be an HTTP status from 200 to 599, not %d", f.Status)
			}
			ends = append(ends, m.key)
		case "type":
			f.Type = p.word(m.node, "type")
		case "message":
			f.Message = p.text(m.node, "message")
		case "retry_after":
			f.RetryAfter, f.HasRetryAfter = p.duration(m.node, "retry_after"), true
		case "headers":
			if m.kind != mapNode {
				p.fail(m.node, "", "headers must be a mapping, not %s", m.what())
			}
			for _, h := range m.fields {
				f.Headers = append(f.Headers, [2]string{h.key, p.text(h.node, "a header")})
			}
		case "times":
			f.Times = p.number(m.node, "times", 1)
		case "after_chunks":
			f.AfterChunks = p.number(m.node, "after_chunks", 0)
		case "disconnect":
			f.Disconnect = "now"
			if b, ok := m.value.(bool); !ok || !b {
				f.Disconnect = p.oneOf(m.node, "disconnect", "now", "mid-chunk")
			}
			ends = append(ends, m.key)
		case "hang":
			f.Hang = p.flag(m.node, "hang")
			ends = append(ends, m.key)
		case "malformed":
			f.Malformed = p.oneOf(m.node, "malformed", "sse", "shape")
		case "truncate":
			f.Truncate = "body"
			if b, ok := m.value.(bool); !ok || !b {
				f.Truncate = p.oneOf(m.node, "truncate", "body", "end")
			}
			ends = append(ends, m.key)
		case "content_type":
			f.ContentType = p.word(m.node, "content_type")
		case "body":
			body := p.text(m.node, "body")
			f.Body = &body
		case "slow":
			f.Slow = p.drip(m.node)
		}
	}
	switch {
	case len(ends) > 1:
		p.fail(n, "", "a fault does one of %s, not both", strings.Join(ends, " and "))
	case len(ends) == 0 && f.Malformed == "" && f.ContentType == "" && f.Body == nil && f.Slow == nil:
		p.fail(n, "one of status, disconnect, hang, malformed, truncate, content_type, body, slow", "this fault does nothing")
	}
	return f
}

func (p *scriptParser) drip(n *node) *Drip {
	p.keys(n, "slow", "bytes", "every")
	d := &Drip{Bytes: 1}
	if f := n.field("bytes"); f != nil {
		d.Bytes = p.number(f, "bytes", 1)
	}
	if f := n.field("every"); f != nil {
		d.Every = p.duration(f, "every")
	}
	return d
}
