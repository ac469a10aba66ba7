package fakellm

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/mistake"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

type nodeKind uint8

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mapNode
)

// node is a YAML value with its place, free of aliases and tags.
type node struct {
	kind         nodeKind
	line, column int
	text         string // of a scalar, as written or unquoted
	value        any    // of a scalar: string, bool, int64, uint64, float64
	fields       []field
	items        []*node
}

type field struct {
	key string
	at  *node // the place of the key
	*node
}

func (n *node) what() string {
	switch n.kind {
	case scalarNode:
		return fmt.Sprintf("%q", clip(n.text, 40))
	case listNode:
		return "a list"
	case mapNode:
		return "a mapping"
	}
	return "nothing"
}

// maxNodes bounds what aliases can expand to.
const maxNodes = 1 << 20

type yamlReader struct {
	file    string
	anchors map[string]*node
	nodes   int
}

// readYAML parses src into a tree. An empty document is a null node.
func readYAML(file string, src []byte) (root *node, err error) {
	defer mistake.Catch(&err)
	r := &yamlReader{file: file, anchors: map[string]*node{}}
	tree, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, mistake.OfYAML(file, err)
	}
	root = &node{line: 1, column: 1}
	seen := false
	for _, d := range tree.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if seen {
			return nil, &mistake.Mistake{File: file, Line: d.Body.GetToken().Position.Line, Column: 1, Message: "a script is one YAML document, here is a second one"}
		}
		root, seen = r.read(d.Body), true
	}
	return root, nil
}

func (r *yamlReader) fail(t *token.Token, format string, a ...any) {
	panic(&mistake.Mistake{File: r.file, Line: t.Position.Line, Column: t.Position.Column, Message: fmt.Sprintf(format, a...)})
}

func (r *yamlReader) read(a ast.Node) *node {
	t := a.GetToken()
	if r.nodes++; r.nodes > maxNodes {
		r.fail(t, "the script is too large")
	}
	n := &node{kind: scalarNode, line: t.Position.Line, column: t.Position.Column}
	switch a := a.(type) {
	case *ast.NullNode:
		n.kind = nullNode
	case *ast.StringNode:
		n.text, n.value = a.Value, a.Value
	case *ast.LiteralNode:
		n.text, n.value = a.Value.Value, a.Value.Value
	case *ast.BoolNode:
		n.text, n.value = t.Value, a.Value
	case *ast.IntegerNode:
		n.text, n.value = t.Value, a.Value
		if u, ok := a.Value.(uint64); ok && u < 1<<63 {
			n.value = int64(u)
		}
	case *ast.FloatNode:
		n.text, n.value = t.Value, a.Value
	case *ast.SequenceNode:
		n.kind = listNode
		for _, item := range a.Values {
			n.items = append(n.items, r.read(item))
		}
	case *ast.MappingNode:
		n.kind = mapNode
		for _, v := range a.Values {
			r.member(n, v)
		}
	case *ast.MappingValueNode:
		n.kind = mapNode
		r.member(n, a)
	case *ast.AnchorNode:
		n = r.read(a.Value)
		r.anchors[a.Name.GetToken().Value] = n
	case *ast.AliasNode:
		name := a.Value.GetToken().Value
		target, ok := r.anchors[name]
		if !ok {
			r.fail(t, "no anchor &%s stands before this alias", name)
		}
		r.nodes += target.size()
		n = target
	case *ast.TagNode:
		if a.Value == nil {
			n.kind = nullNode
			break
		}
		n = r.read(a.Value)
		if a.Start.Value == "!!str" && n.kind == scalarNode {
			n.value = n.text
		}
	default:
		r.fail(t, "%s cannot be used here", strings.ToLower(a.Type().String()))
	}
	if n.kind == mapNode && len(n.fields) > 0 && n.fields[0].at != nil {
		n.line, n.column = n.fields[0].at.line, n.fields[0].at.column
	}
	return n
}

func (r *yamlReader) member(n *node, v *ast.MappingValueNode) {
	if _, merge := v.Key.(*ast.MergeKeyNode); merge {
		from := r.read(v.Value)
		for _, f := range from.fields {
			if n.field(f.key) == nil {
				n.fields = append(n.fields, f)
			}
		}
		return
	}
	t := v.Key.GetToken()
	key, ok := v.Key.(*ast.StringNode)
	name := t.Value
	if ok {
		name = key.Value
	}
	n.fields = append(n.fields, field{name, &node{line: t.Position.Line, column: t.Position.Column}, r.read(v.Value)})
}

func (n *node) size() int {
	s := 1
	for _, f := range n.fields {
		s += f.size()
	}
	for _, i := range n.items {
		s += i.size()
	}
	return s
}

func (n *node) field(key string) *node {
	for _, f := range n.fields {
		if f.key == key {
			return f.node
		}
	}
	return nil
}
