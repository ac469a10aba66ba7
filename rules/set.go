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

// Definition is a protocol's description of its rules; New makes a Set of it.
// Only Watch is required.
type Definition struct {
	// Rules are rules; Text has further ones, in the form that readRules
	// describes.
	Rules []Rule
	Text  string
	// Watch begins to watch one transcript. It gets a Watch for each rule from
	// the checker and returns the observer of the entries.
	Watch func(*Checker) Observer
	// Requirements is the registry, in the form that registry.line reads. Bindings and
	// Prose are YAML: the tests of each requirement, and the sentences behind
	// those that rest only on prose.
	Requirements    string
	Bindings, Prose []byte
	// Everywhere reports whether the condition of a requirement holds for every
	// agent, as "always" does. Nil means that no other condition does.
	Everywhere func(condition string) bool
	// Severities are the severities that Config.Severity may name.
	Severities map[string]Severity
	// Aliases has a line OLD NEW for each former id of a rule, or of one of its
	// points as RULE/POINT. Lines that begin with # are comments.
	Aliases string
	// Examples has a file RULE.txtar of examples for each rule, in the folder
	// Folder, or at its top if Folder is "". Nil has none.
	Examples fs.FS
	Folder   string
}

// Observer watches one transcript for the rules of a set.
type Observer interface {
	// Observe judges the next entry.
	Observe(transcript.Entry)
	// Finish judges what only the end can show.
	Finish(End)
}

// Set holds the rules of one protocol and their requirements. It never changes.
type Set struct {
	definition Definition
	examples   map[string][]Example
	registry   *registry
	aliases    map[string]string
}

// New returns the Set of a definition. The error names the text and the line that
// is wrong.
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
// panics if one of them is wrong.
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

// Example is a minimal transcript, in the short notation of its protocol, and the
// expected finding of a rule. The examples are shown to users and are the tests
// of the rules.
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
