package fakellm

import (
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/yamlfile"
)

// word is a scalar taken as it is written.
func (p *scriptParser) word(n *yamlfile.Node, what string) string {
	if n.Kind != yamlfile.Scalar || n.Text == "" {
		n.Fail("", "%s must be a text, not %s", what, n.What())
	}
	return n.Text
}

// text is a scalar in which variables are replaced.
func (p *scriptParser) text(n *yamlfile.Node, what string) string {
	if n.Kind == yamlfile.Null {
		return ""
	}
	if n.Kind != yamlfile.Scalar {
		n.Fail("", "%s must be a text, not %s", what, n.What())
	}
	return p.expanded(n, n.Text)
}

func (p *scriptParser) expanded(n *yamlfile.Node, s string) string {
	if p.expand == nil {
		return s
	}
	out, err := p.expand(s)
	if err != nil {
		n.Fail("", "%s", err)
	}
	return out
}

// seconds is a duration in Go's form, or a number of seconds.
func seconds(n *yamlfile.Node, what string) time.Duration {
	if n.Kind == yamlfile.Scalar {
		d, ok := durationText(n.Text)
		switch v := n.Value.(type) {
		case int64:
			d, ok = time.Duration(v)*time.Second, v < 1<<30
		case float64:
			d, ok = time.Duration(v*float64(time.Second)), v < 1<<30
		}
		if ok && d >= 0 {
			return d
		}
	}
	n.Fail(`such as 20ms, 1.5s, or a number of seconds`, "%s must be a duration, not %s", what, n.What())
	return 0
}

func durationText(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	return d, err == nil
}

// DecodeYAML reads a duration, or two of them as "10ms..50ms".
func (s *Span) DecodeYAML(n *yamlfile.Node, what string) {
	low, high, ok := strings.Cut(n.Text, "..")
	if !ok || n.Kind != yamlfile.Scalar {
		d := seconds(n, what)
		*s = Span{d, d}
		return
	}
	a, okA := durationText(low)
	b, okB := durationText(high)
	if !okA || !okB || a < 0 || b < a {
		n.Fail("such as 10ms..50ms", "%s must be a range of durations, not %s", what, n.What())
	}
	*s = Span{a, b}
}

// jsonValue is any YAML value as JSON, with variables replaced in texts.
func (p *scriptParser) jsonValue(n *yamlfile.Node) any {
	switch n.Kind {
	case yamlfile.Map:
		return p.object(n)
	case yamlfile.List:
		list := []any{}
		for _, item := range n.Items {
			list = append(list, p.jsonValue(item))
		}
		return list
	case yamlfile.Scalar:
		if s, ok := n.Value.(string); ok {
			return p.expanded(n, s)
		}
		return n.Value
	}
	return nil
}

func (p *scriptParser) object(n *yamlfile.Node) object {
	o := object{}
	for _, f := range n.Fields {
		o = append(o, member{f.Key, p.jsonValue(f.Node)})
	}
	return o
}
