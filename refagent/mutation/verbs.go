package mutation

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// argument is one argument of a step. Which field is set depends on the argument's type, see verb.
type argument struct {
	ref   *ref
	json  *template
	text  string
	raw   *template
	match *regexp.Regexp
	delay time.Duration
}

// verb is a kind of step. takes has one letter for the type of each argument: r a reference, n a note, j a JSON
// value, t a text, w a text with references, x a pattern, d a duration. The letter after a star may occur any number
// of times. do applies the step.
type verb struct {
	takes string
	do    func(m *moment, a []argument)
}

// verbs returns all kinds of steps by name, except others and each, which contain other steps.
func verbs() map[string]verb {
	return map[string]verb{
		"set": {"rj", func(m *moment, a []argument) {
			a[0].ref.change(m, func(old any, _ bool) (any, bool) {
				m.it = old
				return a[1].json.value(m), true
			})
		}},
		"remove": {"r*r", func(m *moment, a []argument) {
			for _, one := range a {
				one.ref.change(m, func(any, bool) (any, bool) { return nil, false })
			}
		}},
		"append": {"rj", func(m *moment, a []argument) {
			a[0].ref.change(m, func(old any, _ bool) (any, bool) {
				m.it = old
				list, _ := old.([]any)
				v := a[1].json.value(m)
				more, ok := v.([]any)
				if !ok {
					more = []any{v}
				}
				return append(append([]any{}, list...), more...), true
			})
		}},
		"replace": {"rxt", func(m *moment, a []argument) {
			a[0].ref.change(m, func(old any, has bool) (any, bool) {
				if text, ok := old.(string); ok {
					return a[1].match.ReplaceAllString(text, a[2].text), true
				}
				return old, has
			})
		}},
		"rename": {"rtt", func(m *moment, a []argument) {
			a[0].ref.change(m, func(old any, has bool) (any, bool) {
				if o, ok := old.(map[string]any); ok {
					o[a[2].text] = o[a[1].text]
					delete(o, a[1].text)
				}
				return old, has
			})
		}},
		"fill": {"r*r", func(m *moment, a []argument) {
			for _, one := range a {
				one.ref.change(m, func(old any, _ bool) (any, bool) { return old, true })
			}
		}},
		"merge": {"j", func(m *moment, a []argument) {
			if m.body != nil {
				merged(m.body, a[0].json.value(m))
				m.changed = true
			}
		}},
		"succeed": {"j", func(m *moment, a []argument) { m.outcome("result", a[0].json.value(m)) }},
		"fail":    {"jt", func(m *moment, a []argument) { m.outcome("error", failure(m, a)) }},

		"split": {"rx", func(m *moment, a []argument) {
			text, ok := a[0].ref.value(m).(string)
			if !ok {
				return
			}
			for _, piece := range a[1].match.FindAllString(text, -1) {
				a[0].ref.change(m, func(any, bool) (any, bool) { return piece, true })
				m.emit(other(m.from), m.message.Clone(), m.origin)
			}
			m.gone = true
		}},

		"drop":   {"", func(m *moment, _ []argument) { m.gone = true }},
		"pass":   {"", func(m *moment, _ []argument) { m.pass() }},
		"double": {"", func(m *moment, _ []argument) { m.emit(other(m.from), m.message.Clone(), m.origin) }},
		"exit":   {"", func(m *moment, _ []argument) { m.out = append(m.out, Output{Exit: true}) }},

		"hold": {"n", func(m *moment, a []argument) {
			n := m.note(a[0].ref)
			n.value, n.held, m.gone = true, append(n.held, m.asHeld()), true
		}},
		"release": {"n", func(m *moment, a []argument) {
			for _, h := range m.freed(a[0].ref) {
				m.let(h)
			}
		}},
		"replay": {"n", func(m *moment, a []argument) { m.again = append(m.again, m.freed(a[0].ref)...) }},
		"note": {"n*j", func(m *moment, a []argument) {
			v := any(true)
			if len(a) > 1 {
				v = laid(m, a[1:])
			}
			m.note(a[0].ref).value = v
		}},
		"count": {"n?j", func(m *moment, a []argument) {
			more := 1.0
			if len(a) > 1 {
				more = number(a[1].json.value(m))
			}
			n := m.note(a[0].ref)
			n.value = json.Number(strconv.FormatFloat(number(n.value)+more, 'f', -1, 64))
		}},
		"forget": {"n*n", func(m *moment, a []argument) {
			for _, one := range a {
				delete(m.notes, one.ref.slot(m))
			}
		}},

		"send":   {"j*j", func(m *moment, a []argument) { m.emit(Client, m.built(a), nil) }},
		"give":   {"j*j", func(m *moment, a []argument) { m.emit(Agent, m.built(a), nil) }},
		"tell":   {"tj", func(m *moment, a []argument) { m.emit(Client, m.telling(a[0].text, a[1].json.value(m)), nil) }},
		"answer": {"j", func(m *moment, a []argument) { m.answer("result", a[0].json.value(m)) }},
		"refuse": {"jt", func(m *moment, a []argument) { m.answer("error", failure(m, a)) }},
		"write": {"w", func(m *moment, a []argument) {
			m.out = append(m.out, Output{To: Client, Raw: []byte(a[0].raw.text(m))})
		}},
		"spell": {"xt", func(m *moment, a []argument) {
			m.out = append(m.out, Output{To: other(m.from), Origin: m.origin,
				Raw: a[0].match.ReplaceAll(m.message.Encode(), []byte(a[1].text))})
			m.gone = true
		}},
		"later": {"dt", func(m *moment, a []argument) {
			w := *m
			w.message = m.message.Clone()
			m.out = append(m.out, Output{Delay: a[0].delay, Wait: &Wait{a[1].text, w}})
		}},
	}
}

// freed removes a note and returns the messages that were held back in it.
func (m *moment) freed(at *ref) []held {
	n := m.notes[at.slot(m)]
	if n == nil {
		return nil
	}
	delete(m.notes, at.slot(m))
	return n.held
}

func failure(m *moment, a []argument) map[string]any {
	return map[string]any{"code": a[0].json.value(m), "message": a[1].text}
}

// outcome makes the current response a success or an error. member is "result" or "error", and v its value.
func (m *moment) outcome(member string, v any) {
	delete(m.message, "result")
	delete(m.message, "error")
	m.message[member], m.changed = v, true
	m.body, _ = v.(map[string]any)
}

// answer responds to the current request instead of passing it on. member is "result" or "error", and v its value.
func (m *moment) answer(member string, v any) {
	m.emit(m.from, Message{"jsonrpc": "2.0", "id": m.message["id"], member: v}, nil)
	m.gone = true
}

// built returns the message that the arguments describe, which are merged into one object.
func (m *moment) built(a []argument) Message {
	built, _ := laid(m, a).(map[string]any)
	return built
}

// laid returns the value of the first argument, with the values of the others merged into it.
func laid(m *moment, a []argument) any {
	v := a[0].json.value(m)
	for _, one := range a[1:] {
		v = merged(v, one.json.value(m))
	}
	return v
}

// telling returns a session/update of the given kind for the current session. If the current message is an event, it
// returns an event instead.
func (m *moment) telling(kind string, v any) Message {
	members, _ := v.(map[string]any)
	if members == nil {
		members = map[string]any{}
	}
	if m.kind == "event" {
		members["type"] = kind
		return members
	}
	members["sessionUpdate"] = kind
	session, named := members["sessionId"]
	if delete(members, "sessionId"); !named {
		session = m.session
	}
	return Message{"jsonrpc": "2.0", "method": "session/update",
		"params": map[string]any{"sessionId": session, "update": members}}
}

// parseAction parses one step.
func parseAction(tokens []string) (action, error) {
	name, rest := tokens[0], tokens[1:]
	switch name {
	case "others":
		return parseOthers(rest)
	case "each":
		return parseEach(rest)
	}
	v, ok := verbs()[name]
	if !ok {
		return nil, fmt.Errorf("%q is no step", name)
	}
	var list []argument
	takes := v.takes
	for _, token := range rest {
		if takes == "" {
			return nil, fmt.Errorf("%s takes no %s", name, token)
		}
		takes = strings.TrimPrefix(takes, "?")
		letter := strings.TrimPrefix(takes, "*")[0]
		a, err := parseArgument(letter, token)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
		if takes[0] != '*' {
			takes = takes[1:]
		}
	}
	if takes != "" && takes[0] != '*' && takes[0] != '?' {
		return nil, fmt.Errorf("%s needs more words after it", name)
	}
	return func(m *moment) { v.do(m, list) }, nil
}

func parseArgument(letter byte, token string) (a argument, err error) {
	text := token
	if unquoted, e := strconv.Unquote(token); e == nil {
		text = unquoted
	}
	switch letter {
	case 'r':
		a.ref, err = parseRef(token)
	case 'n':
		if token[0] != '@' {
			token = "@" + token
		}
		a.ref, err = parseRef(token)
	case 'j':
		a.json, err = parseTemplate(token)
	case 't':
		a.text = text
	case 'w':
		a.raw, err = parseText(text)
	case 'x':
		a.match, err = regexp.Compile(text)
	case 'd':
		a.delay, err = time.ParseDuration(token)
	}
	return a, err
}

// parseOthers parses the step "others": conditions, followed by the steps to apply in each other session that meets
// them.
func parseOthers(tokens []string) (action, error) {
	var when []*condition
	for len(tokens) > 0 && strings.ContainsAny(tokens[0][:1], "@!PO") {
		c, err := parseCondition(tokens[0])
		if err != nil {
			return nil, err
		}
		when, tokens = append(when, c), tokens[1:]
	}
	do, err := inner("others", tokens)
	return func(m *moment) {
		for _, s := range m.seen {
			one := *m
			one.session = s
			if s != m.session && !slices.ContainsFunc(when, func(c *condition) bool { return !c.holds(&one) }) {
				do(&one)
			}
		}
	}, err
}

// parseEach parses the step "each": a reference, followed by the steps to apply to each of its values. IT stands for
// the value.
func parseEach(tokens []string) (action, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("each needs a path")
	}
	of, err := parseRef(tokens[0])
	if err != nil {
		return nil, err
	}
	do, err := inner("each", tokens[1:])
	return func(m *moment) {
		for _, v := range of.values(m) {
			list, ok := v.([]any)
			if !ok {
				list = []any{v}
			}
			for _, m.it = range list {
				do(m)
			}
		}
	}, err
}

// inner parses the steps inside a step "others" or "each". They are separated by semicolons.
func inner(of string, tokens []string) (action, error) {
	var list []action
	for len(tokens) > 0 {
		end := slices.Index(tokens, ";")
		if end < 0 {
			end = len(tokens)
		}
		if end == 0 {
			break
		}
		do, err := parseAction(tokens[:end])
		if err != nil {
			return nil, err
		}
		list, tokens = append(list, do), tokens[min(end+1, len(tokens)):]
	}
	if list == nil {
		return nil, fmt.Errorf("%s needs a step", of)
	}
	return func(m *moment) {
		for _, do := range list {
			do(m)
		}
	}, nil
}
