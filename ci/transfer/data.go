package main

import (
	"os"
	"path/filepath"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/goccy/go-yaml"
)

// Fault is a mistake in an agent that its environment variable FAULT turns on.
type Fault struct {
	Name   string `yaml:"name"`
	What   string `yaml:"what"`   // what a user or an editor sees, and when
	Source string `yaml:"source"` // the report or the requirement
	Breaks string `yaml:"breaks"` // must, should or quality
	Where  string `yaml:"where"`  // the function of the agent
	Batch  int    `yaml:"batch"`
}

// Batch is a group of faults and the result of its first run. Who wrote the faults had seen
// neither scenarios nor rules.
type Batch struct {
	Batch int    `yaml:"batch"`
	Agent string `yaml:"agent"`
	// Faults is the commit that brought the faults. Tool is the commit of the program in the
	// first run.
	Faults string          `yaml:"faults"`
	Tool   string          `yaml:"tool"`
	First  map[string]*Row `yaml:"first"`
}

// Row is the result of the first run for one fault. It leaves out the causes that the agent shows
// without a fault.
type Row struct {
	// How: named is the right reason, seen another one, missed none.
	How string `yaml:"how"`
	// Class is the worst of what named it or saw it, By the first causes of this class.
	Class   string   `yaml:"class,omitempty"`
	By      []string `yaml:"by,omitempty,flow"`
	Causes  int      `yaml:"causes"` // how many there were
	Seconds int      `yaml:"seconds"`
}

// folder holds the data and, in neighbours, the agents.
const folder = "ci/transfer"

func load(root string) (batches []Batch, faults map[string][]Fault) {
	read(filepath.Join(root, folder, "batches.yaml"), &batches)
	faults = map[string][]Fault{}
	for _, file := range must.Get(filepath.Glob(filepath.Join(root, "ci/agents/*/faults.yaml"))) {
		var list []Fault
		read(file, &list)
		faults[filepath.Base(filepath.Dir(file))] = list
	}
	return batches, faults
}

func read(file string, into any) {
	if err := yaml.UnmarshalWithOptions(must.Get(os.ReadFile(file)), into, yaml.Strict()); err != nil {
		must.Fail("%s: %w", file, err)
	}
}

// of returns the faults of a batch.
func (b Batch) of(faults map[string][]Fault) (all []Fault) {
	return lists.Where(faults[b.Agent], func(f Fault) bool { return f.Batch == b.Batch })
}
