package fakellm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

// stepOption is a key that begins a step, with the other keys that such a step accepts.
type stepOption struct {
	key     string
	options []string
}

var stepOptions = []stepOption{
	{"text", []string{"chunks", "repeat", "late", "part"}},
	{"thinking", []string{"chunks", "repeat"}},
	{"refusal", []string{"chunks", "repeat"}},
	{"tool", []string{"args", "raw", "chunks", "args_gate", "args_gate_at", "id"}},
	{"gate", nil},
	{"pause", nil},
	{"delay", nil},
	{"usage", nil},
	{"stop", nil},
	{"whole", nil},
	{"fail", nil},
	{"when", nil},
	{"must", nil},
}

func stepKeys() []string {
	return lists.Map(stepOptions, func(o stepOption) string { return o.key })
}

// kindOf returns the key that determines the kind of a step, and checks the step's other keys.
func kindOf(n *yamlfile.Node) string {
	if n.Kind != yamlfile.Map || len(n.Fields) == 0 {
		n.Fail("steps: "+strings.Join(stepKeys(), ", "), "a step must be a mapping such as \"text: Hello\", not %s", n.What())
	}
	i := slices.IndexFunc(stepOptions, func(o stepOption) bool { return n.Field(o.key) != nil })
	if i < 0 {
		n.Fields[0].At.Fail(mistake.Suggest(n.Fields[0].Key, stepKeys()), "unknown step %q", n.Fields[0].Key)
	}
	kind, options := stepOptions[i].key, stepOptions[i].options
	for _, f := range n.Fields {
		switch {
		case f.Key == kind, slices.Contains(options, f.Key):
		case slices.Contains(stepKeys(), f.Key):
			f.At.Fail("", "a step does one thing: %q and %q must be two steps, each with its own dash", kind, f.Key)
		default:
			f.At.Fail(mistake.Suggest(f.Key, options), "unknown key %q in a %s step", f.Key, kind)
		}
	}
	return kind
}

// step reads one step and adds it to the reply. It returns the step's syntax tree.
func (p *scriptParser) step(r *Reply, n *yamlfile.Node) StepNode {
	kind := kindOf(n)
	v := n.Field(kind)
	s := Step{Line: n.Line}
	node := StepNode{Kind: kind, Text: n.Source()}
	switch kind {
	case "when":
		if len(r.Steps) > 0 {
			n.Fail("", "when must come before the other steps of its reply")
		}
		r.When = append(r.When, p.guard(v, kind)...)
		return node
	case "must":
		r.Must = v.Bool("must")
		return node
	case "text", "thinking", "refusal":
		s.Kind = map[string]StepKind{"text": StepText, "thinking": StepThinking, "refusal": StepRefusal}[kind]
		s.Chunks = p.chunks(n, v, kind)
		optional(n, "late", &s.Late, (*yamlfile.Node).Bool)
		optional(n, "part", &s.Part, (*yamlfile.Node).Bool)
	case "tool":
		p.toolStep(&s, n, v)
	case "gate":
		s.Kind, s.Gate = StepGate, p.gate(v, kind)
	case "pause":
		s.Kind = StepPause
		s.Pause.DecodeYAML(v, "pause")
	case "delay":
		s.Kind = StepDelay
		v.Decode(&s.Delay, "delay", "")
	case "usage":
		s.Kind = StepUsage
		if s.NoUsage = v.Kind == yamlfile.Scalar && v.Text == "none"; !s.NoUsage {
			s.Usage = defaultUsage
			v.Decode(&s.Usage, "usage", "")
		}
	case "stop":
		s.Kind, s.Stop = StepStop, Stop(p.oneOf(v, "stop", "end", "length", "refusal", "tool"))
	case "whole":
		if !v.Bool("whole") {
			n.Fail("leave it out", "whole must be true")
		}
		s.Kind = StepWhole
	case "fail":
		s.Kind, s.Fail = StepFail, p.fault(v)
	}
	r.Steps = append(r.Steps, s)
	if node.Says() {
		node.Pieces = s.Chunks
	}
	return node
}

func (p *scriptParser) oneOf(n *yamlfile.Node, what string, known ...string) string {
	w := p.word(n, what)
	if !slices.Contains(known, w) {
		n.Fail(mistake.Suggest(w, known), "%s cannot be %q", what, w)
	}
	return w
}

func (p *scriptParser) gate(n *yamlfile.Node, _ string) string {
	name := p.word(n, "the name of a gate")
	if p.gates != nil {
		p.gates[name] = true
	}
	return name
}

// chunks reads the text of a step as chunks. The script writes the chunks as `text: [a, b]`, or as `text: ab` with
// `chunks: 2` or `chunks: [a, b]`.
func (p *scriptParser) chunks(n, v *yamlfile.Node, what string) []string {
	repeat := 1
	optional(n, "repeat", &repeat, fromOne)
	c := n.Field("chunks")
	if v.Kind == yamlfile.List {
		if c != nil {
			c.Fail("", "%s is already a list of pieces and takes no chunks", what)
		}
		return slices.Repeat(p.pieces(v, what), repeat)
	}
	whole := p.text(v, what)
	if len(whole)*repeat > maxText {
		v.Fail("", "%s would be longer than %d bytes", what, maxText)
	}
	whole = strings.Repeat(whole, repeat)
	switch {
	case c == nil:
		return []string{whole}
	case c.Kind == yamlfile.List:
		pieces := p.pieces(c, "chunks")
		if got := strings.Join(pieces, ""); got != whole {
			c.Fail(fmt.Sprintf("joined they are %q", clip(got, 60)), "%s must be the chunks joined", what)
		}
		return pieces
	}
	return cut(whole, c.Int("chunks", 1))
}

// maxText is the maximum size of one text in bytes. A mistake in repeat therefore fails at once.
const maxText = 256 << 20

func (p *scriptParser) pieces(n *yamlfile.Node, what string) []string {
	return lists.Map(n.List(what), func(item *yamlfile.Node) string { return p.text(item, "a piece of "+what) })
}

// cut splits s into n pieces of nearly equal length. If s has fewer than n characters, there are fewer pieces.
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

func (p *scriptParser) toolStep(s *Step, n, v *yamlfile.Node) {
	s.Kind, s.Tool = StepTool, p.word(v, "tool")
	args, raw := n.Field("args"), n.Field("raw")
	switch {
	case args != nil && raw != nil:
		raw.Fail("", "a tool has either args or raw arguments, not both")
	case args != nil && args.Kind == yamlfile.Map:
		s.Args = p.object(args)
	case args != nil && args.Kind != yamlfile.Null:
		args.Fail("", "args must be a mapping, not %s", args.What())
	case raw != nil && raw.Kind == yamlfile.List:
		s.Raw, s.Chunks = true, p.pieces(raw, "raw")
	case raw != nil:
		s.Raw, s.Chunks = true, []string{p.text(raw, "raw")}
	}
	if c := n.Field("chunks"); c != nil && s.Raw {
		c.Fail("write raw as a list of pieces", "chunks does not apply to raw arguments")
	}
	optional(n, "chunks", &s.Pieces, fromOne)
	optional(n, "args_gate", &s.Gate, p.gate)
	if at := n.Field("args_gate_at"); at != nil && s.Gate == "" {
		at.Fail("", "args_gate_at needs args_gate")
	}
	optional(n, "args_gate_at", &s.GateAt, fromOne)
	optional(n, "id", &s.CallID, p.word)
}

var faultKeys = []string{"status", "type", "message", "retry_after", "headers", "times", "after_chunks", "disconnect",
	"hang", "malformed", "truncate", "content_type", "body", "slow", "comment"}

// ending lists the keys of a fault that end the answer. A fault may have at most one of these keys.
var ending = []string{"status", "disconnect", "hang", "truncate"}

func (p *scriptParser) fault(n *yamlfile.Node) *Fail {
	n.Keys("fail", faultKeys...)
	f := &Fail{Line: n.Line}
	var ends []string
	for _, m := range n.Fields {
		p.faultKey(f, m)
		if slices.Contains(ending, m.Key) {
			ends = append(ends, m.Key)
		}
	}
	switch {
	case len(ends) > 1:
		n.Fields[0].At.Fail("", "a fault can do only one of %s", strings.Join(ends, " and "))
	case len(ends) == 0 && f.Malformed == "" && f.ContentType == "" && f.Body == nil && f.Slow == nil && f.Comment == "":
		at := n
		if len(n.Fields) > 0 {
			at = n.Fields[0].At
		}
		at.Fail("one of status, disconnect, hang, malformed, truncate, content_type, body, slow, comment",
			"this fault does nothing")
	}
	return f
}

func (p *scriptParser) faultKey(f *Fail, m yamlfile.Field) {
	switch m.Key {
	case "status":
		if f.Status = m.Node.Int("status", 200); f.Status > 599 {
			m.Node.Fail("", "status must be an HTTP status from 200 to 599, not %d", f.Status)
		}
	case "type":
		f.Type = p.word(m.Node, "type")
	case "message":
		f.Message = p.text(m.Node, "message")
	case "retry_after":
		f.RetryAfter, f.HasRetryAfter = seconds(m.Node, "retry_after"), true
	case "headers":
		if m.Kind != yamlfile.Map {
			m.Node.Fail("", "headers must be a mapping, not %s", m.What())
		}
		for _, h := range m.Fields {
			f.Headers = append(f.Headers, [2]string{h.Key, p.text(h.Node, "a header")})
		}
	case "times":
		f.Times = m.Node.Int("times", 1)
	case "after_chunks":
		f.AfterChunks = m.Node.Int("after_chunks", 0)
	case "disconnect":
		f.Disconnect = p.trueOr(m, "now", "now", "mid-chunk")
	case "hang":
		f.Hang = m.Node.Bool("hang")
	case "malformed":
		f.Malformed = p.oneOf(m.Node, "malformed", "sse", "shape")
	case "truncate":
		f.Truncate = p.trueOr(m, "body", "body", "end")
	case "content_type":
		f.ContentType = p.word(m.Node, "content_type")
	case "body":
		body := p.text(m.Node, "body")
		f.Body = &body
	case "slow":
		f.Slow = p.drip(m.Node)
	case "comment":
		if f.Comment = p.word(m.Node, "comment"); strings.ContainsAny(f.Comment, "\r\n") {
			m.Node.Fail("", "a comment is one line")
		}
	}
}

// trueOr reads a member whose value is true or one of words. For true it returns the default word stands.
func (p *scriptParser) trueOr(m yamlfile.Field, stands string, words ...string) string {
	if b, ok := m.Value.(bool); ok && b {
		return stands
	}
	return p.oneOf(m.Node, m.Key, words...)
}

func (p *scriptParser) drip(n *yamlfile.Node) *Drip {
	n.Keys("slow", "bytes", "every")
	d := &Drip{Bytes: 1}
	optional(n, "bytes", &d.Bytes, fromOne)
	optional(n, "every", &d.Every, seconds)
	return d
}
