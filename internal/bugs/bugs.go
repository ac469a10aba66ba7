// Package bugs is a record of public bug reports about agents and editors, each
// with a fault that reproduces the bug and the rules and checks that find it.
package bugs

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed bugs.txt
var table string

// Bug is a known bug of an agent or an editor, with the public reports of it.
type Bug struct {
	Number  int
	Side    string // "agent" or "editor"
	Project string
	What    string   // the bug in one sentence
	Reports []string // owner/repository#number, at least one
	// By names the program that can have the faults: Agent, AgentOfV2 or Editor. Each of Faults reproduces the bug.
	// Found lists the rules and checks that find the bug. If both lists are empty, NotJudged is a sentence with the
	// reason.
	By        string
	Faults    []string
	Found     []Finder
	NotJudged string
}

// The values of Bug.By: programs that can have faults.
const (
	Agent     = "agent"
	AgentOfV2 = "agent in version 2"
	Editor    = "editor"
)

// Finder is a rule (LATE-CONTENT) or a check (scenario#slug) that finds a bug,
// with the class it reports.
type Finder struct{ Name, Class string }

// All returns the record, sorted by number. It panics if the embedded file has a mistake; a test makes sure that it
// has none.
func All() []Bug {
	var all []Bug
	for i, text := range strings.Split(strings.TrimSpace(table), "\n\n") {
		if i > 0 { // the first block describes the file
			all = append(all, parse(text))
		}
	}
	return all
}

func parse(text string) Bug {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 {
		panic(fmt.Sprintf("bugs.txt: a bug has four lines, not %q", text))
	}
	head := strings.SplitN(lines[0], " ", 3)
	number, err := strconv.Atoi(head[0])
	if err != nil || len(head) != 3 {
		panic(fmt.Sprintf("bugs.txt: %q is not NUMBER SIDE PROJECT", lines[0]))
	}
	b := Bug{Number: number, Side: head[1], Project: head[2], What: strings.TrimSpace(lines[1]),
		Reports: strings.Fields(lines[2])}
	faults, found, ok := strings.Cut(strings.TrimSpace(lines[3]), ": ")
	if !ok {
		panic(fmt.Sprintf("bugs.txt: %d: %q is neither FAULT: FINDER=CLASS nor not judged: WHY", number, lines[3]))
	}
	if faults == "not judged" {
		b.NotJudged = found
		return b
	}
	b.By = b.Side
	for _, name := range strings.Fields(faults) {
		if rest, ok := strings.CutPrefix(name, "v2/"); ok {
			name, b.By = rest, AgentOfV2
		} else if rest, ok := strings.CutPrefix(name, "editor/"); ok {
			name, b.By = rest, Editor
		}
		b.Faults = append(b.Faults, name)
	}
	for word := range strings.FieldsSeq(found) {
		name, class, _ := strings.Cut(word, "=")
		b.Found = append(b.Found, Finder{name, class})
	}
	return b
}
