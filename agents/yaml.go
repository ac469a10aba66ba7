package agents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/mistake"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Mistake is an error in a profile or a file that belongs to one.
type Mistake = mistake.Mistake

// reader walks a YAML file and stops at the first mistake, by a panic that
// mistake.Catch turns into an error.
type reader struct {
	file string
	src  []byte
}

// parse gives the file's only document; nil if it is empty.
func (r *reader) parse() ast.Node {
	f, err := parser.ParseBytes(r.src, 0)
	if err != nil {
		panic(mistake.OfYAML(r.file, err))
	}
	var root ast.Node
	for _, d := range f.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.CommentType:
		case root != nil:
			r.fail(d.Body, "", "here a second document begins, and only one is read")
		default:
			root = d.Body
		}
	}
	return root
}

func (r *reader) fail(n ast.Node, hint, format string, args ...any) {
	p := place(n)
	panic(&Mistake{File: r.file, Line: p.Line, Column: p.Column, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// place is where a value begins; the parser gives a mapping that of its first
// colon.
func place(n ast.Node) *token.Position {
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return place(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return place(v.Key)
	}
	return n.GetToken().Position
}

// member is one key of a mapping with its value.
type member struct {
	key   string
	at    ast.Node // the key, for messages
	value ast.Node
}

// members lists a mapping in the order of the file. Nothing is an empty one.
func (r *reader) members(n ast.Node, what string) []member {
	var values []*ast.MappingValueNode
	switch n := plain(n).(type) {
	case *ast.NullNode:
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.fail(n, "", "%s must be a mapping, not %s", what, kind(n))
	}
	var out []member
	for _, v := range values {
		key := ""
		switch k := v.Key.(type) {
		case *ast.StringNode:
			key = k.Value
		default:
			key = k.GetToken().Value
		}
		if slices.ContainsFunc(out, func(m member) bool { return m.key == key }) {
			r.fail(v.Key, "", "%q stands twice in %s", key, what)
		}
		out = append(out, member{key, v.Key, v.Value})
	}
	return out
}

// known is members with a fixed set of keys.
func (r *reader) known(n ast.Node, what string, keys ...string) []member {
	list := r.members(n, what)
	for _, m := range list {
		if !slices.Contains(keys, m.key) {
			r.fail(m.at, mistake.Suggest(m.key, keys), "unknown key %q in %s", m.key, what)
		}
	}
	return list
}

func (r *reader) items(n ast.Node, what string) []ast.Node {
	switch n := plain(n).(type) {
	case *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		return n.Values
	default:
		r.fail(n, "", "%s must be a list, not %s", what, kind(n))
	}
	return nil
}

// text reads a scalar: numbers and booleans count as their text, so that
// `PORT: 80` needs no quotes.
func (r *reader) text(n ast.Node, what string) string {
	switch n := plain(n).(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	default:
		r.fail(n, "", "%s must be a text, not %s", what, kind(n))
	}
	return ""
}

func (r *reader) flag(n ast.Node, what string) bool {
	b, ok := plain(n).(*ast.BoolNode)
	if !ok {
		r.fail(n, "", "%s must be true or false, not %s", what, kind(n))
	}
	return b.Value
}

func (r *reader) duration(n ast.Node, what string) time.Duration {
	d, err := time.ParseDuration(r.text(n, what))
	if err != nil || d < 0 {
		r.fail(n, "", "%s must be a duration such as 20s or 1m30s, not %s", what, kind(n))
	}
	return d
}

func (r *reader) date(n ast.Node, what string) time.Time {
	t, err := time.Parse(time.DateOnly, r.text(n, what))
	if err != nil {
		r.fail(n, "", "%s must be a date such as 2027-01-31, not %s", what, kind(n))
	}
	return t
}

func (r *reader) pattern(n ast.Node, what string) *regexp.Regexp {
	re, err := regexp.Compile(r.text(n, what))
	if err != nil {
		r.fail(n, "", "%s: %s", what, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re
}

// texts reads a list of texts; a single text is a list of one.
func (r *reader) texts(n ast.Node, what string) []string {
	if _, list := plain(n).(*ast.SequenceNode); !list {
		return []string{r.text(n, what)}
	}
	var out []string
	for _, item := range r.items(n, what) {
		out = append(out, r.text(item, "a word of "+what))
	}
	return out
}

// table reads a mapping of texts.
func (r *reader) table(n ast.Node, what string) map[string]string {
	out := map[string]string{}
	for _, m := range r.members(n, what) {
		out[m.key] = r.text(m.value, what+"."+m.key)
	}
	return out
}

// value reads anything, as package encoding/json would.
func (r *reader) value(n ast.Node) any {
	switch v := plain(n).(type) {
	case *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return v.Value
	case *ast.IntegerNode:
		return v.Value
	case *ast.FloatNode:
		return v.Value
	case *ast.SequenceNode:
		out := []any{}
		for _, item := range v.Values {
			out = append(out, r.value(item))
		}
		return out
	case *ast.MappingNode, *ast.MappingValueNode:
		out := map[string]any{}
		for _, m := range r.members(v, "a mapping") {
			out[m.key] = r.value(m.value)
		}
		return out
	}
	return r.text(n, "a value")
}

// plain looks through tags and anchors.
func plain(n ast.Node) ast.Node {
	for {
		switch v := n.(type) {
		case *ast.TagNode:
			n = v.Value
		case *ast.AnchorNode:
			n = v.Value
		default:
			return n
		}
	}
}

// kind names what stands there, for messages.
func kind(n ast.Node) string {
	switch n := plain(n).(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.StringNode:
		return fmt.Sprintf("%q", n.Value)
	default:
		return n.GetToken().Value
	}
}
