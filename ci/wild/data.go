package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/acp-test/acp-test/ci/must"
)

// Pair is two published versions of an agent, one with a bug and one without it.
type Pair struct {
	// Bug is the public report, as owner/repository#number, or a https link if it has no number. "" means that the
	// scenarios found the bug and nobody reported it.
	Bug string `yaml:"bug,omitempty"`
	// What is the bug in one sentence.
	What    string `yaml:"what"`
	Package string `yaml:"package"`
	Bad     string `yaml:"bad"`
	Good    string `yaml:"good"`
	// Scenario provokes the bug. Finder is what detects it: the slug of a check, a rule, or a rule and its point.
	Scenario string `yaml:"scenario"`
	Finder   string `yaml:"finder"`
	// Later is what was changed in the pair after a first run; "" if nothing was.
	Later string `yaml:"later,omitempty"`
	// Race: the bug shows only in some repeats.
	Race bool `yaml:"race,omitempty"`
}

// Name returns the pair's name in reports and for -run.
func (p Pair) Name() string {
	return fmt.Sprintf("%s %s→%s %s#%s", p.Package, p.Bad, p.Good, p.Scenario, p.Finder)
}

// Variant says how to run the versions of a package up to and including Until; the last variant of a package has no
// Until. Like is a shipped profile, which is right for most other versions of its agent too; With holds the
// differences.
type Variant struct {
	Package string         `yaml:"package"`
	Until   string         `yaml:"until,omitempty"`
	Like    string         `yaml:"like"`
	With    map[string]any `yaml:"with,omitempty"`
	// Beside are further packages to install, as name@version.
	Beside []string `yaml:"beside,omitempty"`
	// Scripts: the package works only after its own install script has run.
	Scripts bool `yaml:"scripts,omitempty"`
	// Lacks are the parts of the gate that these versions cannot pass, with the reasons.
	Lacks map[string]string `yaml:"lacks,omitempty"`
}

// Missing is a public bug without a pair.
type Missing struct {
	Bug string `yaml:"bug"`
	Why string `yaml:"why"`
}

// Measured holds the measurements of one version.
type Measured struct {
	Package string `yaml:"package"`
	Version string `yaml:"version"`
	// Gate are the parts of the gate that failed; empty if all passed.
	Gate []string `yaml:"gate,flow"`
	// Scan says that more scenarios ran than those of pairs.
	Scan bool `yaml:"scan,omitempty"`
	// Scenarios has, for each scenario, in how many repeats it was judged, and how often each check and rule found
	// something.
	Scenarios map[string]*Seen `yaml:"scenarios"`
}

// Seen are the counts over the repeats of a scenario.
type Seen struct {
	Of      int               `yaml:"of"`                     // how many repeats there were
	Skipped int               `yaml:"skipped,omitempty"`      // how many repeats were skipped
	Flagged map[string]int    `yaml:"flagged,flow,omitempty"` // checks and rules that found something
	Class   map[string]string `yaml:"class,flow,omitempty"`   // the worst class of each
	// Silent are the finders of pairs that had something to judge and found nothing, with the number of repeats.
	Silent map[string]int `yaml:"silent,flow,omitempty"`
}

// Data is the content of the data files in this folder.
type Data struct {
	Pairs    []Pair
	Variants []Variant
	Missing  []Missing
	Measured []*Measured
}

func load(dir string) *Data {
	d := &Data{}
	for name, into := range map[string]any{
		"pairs.yaml": &d.Pairs, "agents.yaml": &d.Variants, "missing.yaml": &d.Missing, "measured.yaml": &d.Measured,
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) && name == "measured.yaml" {
			continue
		}
		must.Do(err)
		if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(into); err != nil {
			must.Fail("%s: %w", name, err)
		}
	}
	return d
}

func (d *Data) save(dir string) {
	slices.SortFunc(d.Measured, func(a, b *Measured) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), compare(a.Version, b.Version))
	})
	head := "# Written by go run ./ci/wild: what was seen of each version.\n"
	text := append([]byte(head), must.Get(yaml.Marshal(d.Measured))...)
	must.Do(os.WriteFile(filepath.Join(dir, "measured.yaml"), text, 0o644))
}

// of returns the measurements of a version, new ones if there are none.
func (d *Data) of(pkg, version string) *Measured {
	for _, m := range d.Measured {
		if m.Package == pkg && m.Version == version {
			return m
		}
	}
	m := &Measured{Package: pkg, Version: version, Scenarios: map[string]*Seen{}}
	d.Measured = append(d.Measured, m)
	return m
}

// variant returns how to run a version of a package.
func (d *Data) variant(pkg, version string) (v Variant) {
	i := slices.IndexFunc(d.Variants, func(v Variant) bool {
		return v.Package == pkg && (v.Until == "" || compare(version, v.Until) <= 0)
	})
	if i < 0 {
		must.Fail("agents.yaml does not say how to run %s@%s", pkg, version)
	}
	return d.Variants[i]
}

// compare orders versions such as 1.2.3 by their numbers.
func compare(a, b string) int {
	return slices.Compare(numbers(a), numbers(b))
}

func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		list = append(list, n)
	}
	return list
}
