// Package personas describes what known editors declare and do as clients of ACP version 1, with a source for each
// statement.
package personas

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

//go:embed *.yaml
var files embed.FS

// Persona is one editor, as of a release or a commit of its sources.
type Persona struct {
	Name    string
	Title   string `yaml:"title"`
	Version string `yaml:"version"`
	// Client and Capabilities are the members clientInfo and clientCapabilities that the editor sends in initialize.
	// nil means that the editor omits the member.
	Client       map[string]any `yaml:"client"`
	Capabilities map[string]any `yaml:"capabilities"`
	// Members are added to each of the editor's requests and notifications.
	Members map[string]any `yaml:"members"`
	// FirstID is the id of the first request.
	FirstID int `yaml:"first-id"`
	// MissingEmpty is true if the editor answers a request for a missing file with an empty text instead of an error.
	MissingEmpty bool `yaml:"missing-empty"`
	// Facts are the sources of the statements above, and further facts that a run does not imitate.
	Facts []Fact `yaml:"facts"`
}

// Fact is a statement about an editor, with its source.
type Fact struct {
	Says   string `yaml:"says"`
	Source string `yaml:"source"`
}

// Label returns the title followed by the version.
func (p *Persona) Label() string { return strings.TrimSpace(p.Title + " " + p.Version) }

// Names returns the names of all personas, sorted.
func Names() []string {
	all, _ := files.ReadDir(".") // ReadDir sorts
	return lists.Map(all, func(f fs.DirEntry) string { return strings.TrimSuffix(f.Name(), ".yaml") })
}

// Find returns a persona by its name, or by NAME@VERSION. The error for an unknown name suggests a similar one.
func Find(name string) (p *Persona, err error) {
	name, version, _ := strings.Cut(name, "@")
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no editor is named %q (%s)", name, mistake.Suggest(name, Names()))
	}
	text, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, err
	}
	root, err := yamlfile.Parse(name+".yaml", text)
	if err != nil {
		return nil, err
	}
	defer mistake.Catch(&err)
	p = &Persona{Name: name}
	root.Decode(p, "the persona", "")
	if version != "" && version != p.Version {
		return nil, fmt.Errorf("what is known of %s is of version %s, and nothing of %s", p.Title, p.Version, version)
	}
	return p, nil
}
