package fakellm

import (
	"strings"
	"time"
)

// word is a scalar taken as it is written.
func (p *scriptParser) word(n *node, what string) string {
	if n.kind != scalarNode || n.text == "" {
		p.fail(n, "", "%s must be a text, not %s", what, n.what())
	}
	return n.text
}

// text is a scalar in which variables are replaced.
func (p *scriptParser) text(n *node, what string) string {
	if n.kind == nullNode {
		return ""
	}
	if n.kind != scalarNode {
		p.fail(n, "", "%s must be a text, not %s", what, n.what())
	}
	return p.expanded(n, n.text)
}

func (p *scriptParser) expanded(n *node, s string) string {
	if p.expand == nil {
		return s
	}
	out, err := p.expand(s)
	if err != nil {
		p.fail(n, "", "%s", err)
	}
	return out
}

func (p *scriptParser) flag(n *node, what string) bool {
	b, ok := n.value.(bool)
	if n.kind != scalarNode || !ok {
		p.fail(n, "", "%s must be true or false, not %s", what, n.what())
	}
	return b
}

func (p *scriptParser) number(n *node, what string, least int) int {
	i, ok := n.value.(int64)
	if n.kind != scalarNode || !ok || i < int64(least) || i > 1<<30 {
		p.fail(n, "", "%s must be a whole number of at least %d, not %s", what, least, n.what())
	}
	return int(i)
}

// duration is a Go duration, or a number of seconds.
func (p *scriptParser) duration(n *node, what string) time.Duration {
	if n.kind == scalarNode {
		d, ok := p.durationText(n.text)
		switch v := n.value.(type) {
		case int64:
			d, ok = time.Duration(v)*time.Second, v < 1<<30
		case float64:
			d, ok = time.Duration(v*float64(time.Second)), v < 1<<30
		}
		if ok && d >= 0 {
			return d
		}
	}
	p.fail(n, `such as 20ms, 1.5s, or a number of seconds`, "%s must be a duration, not %s", what, n.what())
	return 0
}

func (p *scriptParser) durationText(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	return d, err == nil
}

// span is a duration, or two of them as "10ms..50ms".
func (p *scriptParser) span(n *node, what string) Span {
	if low, high, ok := strings.Cut(n.text, ".."); ok && n.kind == scalarNode {
		a, okA := p.durationText(low)
		b, okB := p.durationText(high)
		if !okA || !okB || a < 0 || b < a {
			p.fail(n, "such as 10ms..50ms", "%s must be a range of durations, not %s", what, n.what())
		}
		return Span{a, b}
	}
	d := p.duration(n, what)
	return Span{d, d}
}

func (p *scriptParser) delay(n *node) Delay {
	p.keys(n, "delay", "ttft", "per_chunk")
	var d Delay
	if f := n.field("ttft"); f != nil {
		d.TTFT = p.span(f, "ttft")
	}
	if f := n.field("per_chunk"); f != nil {
		d.PerChunk = p.span(f, "per_chunk")
	}
	return d
}

// jsonValue is any YAML value as JSON, with variables replaced in texts.
func (p *scriptParser) jsonValue(n *node) any {
	switch n.kind {
	case mapNode:
		return p.object(n)
	case listNode:
		list := []any{}
		for _, item := range n.items {
			list = append(list, p.jsonValue(item))
		}
		return list
	case scalarNode:
		if s, ok := n.value.(string); ok {
			return p.expanded(n, s)
		}
		return n.value
	}
	return nil
}

func (p *scriptParser) object(n *node) object {
	o := object{}
	for _, f := range n.fields {
		o = append(o, member{f.key, p.jsonValue(f.node)})
	}
	return o
}
