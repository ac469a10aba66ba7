package mutation

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rule selects messages and contains the steps to apply to them.
type rule struct {
	otherwise bool   // else: applies only if the rule before does not match
	from      string // "-->", "<--", start, end or timer
	kind      string
	names     []string // patterns of methods or tags, or the name of a timer
	when      []*condition
	nth       int // only the n-th message that matches; 0: all
	do        []action
}

// action applies one step of a rule.
type action func(m *moment)

// kinds contains the kinds of messages. The value is true if methods or tags follow the kind in a rule.
var kinds = map[string]bool{"request": true, "notification": true, "response": true, "result": true, "error": true,
	"update": true, "event": true, "any": false, "malformed": false, "array": false, "stray": false}

// parseRule parses the head of a rule.
func parseRule(tokens []string) (*rule, error) {
	r := &rule{}
	if tokens[0] == "else" {
		r.otherwise, tokens = true, tokens[1:]
	}
	if len(tokens) == 0 {
		return nil, errors.New("else needs a rule after it")
	}
	r.from, tokens = tokens[0], tokens[1:]
	named := r.from == "timer"
	switch r.from {
	case "start", "end", "timer":
	case clientSays, agentSays:
		if len(tokens) == 0 {
			return nil, fmt.Errorf("%s needs a kind of message after it: request, response, update or any", r.from)
		}
		var known bool
		if named, known = kinds[tokens[0]]; !known {
			return nil, fmt.Errorf("%q is no kind of message", tokens[0])
		}
		r.kind, tokens = tokens[0], tokens[1:]
	default:
		return nil, fmt.Errorf("%q begins no rule: a rule begins with -->, <--, start, end or timer", r.from)
	}
	if named {
		if len(tokens) == 0 {
			return nil, fmt.Errorf("%s needs a name", r.kind)
		}
		r.names, tokens = strings.Split(tokens[0], "|"), tokens[1:]
	}
	for _, t := range tokens {
		if n, ok := strings.CutPrefix(t, "#"); ok {
			var err error
			if r.nth, err = strconv.Atoi(n); err != nil || r.nth < 1 {
				return nil, fmt.Errorf("%q is not the number of a message", t)
			}
			continue
		}
		c, err := parseCondition(t)
		if err != nil {
			return nil, err
		}
		r.when = append(r.when, c)
	}
	return r, nil
}

// fits reports whether the rule matches the current message. It also sets m.body, at which the rule's paths begin.
func (r *rule) fits(m *moment) bool {
	if r.from != m.event {
		return false
	}
	name := m.method
	m.body = m.params
	switch r.kind {
	case "":
		name = m.timer
	case "update", "event":
		m.body, name = m.update, m.tag
		if m.update == nil {
			return false
		}
	case "result", "error":
		m.body, _ = m.message[r.kind].(map[string]any)
		if _, has := m.message[r.kind]; !has || m.kind != "response" {
			return false
		}
	case "any":
	default:
		if m.kind != r.kind {
			return false
		}
	}
	if r.names != nil && !slices.ContainsFunc(r.names, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok || p == "*"
	}) {
		return false
	}
	return !slices.ContainsFunc(r.when, func(c *condition) bool { return !c.holds(m) })
}

// condition is one condition of a rule. It tests that a value exists, equals another, matches a pattern, or is less
// or greater than a number.
type condition struct {
	not      bool
	left     *ref
	op       string
	right    []*template // alternatives
	pattern  *regexp.Regexp
	number   float64
	duration time.Duration // for a note: its age
}

var operator = lazily(`!=|=|~|<|>`)

// parseCondition parses REF, !REF, REF=VALUE|VALUE, REF!=VALUE, REF~PATTERN, REF<NUMBER or @NOTE<30ms.
func parseCondition(s string) (*condition, error) {
	c := &condition{}
	s, c.not = strings.CutPrefix(s, "!")
	left, right := s, ""
	if at := operator().FindStringIndex(outside(s)); at != nil {
		left, c.op, right = s[:at[0]], s[at[0]:at[1]], s[at[1]:]
	}
	var err error
	if c.left, err = parseRef(left); err != nil {
		return nil, err
	}
	switch c.op {
	case "=", "!=":
		for word := range strings.SplitSeq(right, "|") {
			if text, err := strconv.Unquote(word); err == nil {
				word = text
			}
			t, err := parseText(word)
			if err != nil {
				return nil, err
			}
			c.right = append(c.right, t)
		}
	case "~":
		if text, err := strconv.Unquote(right); err == nil {
			right = text
		}
		c.pattern, err = regexp.Compile(right)
	case "<", ">":
		if c.number, err = strconv.ParseFloat(right, 64); err != nil {
			c.duration, err = time.ParseDuration(right)
		}
	}
	return c, err
}

// outside replaces text in brackets by spaces. Positions in the result are therefore the same as in s.
func outside(s string) string {
	out, depth := []byte(s), 0
	for i, b := range out {
		if b == '[' {
			depth++
		}
		if depth > 0 {
			out[i] = ' '
		}
		if b == ']' {
			depth--
		}
	}
	return string(out)
}

func (c *condition) holds(m *moment) bool { return c.test(m, c.left.values(m)) != c.not }

// test reports whether the condition is true for the values. It ignores the leading "!".
func (c *condition) test(m *moment, values []any) bool {
	is := func(test func(v any) bool) bool { return slices.ContainsFunc(values, test) }
	switch c.op {
	case "=", "!=":
		same := is(func(v any) bool {
			return slices.ContainsFunc(c.right, func(t *template) bool { return t.text(m) == plain(v) })
		})
		return same == (c.op == "=")
	case "~":
		return is(func(v any) bool { return c.pattern.Match(encode(v)) })
	case "<", ">":
		var first any
		if len(values) > 0 {
			first = values[0]
		}
		switch n := m.notes[c.left.slot(m)]; {
		case c.duration > 0:
			return (n != nil && time.Since(n.at) < c.duration) == (c.op == "<")
		case c.op == "<":
			return number(first) < c.number
		}
		return number(first) > c.number
	}
	return is(func(v any) bool { return v != nil })
}
