package fakellm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
)

// ParseScript reads a script in YAML. name stands in messages. expand, if not
// nil, is applied to texts, arguments and prompts (not to names and regular
// expressions) and puts the values of variables in. Every error is a
// *mistake.Mistake.
func ParseScript(name string, src []byte, expand func(string) (string, error)) (s *Script, err error) {
	root, err := readYAML(name, src)
	if err != nil {
		return nil, err
	}
	defer mistake.Catch(&err)
	p := &scriptParser{file: name, expand: expand}
	return p.script(root), nil
}

// ParseLanes reads the lanes of a profile: the mapping that stands under
// `lanes:` in a script.
func ParseLanes(name string, src []byte) (lanes []Lane, err error) {
	root, err := readYAML(name, src)
	if err != nil {
		return nil, err
	}
	defer mistake.Catch(&err)
	p := &scriptParser{file: name}
	return p.lanes(root), nil
}

type scriptParser struct {
	file   string
	expand func(string) (string, error)
	gates  map[string]bool
}

func (p *scriptParser) fail(n *node, hint, format string, a ...any) {
	panic(&mistake.Mistake{File: p.file, Line: n.line, Column: n.column, Message: fmt.Sprintf(format, a...), Hint: hint})
}

// keys demands a mapping of known keys.
func (p *scriptParser) keys(n *node, what string, known ...string) {
	if n.kind != mapNode {
		p.fail(n, "keys: "+strings.Join(known, ", "), "%s must be a mapping, not %s", what, n.what())
	}
	for _, f := range n.fields {
		if !slices.Contains(known, f.key) {
			p.fail(f.at, mistake.Suggest(f.key, known), "unknown key %q in %s", f.key, what)
		}
	}
}

func (p *scriptParser) list(n *node, what string) []*node {
	if n.kind != listNode {
		p.fail(n, "", "%s must be a list, not %s", what, n.what())
	}
	return n.items
}

var scriptKeys = []string{"turns", "replies", "lanes", "models", "api_key", "delay"}

func (p *scriptParser) script(root *node) *Script {
	s := &Script{Name: p.file}
	p.gates = map[string]bool{}
	if root.kind == nullNode {
		return s
	}
	p.keys(root, "a script", scriptKeys...)
	if r, t := root.field("replies"), root.field("turns"); r != nil && t != nil {
		p.fail(r, "replies is short for one turn", "a script has either turns or replies, not both")
	}
	for _, f := range root.fields {
		switch f.key {
		case "replies":
			s.Turns = []Turn{{Replies: p.replies(f.node), Line: f.line}}
		case "turns":
			for _, t := range p.list(f.node, "turns") {
				s.Turns = append(s.Turns, p.turn(t))
			}
		case "lanes":
			s.Lanes = p.lanes(f.node)
		case "models":
			for _, m := range p.list(f.node, "models") {
				s.Models = append(s.Models, p.word(m, "a model"))
			}
		case "api_key":
			s.APIKey = p.word(f.node, "api_key")
		case "delay":
			s.Delay = p.delay(f.node)
		}
	}
	for g := range p.gates {
		s.gates = append(s.gates, g)
	}
	slices.Sort(s.gates)
	return s
}

func (p *scriptParser) turn(n *node) Turn {
	if n.kind != mapNode {
		return Turn{Replies: p.replies(n), Line: n.line}
	}
	p.keys(n, "a turn", "prompt", "replies")
	t := Turn{Line: n.line}
	if f := n.field("prompt"); f != nil {
		t.Prompt = p.text(f, "prompt")
	}
	if f := n.field("replies"); f != nil {
		t.Replies = p.replies(f)
	}
	return t
}

func (p *scriptParser) replies(n *node) []Reply {
	if n.kind == nullNode {
		return nil
	}
	var out []Reply
	for _, item := range p.list(n, "the replies of a turn") {
		out = append(out, p.reply(item))
	}
	return joinFaults(out)
}

// joinFaults puts a reply of nothing but faults that end before the reply that
// follows it: both answer the same request, the one before the retry and the
// one after.
func joinFaults(in []Reply) []Reply {
	var out []Reply
	for i := len(in) - 1; i >= 0; i-- {
		r := in[i]
		passing := len(r.Steps) > 0 && len(r.When) == 0
		for _, s := range r.Steps {
			passing = passing && s.Kind == StepFail && s.Fail.Times > 0
		}
		if passing && len(out) > 0 && len(out[0].Alternatives) == 0 {
			r.When, r.Must = out[0].When, r.Must || out[0].Must
			r.Steps = append(slices.Clone(r.Steps), out[0].Steps...)
			out = out[1:]
		}
		out = append([]Reply{r}, out...)
	}
	return out
}

func (p *scriptParser) reply(n *node) Reply {
	r := Reply{Line: n.line}
	switch n.kind {
	case nullNode:
		return r
	case mapNode:
		if n.field("any") == nil {
			p.fail(n, "write it as a list of steps: \"- - text: …\"", "a reply must be a list of steps")
		}
		p.keys(n, "a reply with alternatives", "any", "must")
		for _, item := range p.list(n.field("any"), "any") {
			r.Alternatives = append(r.Alternatives, p.reply(item))
		}
		if f := n.field("must"); f != nil {
			r.Must = p.flag(f, "must")
		}
		return r
	}
	for _, item := range p.list(n, "a reply") {
		p.step(&r, item)
	}
	return r
}

func (p *scriptParser) lanes(n *node) []Lane {
	if n.kind == nullNode {
		return nil
	}
	if n.kind != mapNode {
		p.fail(n, "", "lanes must be a mapping from a name to a lane, not %s", n.what())
	}
	var out []Lane
	for _, f := range n.fields {
		p.keys(f.node, "a lane", "when", "reply", "main")
		l := Lane{Name: f.key, Line: f.at.line}
		if w := f.field("when"); w != nil {
			l.When = p.guard(w)
		}
		if m := f.field("main"); m != nil {
			l.Main = p.flag(m, "main")
		}
		reply := f.field("reply")
		if reply != nil {
			l.Reply = p.reply(reply)
		}
		switch {
		case f.key == LaneMain:
			p.fail(f.at, "", "%q names the conversation itself and cannot be a lane", f.key)
		case l.Main && reply != nil:
			p.fail(reply, "", "a lane that is the conversation (main: true) has no reply of its own")
		case !l.Main && reply == nil:
			p.fail(f.at, "", "lane %q has no reply", f.key)
		case len(l.When) == 0 && !slices.Contains([]string{LaneSchema, LaneNoTools, LaneAfter}, f.key):
			p.fail(f.at, "", "lane %q says not when: it would take every request", f.key)
		}
		out = append(out, l)
	}
	return out
}

var textFields = []string{"user", "prompt", "result", "system", "model", "wire", "path", "tool", "body"}
var flagFields = []string{"tools", "schema", "stream"}

func (p *scriptParser) guard(n *node) Guard {
	known := slices.Concat(textFields, flagFields)
	if n.kind != mapNode || len(n.fields) == 0 {
		p.fail(n, "fields: "+strings.Join(known, ", "), "when must be a mapping of conditions, not %s", n.what())
	}
	var g Guard
	for _, f := range n.fields {
		c := Condition{Line: f.at.line}
		name, isPattern := strings.CutSuffix(f.key, "~")
		name, c.Negate = strings.CutSuffix(name, "!")
		c.Field = name
		if c.Negate && !isPattern {
			p.fail(f.at, "write "+name+"!~", "a negated condition needs a regular expression")
		}
		switch {
		case slices.Contains(flagFields, name):
			if isPattern {
				p.fail(f.at, "", "%s is true or false, it matches no regular expression", name)
			}
			c.Value = fmt.Sprint(p.flag(f.node, name))
		case !slices.Contains(textFields, name):
			p.fail(f.at, mistake.Suggest(name, known), "unknown field %q in a condition", name)
		case isPattern:
			var err error
			if c.Pattern, err = regexp.Compile(p.word(f.node, f.key)); err != nil {
				p.fail(f.node, "", "bad regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			}
		default:
			c.Value = p.text(f.node, name)
		}
		g = append(g, c)
	}
	return g
}
