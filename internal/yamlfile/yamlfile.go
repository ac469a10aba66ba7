// Package yamlfile reads YAML files that users write. It parses them into trees whose nodes know their position in
// the file, and decodes the trees strictly into Go values. Callers need not know about anchors, aliases, merge keys,
// tags, and flow and block style, because parsing resolves them.
package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/wire"
)

// Kind is the kind of a Node.
type Kind uint8

// The kinds of nodes.
const (
	Null Kind = iota
	Scalar
	List
	Map
)

// Node is a value in a file, with its position. Aliases and tags are resolved.
type Node struct {
	Kind         Kind
	Line, Column int
	// Flow is true if a list or mapping is written in brackets or braces.
	Flow bool
	// Text is a scalar as it is written, without quotes. Value is the decoded scalar: a string, bool, int64, uint64
	// or float64.
	Text   string
	Value  any
	Fields []Field // members of a mapping
	Items  []*Node // items of a list

	file *file
	last int // the node's last line if it is in block style, else 0
	// starts contains the lines with the dashes of a list's items.
	starts []int
	// borrowed is true if a part of the node comes from an alias, so that its source is elsewhere in the file.
	borrowed bool
}

// Field is one member of a mapping. The embedded Node is the value.
type Field struct {
	Key string
	At  *Node // position of the key
	*Node
	merged bool
}

// file contains the data that all nodes of a file share.
type file struct {
	name    string
	lines   []string
	anchors map[string]*Node
	nodes   int
	aliases int
	root    *Node
}

// maxNodes limits the number of nodes of a file after its aliases are expanded.
const maxNodes = 1 << 20

// Parse reads a file, which must have only one document. For an empty file, it returns a node of kind Null. name is
// the file name in messages. The error is a *mistake.Mistake.
func Parse(name string, src []byte) (root *Node, err error) {
	defer mistake.Catch(&err)
	tree, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, mistake.OfYAML(name, err)
	}
	f := &file{name: name, lines: strings.Split(strings.TrimSuffix(string(src), "\n"), "\n"), anchors: map[string]*Node{}}
	for _, d := range tree.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		n := f.read(d.Body)
		if root != nil {
			n.Fail("", "a second document begins here, and acp-test reads only one")
		}
		root = n
	}
	root = cmp.Or(root, &Node{Line: 1, Column: 1, file: f})
	f.root = root
	root.extend(len(f.lines))
	return root, nil
}

// Fail reports a mistake at the node's position. It panics, and mistake.Catch converts the panic to an error.
func (n *Node) Fail(hint, format string, args ...any) {
	panic(&mistake.Mistake{File: n.file.name, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...),
		Hint: hint})
}

// Field returns the value under a key, or nil if there is none.
func (n *Node) Field(key string) *Node {
	return lists.First(n.Fields, func(f Field) bool { return f.Key == key }).Node
}

func (n *Node) index(key string) int {
	return slices.IndexFunc(n.Fields, func(f Field) bool { return f.Key == key })
}

func (f *file) read(a ast.Node) (n *Node) {
	t := a.GetToken()
	n = &Node{Kind: Scalar, Line: t.Position.Line, Column: t.Position.Column, file: f}
	f.count(n, 1)
	before := f.aliases
	defer func() { n.borrowed = n.borrowed || f.aliases > before }()
	switch a := a.(type) {
	case *ast.SequenceNode:
		n.Kind, n.Flow = List, a.IsFlowStyle
		for i, item := range a.Values {
			n.Items = append(n.Items, f.read(item))
			if i < len(a.Entries) && a.Entries[i].Start != nil {
				n.starts = append(n.starts, a.Entries[i].Start.Position.Line)
			}
		}
	case *ast.MappingNode:
		n.Kind, n.Flow = Map, a.IsFlowStyle
		for _, v := range a.Values {
			f.member(n, v)
		}
	case *ast.MappingValueNode:
		n.Kind = Map
		f.member(n, a)
	case *ast.AnchorNode:
		n = f.read(a.Value)
		f.anchors[a.Name.GetToken().Value] = n
		return n
	case *ast.AliasNode:
		target := f.anchors[a.Value.GetToken().Value]
		if target == nil {
			n.Fail("", "there is no anchor &%s before this alias", a.Value.GetToken().Value)
		}
		f.count(n, target.size())
		f.aliases++
		return target
	case *ast.TagNode:
		if a.Value == nil {
			n.Kind = Null
			break
		}
		n = f.read(a.Value)
		if a.Start.Value == "!!str" && n.Kind == Scalar {
			n.Value = n.Text
		}
		return n
	default:
		n.scalar(a)
	}
	// The parser's position of a mapping is its first colon. Use the position of the first key instead.
	if n.Kind == Map && !n.Flow && len(n.Fields) > 0 && !n.Fields[0].merged {
		n.Line, n.Column = n.Fields[0].At.Line, n.Fields[0].At.Column
	}
	return n
}

// scalar reads a node that is neither a list nor a mapping into n.
func (n *Node) scalar(a ast.Node) {
	n.Text = a.GetToken().Value
	switch a := a.(type) {
	case *ast.NullNode:
		n.Kind, n.Text = Null, ""
	case *ast.StringNode:
		n.Text, n.Value = a.Value, a.Value
	case *ast.LiteralNode:
		n.Text, n.Value = a.Value.Value, a.Value.Value
	case *ast.BoolNode:
		n.Value = a.Value
	case *ast.IntegerNode:
		n.Value = a.Value
		if u, ok := a.Value.(uint64); ok && u < 1<<63 {
			n.Value = int64(u)
		}
	case *ast.FloatNode:
		n.Value = a.Value
	default:
		n.Fail("", "%s cannot be used here", strings.ToLower(a.Type().String()))
	}
}

func (f *file) count(n *Node, more int) {
	if f.nodes += more; f.nodes > maxNodes {
		n.Fail("", "the file is too large")
	}
}

func (f *file) member(n *Node, v *ast.MappingValueNode) {
	t := v.Key.GetToken()
	at := &Node{Line: t.Position.Line, Column: t.Position.Column, file: f}
	if _, merge := v.Key.(*ast.MergeKeyNode); merge {
		from := f.read(v.Value)
		f.aliases++
		all := []*Node{from}
		if from.Kind == List {
			all = from.Items
		}
		for _, one := range all {
			if one.Kind != Map {
				at.Fail("", "<< takes a mapping or a list of mappings, not %s", one.What())
			}
			for _, m := range one.Fields {
				if n.index(m.Key) < 0 {
					n.Fields = append(n.Fields, Field{m.Key, m.At, m.Node, true})
				}
			}
		}
		return
	}
	key := t.Value
	if s, ok := v.Key.(*ast.StringNode); ok {
		key = s.Value
	}
	m := Field{Key: key, At: at, Node: f.read(v.Value)}
	switch i := n.index(key); {
	case i < 0:
		n.Fields = append(n.Fields, m)
	case n.Fields[i].merged:
		n.Fields[i] = m
	default:
		at.Fail("", "mapping key %q already defined at [%d:%d]", key, n.Fields[i].At.Line, n.Fields[i].At.Column)
	}
}

func (n *Node) size() int {
	s := 1
	for _, f := range n.Fields {
		s += f.size()
	}
	for _, i := range n.Items {
		s += i.size()
	}
	return s
}

// What describes the node for messages: the text of a scalar, or the kind of another node.
func (n *Node) What() string {
	switch n.Kind {
	case Scalar:
		if _, text := n.Value.(string); text {
			return fmt.Sprintf("%q", wire.Clip(n.Text, 40))
		}
		return n.Text
	case List:
		return "a list"
	case Map:
		return "a mapping"
	}
	return "nothing"
}
