package language

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
)

// SuiteNames returns the sorted names of the suites that the binary contains for this protocol.
func (d *Dialect[B]) SuiteNames() []string {
	entries, err := fs.ReadDir(d.Suites, ".")
	if err != nil {
		return nil // an embedded directory is always readable
	}
	var names []string
	for _, e := range entries {
		if e.Name() != editorsFolder && d.has(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// has reports whether a folder contains a scenario for the protocol.
func (d *Dialect[B]) has(folder string) bool {
	names, _ := fs.Glob(d.Suites, path.Join(folder, "*.txtar")) // the pattern is valid
	return slices.ContainsFunc(names, func(name string) bool {
		text, err := fs.ReadFile(d.Suites, name)
		return err == nil && d.takes(name, text)
	})
}

// takes reports whether this dialect reads a scenario. The protocols that the scenario names decide.
func (d *Dialect[B]) takes(name string, text []byte) bool {
	if d.Name == "" {
		return true
	}
	if !bytes.Contains(text, []byte("protocol ")) {
		return d.Name == Default
	}
	tree, _ := script.Parse(name, text)
	return slices.Contains(protocolsOf(tree), d.Name)
}

// protocolsOf returns the protocols that a scenario is about.
func protocolsOf(tree *script.File) []string {
	if names := tree.Protocols(); len(names) > 0 {
		return names
	}
	return []string{Default}
}

// editorsFolder is the folder of the agent-side scenarios. It is not a suite, because agents cannot run these
// scenarios.
const editorsFolder = "editors"

// ForEditors returns the agent-side scenarios in the binary, sorted by id.
func (d *Dialect[B]) ForEditors() ([]*Scenario[B], error) { return d.shippedIn(editorsFolder) }

// AllSuites is the name that means all suites.
const AllSuites = "all"

// Shipped returns the scenarios of the named suites in the binary, sorted by id. Without names, or with AllSuites, it
// returns those of all suites. The error joins all mistakes, each a *Mistake.
func (d *Dialect[B]) Shipped(names ...string) ([]*Scenario[B], error) {
	known := d.SuiteNames()
	if len(names) == 0 || slices.Contains(names, AllSuites) {
		names = known
	}
	var all []*Scenario[B]
	var bad []error
	for _, n := range names {
		if !slices.Contains(known, n) {
			bad = append(bad, &Mistake{File: "--suite " + n, Message: "there is no suite of that name",
				Hint: cmp.Or(mistake.Nearest(n, known), "they are: "+strings.Join(known, ", "))})
			continue
		}
		list, err := d.shippedIn(n)
		all = append(all, list...)
		if err != nil {
			bad = append(bad, err)
		}
	}
	return all, errors.Join(bad...)
}

// shippedIn reads the scenarios of one folder in the binary.
func (d *Dialect[B]) shippedIn(suite string) (all []*Scenario[B], err error) {
	files, err := fs.Glob(d.Suites, path.Join(suite, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var bad []error
	for _, f := range files {
		text, err := fs.ReadFile(d.Suites, f)
		if err != nil {
			return nil, err
		}
		if !d.takes(f, text) {
			continue
		}
		s, err := d.Parse(suite+"/"+strings.TrimSuffix(path.Base(f), ".txtar"), path.Join(d.SuitesAt, f), text)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		s.Suite, s.text = suite, text
		all = append(all, s)
	}
	return all, errors.Join(bad...)
}

// Default is the protocol of a scenario that names no protocol.
const Default = "acp-v1"

// Config is the name of the configuration file at the root of a collection of scenarios.
const Config = "acp-test.yaml"

// Load reads scenarios from files and, recursively, from directories. A scenario's id is its path without extension,
// relative to a root. The root is the nearest parent directory that contains acp-test.yaml, else the given directory,
// else the directory of the given file. The error joins all mistakes, each a *Mistake.
func (d *Dialect[B]) Load(paths ...string) ([]*Scenario[B], error) {
	var all []*Scenario[B]
	seen := map[string]string{}
	files, bad := d.find(paths)
	for _, f := range files {
		text, err := os.ReadFile(f.name)
		if err != nil {
			bad = append(bad, &Mistake{File: f.name, Message: err.Error()})
			continue
		}
		if len(bytes.TrimSpace(text)) == 0 {
			bad = append(bad, &Mistake{File: f.name, Message: "the file is empty",
				Hint: "acp-test help scenario shows an example"})
			continue
		}
		s, err := d.Parse(identify(f.name, f.given), f.name, text)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if s.Model != nil { // variables have values only during a run, but mistakes are visible now
			if _, err := fakellm.ParseScript(s.File, s.Model, anyVariable); err != nil {
				bad = append(bad, s.ModelMistake(err))
				continue
			}
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

// Files returns the scenario files in paths: the given files, and those in the given directories, recursively. The
// error joins a *Mistake for each path that contains no scenario.
func (d *Dialect[B]) Files(paths ...string) ([]string, error) {
	files, bad := d.find(paths)
	return lists.Map(files, func(f scenarioFile) string { return f.name }), errors.Join(bad...)
}

// scenarioFile is a scenario file, and the directory under which the user gave it.
type scenarioFile struct{ name, given string }

func (d *Dialect[B]) find(paths []string) (files []scenarioFile, bad []error) {
	for _, given := range paths {
		info, err := os.Stat(given)
		switch {
		case err != nil:
			bad = append(bad, &Mistake{File: given, Message: "there is no such file or directory", Hint: d.suiteHint(given)})
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
			m := &Mistake{File: given, Message: "no scenario here: a scenario is a file that ends in .txtar"}
			if recordings, _ := filepath.Glob(filepath.Join(given, "*.jsonl")); len(recordings) > 0 {
				m.Hint = "its recordings are judged by acp-test check, such as " + recordings[0]
			}
			bad = append(bad, m)
		}
	}
	return files, bad
}

// suiteHint returns a hint if the user gave the name of a suite as a path, else "".
func (d *Dialect[B]) suiteHint(file string) string {
	name, rest, _ := strings.Cut(filepath.ToSlash(file), "/")
	switch {
	case !slices.Contains(d.SuiteNames(), name):
		return ""
	case rest == "":
		return "--suite " + name + " names a suite in the binary"
	}
	return fmt.Sprintf("--suite %s runs a suite in the binary, with --run '^%s/%s' only these scenarios", name, name,
		strings.TrimSuffix(strings.TrimRight(rest, "*"), ".txtar"))
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
