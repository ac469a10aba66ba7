// Package mutation plays changes of a stream of messages that are written as data. A file
// has a block for each: a name and a sentence, what else is known of it, and its rules.
//
//	cancel-error: answers a cancelled prompt with an internal error
//	  copies google-gemini/gemini-cli#13399
//	  <-- result session/prompt stopReason=cancelled
//	    fail -32603 "the operation was aborted"
//
// A rule begins with --> for messages of the client or <-- for those of the agent, and says
// which: a kind (request, notification, response, result, error, update, event, stray,
// malformed, any), methods or tags, and conditions. start, end and timer NAME are rules
// without a message; else is for what the rule before does not fit. Paths begin at params,
// result, error or the update, or with a dot at the whole message. Steps are in verbs.go.
package mutation

import (
	"fmt"
	"slices"
	"strings"
)

// Mutation is what one block of a file does. Its rules are tried in their order on each
// message; once a rule has dropped, held, answered or passed a message, no other sees it.
type Mutation struct {
	rules []rule
}

// Empty reports whether the block has no rules.
func (m *Mutation) Empty() bool { return len(m.rules) == 0 }

// Nth is the mutation whose site acts on the n-th message alone that it fits; on none for a
// negative n. The site is the rule with a number such as #1, else the last one.
func (m *Mutation) Nth(n int) *Mutation {
	list := slices.Clone(m.rules)
	list[site(list)].nth = n
	return &Mutation{list}
}

func site(list []rule) int {
	if i := slices.IndexFunc(list, func(r rule) bool { return r.nth != 0 }); i >= 0 {
		return i
	}
	return len(list) - 1
}

// Block is a named mutation of a file.
type Block struct {
	Name    string // kebab case, unique in the file
	Summary string // in plain words
	Topic   string // the last [TOPIC] above the block
	Says    map[string]string
	Mutation
}

// Parse reads a file. Its blocks may say the words of says, each with what stands behind it.
// Errors name file, line and column.
func Parse(name, text string, says ...string) ([]Block, error) {
	p := parser{says: says}
	line := 0
	for raw := range strings.Lines(text) {
		line++
		raw = strings.TrimRight(raw, " \n")
		body := strings.TrimLeft(raw, " ")
		if body == "" || body[0] == '#' {
			continue
		}
		if err := p.line(len(raw)-len(body), body); err != nil {
			return nil, fmt.Errorf("%s:%d:%d: %w", name, line, len(raw)-len(body)+1, err)
		}
	}
	return p.blocks, nil
}

// parser reads a file line by line.
type parser struct {
	says   []string
	topic  string
	blocks []Block
}

func (p *parser) line(indent int, body string) error {
	switch {
	case indent == 0 && body[0] == '[':
		p.topic = strings.Trim(body, "[]")
		return nil
	case indent == 0:
		return p.begin(body)
	case len(p.blocks) == 0:
		return fmt.Errorf("a name stands above what is indented")
	}
	b := &p.blocks[len(p.blocks)-1]
	if indent == 2 {
		return p.head(b, body)
	}
	if len(b.rules) == 0 {
		return fmt.Errorf("a rule stands above its steps")
	}
	tokens, err := split(body)
	if err != nil {
		return err
	}
	do, err := parseAction(tokens)
	r := &b.rules[len(b.rules)-1]
	r.do = append(r.do, do)
	return err
}

// begin reads NAME: SUMMARY.
func (p *parser) begin(body string) error {
	name, summary, ok := strings.Cut(body, ": ")
	if !ok || name == "" {
		return fmt.Errorf("a block begins with NAME: SENTENCE")
	}
	for _, b := range p.blocks {
		if b.Name == name {
			return fmt.Errorf("%s is there twice", name)
		}
	}
	p.blocks = append(p.blocks, Block{Name: name, Summary: summary, Topic: p.topic, Says: map[string]string{}})
	return nil
}

// head reads what is known of a block, or the head of a rule.
func (p *parser) head(b *Block, body string) error {
	word, rest, _ := strings.Cut(body, " ")
	for _, known := range p.says {
		if word == known {
			b.Says[word] = strings.TrimSpace(rest)
			return nil
		}
	}
	tokens, err := split(body)
	if err != nil {
		return err
	}
	r, err := parseRule(tokens)
	if err != nil {
		return err
	}
	b.rules = append(b.rules, *r)
	return nil
}

// split cuts a line at its spaces, but for those in quotes, brackets and braces.
func split(s string) (tokens []string, err error) {
	depth, quoted, from := 0, false, 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || s[i] == ' ' && depth == 0 && !quoted:
			if from < i {
				tokens = append(tokens, s[from:i])
			}
			from = i + 1
		case s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("[{", s[i]) >= 0:
			depth++
		case strings.IndexByte("]}", s[i]) >= 0:
			depth--
		}
	}
	if depth != 0 || quoted {
		return nil, fmt.Errorf("a bracket or a quote stays open")
	}
	return tokens, nil
}
