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

// Definition is the source of a Set. Only Watch is required.
type Definition struct {
	// Rules lists rules. Text defines more rules after them, in the format that readRules describes.
	Rules []Rule
	Text  string
	// Watch prepares to judge one transcript. It gets a Watch for each rule from the checker, and returns the observer
	// of the entries.
	Watch func(*Checker) Observer
	// Requirements is the registry, in the format that registry.line reads. Bindings is YAML with the tests of each
	// requirement. Prose is YAML with the sentences behind requirements that rest only on prose.
	Requirements    string
	Bindings, Prose []byte
	// Everywhere reports whether a condition is true for every agent, as "always" is. If Everywhere is nil, only
	// "always" is true for every agent.
	Everywhere func(condition string) bool
	// Severities maps the possible values of Config.Severity to severities.
	Severities map[string]Severity
	// Aliases has a line OLD NEW for each former id of a rule, or of a point in the form RULE/POINT. Lines that begin
	// with # are comments.
	Aliases string
	// Examples contains a file RULE.txtar with the examples of each rule. The files are in the folder Folder; "" is the
	// root. A nil Examples means no examples.
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

// Set holds the rules of one protocol and their requirements. It is immutable.
type Set struct {
	definition Definition
	examples   map[string][]Example
	registry   *registry
	aliases    map[string]string
}

// New makes a Set from a definition. An error names the text and the line with the mistake.
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

// Must makes a Set from a definition that is embedded in the program. It panics if the definition has a mistake.
func Must(d Definition) *Set {
	s, err := New(d)
	if err != nil {
		panic("an embedded file: " + err.Error())
	}
	return s
}

// Rules returns all rules, in the order of the definition.
func (s *Set) Rules() []Rule { return slices.Clone(s.definition.Rules) }

// Rule returns the rule with this id or alias.
func (s *Set) Rule(id string) (Rule, bool) {
	id = s.Current(id)
	i := slices.IndexFunc(s.definition.Rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return s.definition.Rules[i], true
}

// Example is a minimal transcript, in the short notation of its protocol, with the expected finding of a rule. The
// examples are shown to users, and tests of the rules run them.
type Example struct {
	Rule string
	// Class and Point are those of the expected finding. If no finding is expected, they are Pass and "".
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
