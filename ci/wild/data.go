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
	// Bug identifies the public report: owner/repository#number, or an https link if the report has no number. ""
	// means that nobody reported the bug: the scenarios found it.
	Bug string `yaml:"bug,omitempty"`
	// What describes the bug in one sentence.
	What    string `yaml:"what"`
	Package string `yaml:"package"`
	Bad     string `yaml:"bad"`
	Good    string `yaml:"good"`
	// Scenario provokes the bug. Finder detects the bug: the slug of a check, a rule, or a rule and its point.
	Scenario string `yaml:"scenario"`
	Finder   string `yaml:"finder"`
	// Later says what was changed in the pair after its first run; "" if nothing was changed.
	Later string `yaml:"later,omitempty"`
	// Race is true if the bug shows only in some repeats.
	Race bool `yaml:"race,omitempty"`
}

// Name returns the pair's name in reports and for -run.
func (p Pair) Name() string {
	return fmt.Sprintf("%s %s→%s %s#%s", p.Package, p.Bad, p.Good, p.Scenario, p.Finder)
}

// Variant says how to run the versions of a package up to and including Until. The last variant of a package has no
// Until. Like names the shipped profile to start from, and With contains the differences from it.
type Variant struct {
	Package string         `yaml:"package"`
	Until   string         `yaml:"until,omitempty"`
	Like    string         `yaml:"like"`
	With    map[string]any `yaml:"with,omitempty"`
	// Beside lists further packages to install, as name@version.
	Beside []string `yaml:"beside,omitempty"`
	// Scripts is true if the package works only after its install script has run.
	Scripts bool `yaml:"scripts,omitempty"`
	// Lacks lists the parts of the gate that these versions cannot pass, each with the reason.
	Lacks map[string]string `yaml:"lacks,omitempty"`
}

// Missing is a publicly reported bug for which there is no pair, with the reason.
type Missing struct {
	Bug string `yaml:"bug"`
	Why string `yaml:"why"`
}

// Measured holds the measurements of one version.
type Measured struct {
	Package string `yaml:"package"`
	Version string `yaml:"version"`
	// Gate lists the parts of the gate that failed; empty if all passed.
	Gate []string `yaml:"gate,flow"`
	// Scan is true if a scan ran further scenarios, in addition to those of the pairs.
	Scan bool `yaml:"scan,omitempty"`
	// Scenarios maps scenario ids to the counts over the scenario's repeats.
	Scenarios map[string]*Seen `yaml:"scenarios"`
}

// Seen contains the counts over the repeats of one scenario.
type Seen struct {
	Of      int               `yaml:"of"`                     // number of repeats
	Skipped int               `yaml:"skipped,omitempty"`      // number of skipped repeats
	Flagged map[string]int    `yaml:"flagged,flow,omitempty"` // number of repeats, by the finding check or rule
	Class   map[string]string `yaml:"class,flow,omitempty"`   // worst class of its findings, by check or rule
	// Silent counts, for each finder of a pair, the repeats in which the finder had something to judge and found
	// nothing.
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

// of returns the measurements of a version. If there are none yet, it adds an empty entry.
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

// compare compares versions such as 1.2.3 numerically. The result is -1, 0 or 1.
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
