package rules

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/transcript"
)

// Definition describes the rules of a protocol; New makes a Set of it. Only
// Watch is required.
type Definition struct {
	// Rules are the first rules. Text defines further ones, in the format that
	// readRules describes.
	Rules []Rule
	Text  string
	// Watch begins to judge one transcript. It gets a Watch for each rule from
	// the checker, and returns the observer for the entries.
	Watch func(*Checker) Observer
	// Requirements is the registry, in the format that registry.line reads. Bindings is YAML with the tests of each
	// requirement. Prose is YAML with the sentences behind requirements that rest only on prose.
	Requirements    string
	Bindings, Prose []byte
	// Everywhere reports whether the condition of a requirement holds for every
	// agent, like "always". If it is nil, only "always" does.
	Everywhere func(condition string) bool
	// Severities are the values for Config.Severity, by name.
	Severities map[string]Severity
	// Aliases has a line OLD NEW for each former id of a rule, or of one of its
	// points as RULE/POINT. Lines that begin with # are comments.
	Aliases string
	// Examples has the examples of each rule in a file RULE.txtar in the folder
	// Folder; "" is the top. Nil means no examples.
	Examples fs.FS
	Folder   string
}

// Observer judges one transcript by the rules of a set.
type Observer interface {
	// Observe judges the next entry.
	Observe(transcript.Entry)
	// Finish runs the checks that need the end of the transcript.
	Finish(End)
}

// Set holds the rules of one protocol and their requirements. It never changes.
type Set struct {
	definition Definition
	examples   map[string][]Example
	registry   *registry
	aliases    map[string]string
}

// New returns the Set of a definition. Its error names the text and the line
// with the mistake.
func New(d Definition) (*Set, error) {
	read, err := readRules(d.Text)
	if err != nil {
		return nil, err
	}
	d.Rules = slices.Concat(d.Rules, read)
	r, err := readRegistry(d)
	if err != nil {
		return nil, err
	}
	s := &Set{definition: d, registry: r, examples: map[string][]Example{}}
	if s.aliases, err = readAliases(d); err != nil {
		return nil, err
	}
	for _, severity := range d.Severities {
		for point, class := range maps.Clone(severity.Raised) {
			severity.Raised[s.Current(point)] = class
		}
	}
	if d.Examples == nil {
		return s, nil
	}
	for _, rule := range d.Rules {
		if err := s.readExamples(rule.ID); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Must returns the Set of a definition whose texts are part of the program. It
// panics if one of the texts has a mistake.
func Must(d Definition) *Set {
	s, err := New(d)
	if err != nil {
		panic("an embedded file: " + err.Error())
	}
	return s
}

// Rules returns all rules, in the order of the definition.
func (s *Set) Rules() []Rule { return slices.Clone(s.definition.Rules) }

// Rule returns the rule with an id or an alias.
func (s *Set) Rule(id string) (Rule, bool) {
	id = s.Current(id)
	i := slices.IndexFunc(s.definition.Rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return s.definition.Rules[i], true
}

// Example is a minimal transcript, in the short notation of its protocol, with
// the expected finding of a rule. Users see the examples, and tests of the
// rules run them.
type Example struct {
	Rule string
	// Class and Point are those of the expected finding: Pass and "" for none.
	Class Class
	Point string
	// Remark is a note about the example, or "".
	Remark string
	Text   string
}

// Examples returns the examples of one rule, in their order.
func (s *Set) Examples(rule string) []Example { return slices.Clone(s.examples[rule]) }

func (s *Set) readExamples(rule string) error {
	name := rule + ".txtar"
	data, err := fs.ReadFile(s.definition.Examples, path.Join(s.definition.Folder, name))
	if err != nil {
		return err
	}
	for _, file := range txtar.Parse(data).Files {
		x := Example{Rule: rule, Text: string(file.Data)}
		word, rest, _ := strings.Cut(file.Name, " ")
		if word == "pass" {
			x.Class, x.Remark = Pass, rest
		} else {
			if err := x.Class.UnmarshalText([]byte(word)); err != nil {
				return fmt.Errorf("%s: %w", path.Join("examples", name), err)
			}
			x.Point, x.Remark, _ = strings.Cut(rest, ": ")
		}
		s.examples[rule] = append(s.examples[rule], x)
	}
	return nil
}
