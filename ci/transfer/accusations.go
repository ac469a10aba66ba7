package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/goccy/go-yaml"
)

// Accusation is a false finding about an agent that the suites had not run against before.
type Accusation struct {
	Date    string // the day, as 2006-01-02
	Agent   string
	Found   string // id of the rule or the check
	Because string // why the finding was false
	Now     string // what was changed so that no agent gets this finding
	Change  string // commit of the change
}

// accused reads the false findings from ci/transfer/accusations.yaml. They are in the order of that file, which has
// the latest first. root is the root of the repository.
func accused(root string) (all []Accusation) {
	text := must.Get(os.ReadFile(filepath.Join(root, "ci/transfer/accusations.yaml")))
	must.Do(yaml.UnmarshalWithOptions(text, &all, yaml.Strict()))
	return all
}

// accusedPage returns the part of docs/transfer.md about false findings.
func accusedPage(all []Accusation) string {
	var b strings.Builder
	b.WriteString(aboutAccused)
	for _, a := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s (`%s`) |\n", a.Date, cell(a.Agent), cell(a.Found), cell(a.Because),
			cell(a.Now), a.Change)
	}
	return b.String()
}

const aboutAccused = `
## False accusations

What was found on agents that were new to the suites, and was no mistake of theirs. Each was mended where it
arose, for all agents.

| day | agent | found | why it was false | since then |
|---|---|---|---|---|
`
