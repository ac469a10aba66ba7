package fakellm

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

// ParseScript reads a script in YAML. name is the file name that messages show. expand, if not nil, replaces
// variables in texts, arguments and prompts (not in names and regular expressions). Every error is a
// *mistake.Mistake.
func ParseScript(name string, src []byte, expand func(string) (string, error)) (*Script, error) {
	s, _, err := parse(name, src, expand)
	return s, err
}

// ParseDocument reads a script as ParseScript does, but returns its syntax tree, in which variables are not replaced.
func ParseDocument(name string, src []byte) (*Document, error) {
	_, d, err := parse(name, src, nil)
	return d, err
}

func parse(name string, src []byte, expand func(string) (string, error)) (s *Script, d *Document, err error) {
	root, err := yamlfile.Parse(name, src)
	if err != nil {
		return nil, nil, err
	}
	defer mistake.Catch(&err)
	p := &scriptParser{expand: expand, gates: map[string]bool{}}
	s, d = p.script(root)
	s.Name = name
	return s, d, nil
}

// ParseLanes reads the lanes of a profile, which have the form of `lanes:` in a script. It returns nil if n is nil.
func ParseLanes(n *yamlfile.Node) (lanes []Lane, err error) {
	if n == nil {
		return nil, nil
	}
	defer mistake.Catch(&err)
	return new(scriptParser).lanes(n), nil
}

type scriptParser struct {
	expand func(string) (string, error)
	gates  map[string]bool
}

var scriptKeys = []string{"turns", "replies", "lanes", "models", "api_key", "strict", "delay"}

func (p *scriptParser) script(root *yamlfile.Node) (*Script, *Document) {
	s, d := &Script{}, &Document{Rest: root.Beside("turns", "replies")}
	root.Keys("a script", scriptKeys...)
	if r, t := root.Field("replies"), root.Field("turns"); r != nil && t != nil {
		r.Fail("replies is shorthand for a script with one turn", "a script has either turns or replies, not both")
	}
	for _, f := range root.Fields {
		switch f.Key {
		case "replies":
			t, n := p.turnOf(f.Node)
			s.Turns = []Turn{t}
			if len(n.Replies) > 0 {
				d.Turns = []TurnNode{n}
			}
		case "turns":
			d.Lead = f.Lead()
			for _, item := range f.Node.List("turns") {
				t, n := p.turn(item)
				s.Turns, d.Turns = append(s.Turns, t), append(d.Turns, n)
			}
		case "lanes":
			s.Lanes = p.lanes(f.Node)
		case "models":
			for _, m := range f.Node.List("models") {
				s.Models = append(s.Models, p.word(m, "a model"))
			}
		case "api_key":
			s.APIKey = p.word(f.Node, "api_key")
		case "strict":
			s.Lenient = !f.Node.Bool("strict")
		case "delay":
			f.Node.Decode(&s.Delay, "delay", "")
		}
	}
	s.gates = slices.Sorted(maps.Keys(p.gates))
	return s, d
}

func (p *scriptParser) turn(n *yamlfile.Node) (Turn, TurnNode) {
	if n.Kind != yamlfile.Map {
		return p.turnOf(n)
	}
	n.Keys("a turn", "prompt", "replies")
	t, d := Turn{}, TurnNode{}
	if f := n.Field("replies"); f != nil {
		t, d = p.turnOf(f)
	}
	optional(n, "prompt", &t.Prompt, p.text)
	d.Mapping, d.Rest = true, n.Beside("replies")
	return t, d
}

func (p *scriptParser) turnOf(n *yamlfile.Node) (Turn, TurnNode) {
	t, d := Turn{}, TurnNode{Lead: n.Lead()}
	for _, item := range n.List("the replies of a turn") {
		node := ReplyNode{Lead: item.Lead()}
		t.Replies = append(t.Replies, p.reply(item, &node))
		d.Replies = append(d.Replies, node)
	}
	t.Replies = joinFaults(t.Replies)
	return t, d
}

// joinFaults merges a reply that contains only faults, each limited to a number of times, with the next reply. Both
// answer the same request: the agent first gets the faults and, after its retries, the other reply.
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

// reply reads one reply. It stores the reply's syntax tree in node.
func (p *scriptParser) reply(n *yamlfile.Node, node *ReplyNode) Reply {
	r := Reply{Line: n.Line}
	switch n.Kind {
	case yamlfile.Null:
		return r
	case yamlfile.Map:
		if n.Field("any") == nil {
			n.Fail("write it as a list of steps: \"- - text: …\"", "a reply must be a list of steps")
		}
		n.Keys("a reply with alternatives", "any", "must")
		node.Raw = n.Source()
		for _, item := range n.Field("any").List("any") {
			r.Alternatives = append(r.Alternatives, p.reply(item, &ReplyNode{}))
		}
		optional(n, "must", &r.Must, (*yamlfile.Node).Bool)
		return r
	}
	for _, item := range n.List("a reply") {
		node.Steps = append(node.Steps, p.step(&r, item))
	}
	has := func(holds func(Step) bool) bool { return slices.ContainsFunc(r.Steps, holds) }
	if has(func(s Step) bool { return s.Kind == StepWhole }) && has(func(s Step) bool { return s.Gate != "" }) {
		n.Fail("", "a reply with whole cannot have a gate: the server sends it in one event")
	}
	return r
}

func (p *scriptParser) lanes(n *yamlfile.Node) []Lane {
	if n.Kind == yamlfile.Null {
		return nil
	}
	if n.Kind != yamlfile.Map {
		n.Fail("", "lanes must be a mapping from a name to a lane, not %s", n.What())
	}
	var out []Lane
	for _, f := range n.Fields {
		f.Keys("a lane", "when", "reply", "main")
		l := Lane{Name: f.Key}
		optional(f.Node, "when", &l.When, p.guard)
		optional(f.Node, "main", &l.Main, (*yamlfile.Node).Bool)
		reply := f.Field("reply")
		if reply != nil {
			l.Reply = p.reply(reply, &ReplyNode{})
		}
		switch {
		case f.Key == LaneMain:
			f.At.Fail("", "%q names the conversation itself and cannot be a lane", f.Key)
		case l.Main && reply != nil:
			reply.Fail("", "a lane with main: true is the conversation itself and cannot have a reply")
		case !l.Main && reply == nil:
			f.At.Fail("", "lane %q has no reply", f.Key)
		case len(l.When) == 0 && !slices.Contains(builtIn, f.Key):
			f.At.Fail("", "lane %q has no when, so it would take every request", f.Key)
		}
		out = append(out, l)
	}
	return out
}

var textFields = []string{"user", "prompt", "result", "system", "model", "wire", "path", "tool", "body"}
var flagFields = []string{"tools", "schema", "stream"}

func (p *scriptParser) guard(n *yamlfile.Node, _ string) Guard {
	known := slices.Concat(textFields, flagFields)
	if n.Kind != yamlfile.Map || len(n.Fields) == 0 {
		n.Fail("fields: "+strings.Join(known, ", "), "when must be a mapping of conditions, not %s", n.What())
	}
	var g Guard
	for _, f := range n.Fields {
		var c Condition
		name, isPattern := strings.CutSuffix(f.Key, "~")
		name, c.Negate = strings.CutSuffix(name, "!")
		c.Field = name
		if c.Negate && !isPattern {
			f.At.Fail("write "+name+"!~", "a negated condition needs a regular expression")
		}
		switch {
		case slices.Contains(flagFields, name):
			if isPattern {
				f.At.Fail("", "%s is true or false and cannot match a regular expression", name)
			}
			c.Value = fmt.Sprint(f.Node.Bool(name))
		case !slices.Contains(textFields, name):
			f.At.Fail(mistake.Suggest(name, known), "unknown field %q in a condition", name)
		case isPattern:
			var err error
			if c.Pattern, err = regexp.Compile(p.word(f.Node, f.Key)); err != nil {
				f.Node.Fail("", "bad regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			}
		default:
			c.Value = p.text(f.Node, name)
		}
		g = append(g, c)
	}
	return g
}

// optional reads the member key of a mapping with the function read, and stores the result in *into. If the member is
// missing, *into keeps its value.
func optional[T any](n *yamlfile.Node, key string, into *T, read func(n *yamlfile.Node, what string) T) {
	if f := n.Field(key); f != nil {
		*into = read(f, key)
	}
}

func fromOne(n *yamlfile.Node, what string) int { return n.Int(what, 1) }

// word reads a scalar without replacing variables. It fails for other nodes and for an empty text.
func (p *scriptParser) word(n *yamlfile.Node, what string) string {
	if n.Kind != yamlfile.Scalar || n.Text == "" {
		n.Fail("", "%s must be a text, not %s", what, n.What())
	}
	return n.Text
}

// text reads a scalar as a text and replaces its variables. A null is "".
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

// seconds reads a duration: in Go's notation, such as 1m30s, or a number of seconds.
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

// DecodeYAML reads a duration, or a range such as "10ms..50ms".
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

// jsonValue converts any YAML node to a value for JSON, and replaces variables in texts.
func (p *scriptParser) jsonValue(n *yamlfile.Node) any {
	switch n.Kind {
	case yamlfile.Map:
		return p.object(n)
	case yamlfile.List:
		return lists.Map(n.Items, p.jsonValue)
	case yamlfile.Scalar:
		if s, ok := n.Value.(string); ok {
			return p.expanded(n, s)
		}
		return n.Value
	}
	return nil
}

func (p *scriptParser) object(n *yamlfile.Node) object {
	return lists.Map(n.Fields, func(f yamlfile.Field) member { return member{f.Key, p.jsonValue(f.Node)} })
}
