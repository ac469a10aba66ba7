package yamlfile

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// extend sets the last line of a node in block style, and of the nodes inside it. The last line is the line above the
// next node at the same level.
func (n *Node) extend(last int) {
	if n.Flow || n.Kind == Null || n.last > 0 {
		return
	}
	n.last = last
	children := n.Items
	children = append(children, lists.Map(n.Fields, func(f Field) *Node { return f.Node })...)
	for i, c := range children {
		to := last
		if i+1 < len(children) {
			to = n.begin(i+1) - 1
		}
		if to >= c.Line {
			c.extend(to)
		}
	}
}

// begin returns the line on which the i-th member of a mapping or the i-th item of a list begins.
func (n *Node) begin(i int) int {
	switch {
	case n.Kind == Map:
		return n.Fields[i].At.Line
	case i < len(n.starts):
		return n.starts[i]
	}
	return n.Items[i].Line
}

// Source returns the YAML of a node, without its indentation, and with the comments between the node and the next
// one. If the node is in flow style or contains an alias, Source writes it anew in flow style, with a mapping's keys
// on separate lines. The result has no line break at its end.
func (n *Node) Source() string {
	if n.last == 0 || n.borrowed {
		if n.Kind != Map || len(n.Fields) == 0 {
			return string(n.flow(nil))
		}
		return strings.Join(lists.Map(n.Fields, Field.line), "\n")
	}
	return strings.TrimRight(strings.Join(n.lines(n.Line, n.last), "\n"), "\n")
}

// lines returns a range of lines of the node's file, without the node's indentation. from and to count from 1 and are
// both included.
func (n *Node) lines(from, to int) []string {
	lines := slices.Clone(n.file.lines[from-1 : to])
	for i, l := range lines {
		cut := min(n.Column-1, len(l))
		if from+i > n.Line {
			cut = min(cut, len(l)-len(strings.TrimLeft(l, " ")))
		}
		lines[i] = strings.TrimRight(l[cut:], "\r")
	}
	return lines
}

// Lead returns the comments above the first item of a list in block style, without their indentation. It returns nil
// for other nodes.
func (n *Node) Lead() []string {
	if n.last == 0 || len(n.Items) == 0 {
		return nil
	}
	var lead []string
	for line := n.begin(0) - 1; line > 0; line-- {
		l := strings.TrimSpace(n.file.lines[line-1])
		if l != "" && l[0] != '#' {
			break
		}
		lead = append([]string{l}, lead...)
	}
	return lead
}

// Beside is like Source for a mapping, but leaves out the members with the given keys. For the root of the file, it
// includes the comments above the mapping.
func (n *Node) Beside(keys ...string) string {
	var lines []string
	if n.file.root == n && n.last > 0 {
		lines = slices.Clone(n.file.lines[:n.Line-1])
	}
	for i, f := range n.Fields {
		to := n.last
		if i+1 < len(n.Fields) {
			to = n.begin(i+1) - 1
		}
		switch {
		case slices.Contains(keys, f.Key):
		case n.last == 0 || f.borrowed:
			lines = append(lines, f.line())
		default:
			lines = append(lines, n.lines(n.begin(i), to)...)
		}
	}
	return strings.Join(lines, "\n")
}

// line returns a member as YAML on one line.
func (f Field) line() string { return string(f.flow(append(word(nil, f.Key), ": "...))) }

func (n *Node) flow(b []byte) []byte {
	switch n.Kind {
	case Null:
		return append(b, "null"...)
	case List:
		b = append(b, '[')
		for i, item := range n.Items {
			b = item.flow(comma(b, i))
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i, f := range n.Fields {
			b = f.flow(append(word(comma(b, i), f.Key), ": "...))
		}
		return append(b, '}')
	}
	if s, text := n.Value.(string); text {
		return word(b, s)
	}
	return append(b, n.Text...)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ", "...)
	}
	return b
}

var bare = lazy.Regexp(`^[A-Za-z_][\w!~-]*$`)

// word appends a text, with quotes only if YAML requires them.
func word(b []byte, s string) []byte {
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off":
		return Quote(b, s)
	}
	if bare().MatchString(s) {
		return append(b, s...)
	}
	return Quote(b, s)
}

// Quote appends a text as a quoted YAML scalar, which has the form of a JSON string.
func Quote(b []byte, s string) []byte { return wire.AppendString(b, s) }

// QuoteAll returns texts as a YAML list in flow style.
func QuoteAll(texts []string) string {
	b := []byte{'['}
	for i, t := range texts {
		b = Quote(comma(b, i), t)
	}
	return string(append(b, ']'))
}
