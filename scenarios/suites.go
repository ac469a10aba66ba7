package scenarios

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
)

//go:embed suites/*/*.txtar
var archive embed.FS

// suites is where the suites of the protocol lie in the binary and in the source tree.
func (p *Protocol) suites() (files fs.FS, at string) {
	if p.Suites != nil {
		return p.Suites, p.SuitesAt
	}
	files, err := fs.Sub(archive, "suites")
	if err != nil {
		panic(err) // the name is valid
	}
	return files, "scenarios/suites"
}

// SuiteNames are the names of the protocol's suites in the binary, sorted.
func (p *Protocol) SuiteNames() []string {
	files, _ := p.suites()
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil // an embedded directory can be read
	}
	var names []string
	for _, e := range entries {
		if e.Name() != editorsFolder && p.has(files, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// has reports whether a folder has a scenario of the protocol.
func (p *Protocol) has(files fs.FS, folder string) bool {
	names, _ := fs.Glob(files, path.Join(folder, "*.txtar")) // the pattern is valid
	return slices.ContainsFunc(names, func(name string) bool {
		text, err := fs.ReadFile(files, name)
		return err == nil && p.takes(name, text)
	})
}

// takes reports whether a scenario is one of the protocol's.
func (p *Protocol) takes(name string, text []byte) bool {
	if p.Name == "" {
		return true
	}
	if !bytes.Contains(text, []byte("protocol ")) {
		return p.Name == FirstProtocol
	}
	tree, _ := script.Parse(name, text)
	return slices.Contains(protocolsOf(tree), p.Name)
}

// protocolsOf are the protocols that a scenario is about.
func protocolsOf(tree *script.File) []string {
	if names := tree.Protocols(); len(names) > 0 {
		return names
	}
	return []string{FirstProtocol}
}

// editorsFolder holds the scenarios that script the agent's side. They are no
// suite: an agent cannot run them.
const editorsFolder = "editors"

// ForEditors reads the agent-side scenarios in the binary, in the order of their
// ids.
func (p *Protocol) ForEditors() ([]*Scenario, error) { return p.shippedIn(editorsFolder) }

// Shipped reads the scenarios of suites in the binary, all of them if none is
// named, in the order of their ids. The error joins every *Mistake.
func (p *Protocol) Shipped(names ...string) ([]*Scenario, error) {
	known := p.SuiteNames()
	if len(names) == 0 {
		names = known
	}
	var all []*Scenario
	var bad []error
	for _, n := range names {
		if !slices.Contains(known, n) {
			bad = append(bad, &Mistake{File: "--suite " + n, Message: "there is no suite of that name",
				Hint: cmp.Or(mistake.Nearest(n, known), "they are: "+strings.Join(known, ", "))})
			continue
		}
		list, err := p.shippedIn(n)
		all = append(all, list...)
		if err != nil {
			bad = append(bad, err)
		}
	}
	return all, errors.Join(bad...)
}

// shippedIn reads the scenarios of one folder in the binary.
func (p *Protocol) shippedIn(suite string) (all []*Scenario, err error) {
	from, at := p.suites()
	files, err := fs.Glob(from, path.Join(suite, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var bad []error
	for _, f := range files {
		text, err := fs.ReadFile(from, f)
		if err != nil {
			return nil, err
		}
		if !p.takes(f, text) {
			continue
		}
		s, err := p.Parse(suite+"/"+strings.TrimSuffix(path.Base(f), ".txtar"), path.Join(at, f), text)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		s.Suite, s.text = suite, text
		all = append(all, s)
	}
	return all, errors.Join(bad...)
}

// Config is the name of the file at the root of a collection of scenarios.
const Config = "acp-test.yaml"

// Load reads scenarios from files and directories, recursively. The id of a
// scenario is its path without extension, relative to the nearest directory
// above it that holds acp-test.yaml, else to the directory given, else to its
// own. The error joins every *Mistake.
func (p *Protocol) Load(paths ...string) ([]*Scenario, error) {
	var all []*Scenario
	seen := map[string]string{}
	files, bad := p.find(paths)
	for _, f := range files {
		text, err := os.ReadFile(f.name)
		if err != nil {
			bad = append(bad, &Mistake{File: f.name, Message: err.Error()})
			continue
		}
		s, err := p.Parse(identify(f.name, f.given), f.name, text)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if other, twice := seen[s.ID]; twice {
			if other != f.name {
				bad = append(bad, &Mistake{File: f.name, Message: fmt.Sprintf("%s has the same id %q", other, s.ID),
					Hint: "put an acp-test.yaml at the root of both"})
			}
			continue
		}
		seen[s.ID] = f.name
		all = append(all, s)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].ID < all[j].ID })
	return all, errors.Join(bad...)
}

// Files returns the scenario files that paths name: the files themselves, and
// those in directories, recursively. The error joins a *Mistake for each path
// without one.
func (p *Protocol) Files(paths ...string) ([]string, error) {
	files, bad := p.find(paths)
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	return names, errors.Join(bad...)
}

// scenarioFile is a file, and the directory of which it was found.
type scenarioFile struct{ name, given string }

func (p *Protocol) find(paths []string) (files []scenarioFile, bad []error) {
	for _, given := range paths {
		info, err := os.Stat(given)
		switch {
		case err != nil:
			bad = append(bad, &Mistake{File: given, Message: "there is no such file or directory", Hint: p.suiteHint(given)})
			continue
		case !info.IsDir():
			files = append(files, scenarioFile{given, filepath.Dir(given)})
			continue
		}
		before := len(files)
		err = filepath.WalkDir(given, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != given:
				return fs.SkipDir
			case !d.IsDir() && filepath.Ext(name) == ".txtar":
				files = append(files, scenarioFile{name, given})
			}
			return nil
		})
		if err != nil {
			bad = append(bad, &Mistake{File: given, Message: err.Error()})
		} else if len(files) == before {
			bad = append(bad, &Mistake{File: given, Message: "no scenario here: a scenario is a file that ends in .txtar"})
		}
	}
	return files, bad
}

// suiteHint helps who gives the name of a suite as a path.
func (p *Protocol) suiteHint(file string) string {
	name, _, _ := strings.Cut(filepath.ToSlash(file), "/")
	if slices.Contains(p.SuiteNames(), name) {
		return "--suite " + name + " names a suite in the binary"
	}
	return ""
}

func identify(file, given string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		abs = file
	}
	root, err := filepath.Abs(given)
	if err != nil {
		root = given
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, Config)); err == nil {
			root = dir
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	rel, err := filepath.Rel(root, abs)
	if err != nil {
		rel = filepath.Base(abs)
	}
	return strings.TrimSuffix(path.Clean(filepath.ToSlash(rel)), path.Ext(rel))
}
