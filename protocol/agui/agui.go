// Package agui gives the engine its description of AG-UI, the protocol between agents and web front ends.
package agui

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/canonical"
	"github.com/acp-test/acp-test/protocol/agui/invariants"
	"github.com/acp-test/acp-test/protocol/agui/words"
	"github.com/acp-test/acp-test/scenarios"
)

//go:embed suites/*/*.txtar
var suites embed.FS

// Name is the protocol's name in command lines and files.
const Name = "ag-ui"

// V1 returns AG-UI, versions 0.x to 1.1. A stream that declares no version counts as 0.x.
func V1() *scenarios.Protocol { return v1() }

var v1 = sync.OnceValue(func() *scenarios.Protocol {
	files, err := fs.Sub(suites, "suites")
	if err != nil {
		panic(err) // the name is valid
	}
	p := &scenarios.Protocol{Dialect: scenarios.Dialect{Name: Name, Suites: files, SuitesAt: "protocol/agui/suites"},
		Version: Name, Classifier: aguiframe.Classifier{}, Rules: invariants.V1(),
		Canonical: canonical.V1(), ClientRemembers: true}
	words.Add(p)
	return scenarios.Complete(p)
})

//go:embed types.txt
var types string

//go:embed says.txt
var about string

// shape describes a type for the inspector page. Fields are the members of an object. By is the member whose value
// says which of Forms an object has.
type shape struct {
	Fields [][]string `json:"fields,omitempty"`
	By     string     `json:"by,omitempty"`
	Forms  [][]string `json:"forms,omitempty"`
}

// Fields returns what the specification says about events' members and a run's input, for the inspector page.
func Fields() inspector.Fields {
	f := inspector.Fields{Calls: map[string][]string{}, Whole: map[string]string{"run": "RunAgentInput"},
		Types: map[string]any{}, Cite: "@ag-ui/core/schemas#", Says: map[string][]int{}}
	words := map[string]bool{} // words that can only mean an event or a member
	add := func(name string, s shape) {
		f.Types[name] = s
		for _, field := range s.Fields {
			word := strings.TrimSuffix(field[0], "?")
			words[word] = strings.ToLower(word) != word
		}
	}
	for line := range strings.Lines(types) {
		if parts := strings.Fields(line); parts[0] != "#" {
			add(parts[0], shaped(parts[1:]))
		}
	}
	add("Content", shape{Forms: [][]string{{"text", "string"}, {"parts", "ContentPart[]"}}})
	for event, members := range invariants.Members() {
		if strings.HasPrefix(event, "THINKING_") {
			continue // they were retired before the schema existed
		}
		var s shape
		for _, m := range members {
			s.Fields = append(s.Fields, []string{m[0], typeOf(event, strings.TrimSuffix(m[0], "?"), m[1])})
		}
		f.Whole[event], words[event] = typeName(event), true
		add(typeName(event), s)
	}
	says := map[string][]string{} // subjects of each requirement, by its id
	for line := range strings.Lines(about) {
		parts := strings.Fields(line)
		if parts[0] == "#" {
			continue
		}
		for _, id := range parts[1:] {
			says["AGUI-"+id] = append(says["AGUI-"+id], parts[0])
		}
	}
	for _, q := range V1().Rules.Requirements() {
		n := len(f.Statements)
		for _, key := range says[q.ID] {
			f.Says[key] = append(f.Says[key], n)
		}
		f.Statements = append(f.Statements, [4]string{q.ID, q.Level, q.Statement, q.Cite.String()})
		var said []string
		for _, w := range word().FindAllString(q.Statement, -1) {
			if words[w] && !slices.Contains(said, w) {
				said = append(said, w)
				f.Says[w] = append(f.Says[w], n)
			}
		}
	}
	return f
}

var word = lazy.Regexp(`\w+`)

// shaped returns the shape of a type. words are the words after the type's name in the table.
func shaped(words []string) (s shape) {
	if words[0] == "by" {
		s.By, words = words[1], words[2:]
		for _, w := range words {
			tag, name, _ := strings.Cut(w, "=")
			s.Forms = append(s.Forms, []string{tag, name})
		}
		return s
	}
	for _, w := range words {
		name, kind, typed := strings.Cut(w, ":")
		if !typed {
			kind = "string"
		}
		s.Fields = append(s.Fields, []string{name, kind})
	}
	return s
}

// typeName returns the name that the schema gives to an event's type: RunStartedEvent for RUN_STARTED.
func typeName(event string) string {
	var b strings.Builder
	for w := range strings.SplitSeq(event, "_") {
		b.WriteString(w[:1] + strings.ToLower(w[1:]))
	}
	return b.String() + "Event"
}

// typeOf returns the type of a member of an event. kind is the member's type in the table of the rules.
func typeOf(event, member, kind string) string {
	switch {
	case member == "type":
		return event
	case kind == "list" && member == "usage":
		return "TokenUsage[]"
	case kind == "list":
		return "JsonPatchOperation[]"
	case kind == "content" && event == "TOOL_CALL_RESULT":
		return "Content"
	}
	named := map[string]string{"": "string", "whole": "integer", "bool": "boolean", "some": "any",
		"input": "RunAgentInput", "messages": "Message[]", "outcome": "RunFinishedOutcome",
		"suboutcome": "SubagentFinishedOutcome"}
	if name, ok := named[kind]; ok {
		return name
	}
	return kind
}
