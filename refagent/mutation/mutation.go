// Package mutation plays changes of a stream of messages that are written as data. A file has a block for each: a name
// and a sentence, further facts, and its rules.
//
//	cancel-error: answers a cancelled prompt with an internal error
//	  copies google-gemini/gemini-cli#13399
//	  <-- result session/prompt stopReason=cancelled
//	    fail -32603 "the operation was aborted"
//
// # Rules
//
// A rule begins with --> for messages of the client or <-- for those of the agent. Then come a kind, methods or tags,
// and conditions:
//
//	<-- request session/request_permission toolCall.kind=delete|move
//	<-- update tool_call* status=completed @asked[toolCallId]
//
// Kinds are request, notification, response (result for a success, error for a failure), update or event by its tag,
// any, stray (a response to no request), array and malformed. Rules without a message begin with start, end or timer
// NAME. A rule after else applies if the rule before does not fit. #2 selects the second message that fits.
//
// # Paths and conditions
//
// A path begins at params, result, error or the update; with a dot first at the whole message:
// content.text, .id. It may pass through lists: options.0, entries.-1, locations.*.path,
// content.[type=diff].oldText, [KEY!=fs|terminal]. A condition is PATH, !PATH, PATH=A|B, PATH!=A,
// PATH~REGEXP of the JSON, PATH<3. Words that stand for something else: SESSION, REQUEST and
// REQUESTID of the request that a response answers, PROMPT (the id of the session's open prompt),
// PROMPTS (how many are open), OPEN (methods of the session's open requests), MESSAGE, UPDATE,
// SIZE of the line, IT of each, NEW for a fresh name.
//
// # Notes
//
// @name is a note of the session, @@name of the connection, @name[PATH] one by a value.
// "note name VALUE" and "count name" write it, "forget name" removes it. @name<30ms means: it was
// written less than 30 ms ago.
//
// # Steps
//
// Values are JSON with $PATH or ${PATH} in it; a word alone is a string. The steps:
//
//	set PATH VALUE        append PATH VALUE    replace PATH REGEXP TEXT   rename PATH OLD NEW
//	remove PATH…          fill PATH… (null)    merge VALUE                split PATH REGEXP
//	succeed VALUE         fail CODE TEXT       (make a response one)
//	drop   pass   double  exit
//	hold NOTE             release NOTE         replay NOTE (play it again)
//	answer VALUE          refuse CODE TEXT     (instead of the one that is asked)
//	send VALUE…           give VALUE…          (to the client, to the agent; merged)
//	tell KIND VALUE       write TEXT           spell REGEXP TEXT (of the bytes)
//	later 20ms TIMER      each PATH STEP ; STEP      others CONDITION STEP (in each other session)
package mutation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Mutation holds the rules of one block of a file. They are tried in order on
// each message. Once a rule has dropped, held, answered or passed a message, no
// later rule sees it.
type Mutation struct {
	rules []rule
}

// Empty reports whether the block has no rules.
func (m *Mutation) Empty() bool { return len(m.rules) == 0 }

// Nth returns a mutation whose site acts only on the n-th message that fits, or
// never if n is negative. The site is the rule with a number such as #1, else
// the last rule.
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

// Has reports whether the block has a word.
func (b *Block) Has(word string) bool {
	_, says := b.Says[word]
	return says
}

// Tables returns a function that returns a copy of a protocol's table, nil for a
// protocol without a table. It reads each table only once.
func Tables[T any](read func(protocol string) []T, protocols ...string) func(protocol string) []T {
	lists := map[string]func() []T{}
	for _, protocol := range protocols {
		lists[protocol] = sync.OnceValue(func() []T { return read(protocol) })
	}
	return func(protocol string) []T {
		if list, ok := lists[protocol]; ok {
			return slices.Clone(list())
		}
		return nil
	}
}

// Parse reads a file. says are the further words that its blocks may have, each
// followed by a text. Errors name file, line and column.
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
		return fmt.Errorf("an indented line needs a NAME: SENTENCE line above it")
	}
	b := &p.blocks[len(p.blocks)-1]
	if indent == 2 {
		return p.head(b, body)
	}
	if len(b.rules) == 0 {
		return fmt.Errorf("a step needs a rule above it")
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
			return fmt.Errorf("%s is defined twice", name)
		}
	}
	p.blocks = append(p.blocks, Block{Name: name, Summary: summary, Topic: p.topic, Says: map[string]string{}})
	return nil
}

// head reads a word of a block with its text, or the head of a rule.
func (p *parser) head(b *Block, body string) error {
	word, rest, _ := strings.Cut(body, " ")
	if slices.Contains(p.says, word) {
		b.Says[word] = strings.TrimSpace(rest)
		return nil
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

// split splits a line at its spaces, except those in quotes, brackets and braces.
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
		return nil, fmt.Errorf("a bracket or a quote is not closed")
	}
	return tokens, nil
}
