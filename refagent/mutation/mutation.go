// Package mutation changes a stream of messages. The changes are described as data: a file has one block for each
// mutation, with a name and a summary, further words, and rules.
//
//	cancel-error: answers a cancelled prompt with an internal error
//	  copies google-gemini/gemini-cli#13399
//	  <-- result session/prompt stopReason=cancelled
//	    fail -32603 "the operation was aborted"
//
// # Rules
//
// A rule begins with --> for messages from the client or <-- for messages from the agent. A kind, methods or tags,
// and conditions follow:
//
//	<-- request session/request_permission toolCall.kind=delete|move
//	<-- update tool_call* status=completed @asked[toolCallId]
//
// Kinds are request, notification, response (result for a success, error for a failure), update or event by its tag,
// any, stray (a response to no request), array and malformed. Rules without a message begin with start, end or timer
// NAME. A rule that begins with else applies only if the rule before it does not match. #2 selects the second message
// that matches.
//
// # Paths and conditions
//
// A path begins at params, result, error or the update, as in content.text. If it begins with a dot, it begins at the
// whole message, as in .id. A path may contain elements of lists: options.0, entries.-1, locations.*.path,
// content.[type=diff].oldText, [KEY!=fs|terminal]. A condition is PATH, !PATH, PATH=A|B, PATH!=A, PATH~REGEXP of the
// JSON, PATH<3. These words have special values: SESSION, REQUEST and REQUESTID of the request that a response
// answers, PROMPT (the id of the session's open prompt), PROMPTS (how many are open), OPEN (methods of the session's
// open requests), MESSAGE, UPDATE, SIZE of the line, IT of each, NEW for a fresh name.
//
// # Notes
//
// A note is a variable: @name belongs to the session, @@name to the connection, and @name[PATH] to the value at a
// path. The steps "note name VALUE" and "count name" write a note, and "forget name" removes it. The condition
// @name<30ms means that the note was written less than 30 ms ago.
//
// # Steps
//
// Values are JSON and may contain references $PATH or ${PATH}. A single word is a string. These are the steps:
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

// Mutation contains the rules of one block of a file. They are applied to each message in order. Once a rule has
// dropped, held, answered or passed a message, later rules are skipped.
type Mutation struct {
	rules []rule
}

// Empty reports whether the block has no rules.
func (m *Mutation) Empty() bool { return len(m.rules) == 0 }

// Nth returns a copy of the mutation that acts only on the n-th matching message, or on none if n is negative. This
// applies only to one rule, the site: the rule with a number such as #1, or else the last rule.
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

// Block is a named mutation in a file. Says contains its further words with their texts.
type Block struct {
	Name    string // kebab case, unique in the file
	Summary string // one sentence in plain words
	Topic   string // the last [TOPIC] above the block
	Says    map[string]string
	Mutation
}

// Has reports whether the block contains one of the further words.
func (b *Block) Has(word string) bool {
	_, says := b.Says[word]
	return says
}

// Tables returns a function that returns a copy of a protocol's table, or nil for an unknown protocol. It calls read
// only once for each protocol.
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

// Parse reads a file. says lists the further words that blocks may contain, each followed by a text. Errors contain
// the file's name, the line and the column.
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

// parser is the state of Parse, which reads a file line by line.
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

// begin reads the first line of a block, NAME: SUMMARY.
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

// head reads one line of a block: either a further word with its text, or the head of a rule.
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
