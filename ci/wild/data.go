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
	// Bug is the public report, as owner/repository#number. Without one nobody
	// reported it: the scenarios found it. A https link where the report has no number.
	Bug string `yaml:"bug,omitempty"`
	// What went wrong, in a sentence.
	What    string `yaml:"what"`
	Package string `yaml:"package"`
	Bad     string `yaml:"bad"`
	Good    string `yaml:"good"`
	// Scenario provokes the bug, Finder is what tells: the slug of a check of it, a
	// rule, or a rule and its point.
	Scenario string `yaml:"scenario"`
	Finder   string `yaml:"finder"`
	// Later says what of the pair was changed after a first run; "": nothing.
	Later string `yaml:"later,omitempty"`
	// Race: the bug shows in some repeats only.
	Race bool `yaml:"race,omitempty"`
}

// Name is the pair in reports and for -run.
func (p Pair) Name() string {
	return fmt.Sprintf("%s %s→%s %s#%s", p.Package, p.Bad, p.Good, p.Scenario, p.Finder)
}

// Variant says how the versions of a package are run, up to and with Until; the last
// one of a package has none. What a shipped profile says of its own version is right
// for most others too: Like is that one, With what differs.
type Variant struct {
	Package string         `yaml:"package"`
	Until   string         `yaml:"until,omitempty"`
	Like    string         `yaml:"like"`
	With    map[string]any `yaml:"with,omitempty"`
	// Beside are packages that have to be there too, as name@version.
	Beside []string `yaml:"beside,omitempty"`
	// Scripts: the package does not work before its own install script has run.
	Scripts bool `yaml:"scripts,omitempty"`
	// Lacks are the parts of the gate that these versions cannot pass, with why.
	Lacks map[string]string `yaml:"lacks,omitempty"`
}

// Missing is a public bug for which there is no pair.
type Missing struct {
	Bug string `yaml:"bug"`
	Why string `yaml:"why"`
}

// Measured is what was seen of one version.
type Measured struct {
	Package string `yaml:"package"`
	Version string `yaml:"version"`
	// Gate is what of the gate did not work; empty if all did.
	Gate []string `yaml:"gate,flow"`
	// Scan says that more than the scenarios of pairs ran.
	Scan bool `yaml:"scan,omitempty"`
	// Scenarios has for each scenario in how many repeats it was judged, and how
	// often each check and rule spoke.
	Scenarios map[string]*Seen `yaml:"scenarios"`
}

// Seen is what the repeats of a scenario showed.
type Seen struct {
	Of      int               `yaml:"of"`                     // how many repeats there were
	Skipped int               `yaml:"skipped,omitempty"`      // in how many it did not apply to the agent
	Flagged map[string]int    `yaml:"flagged,flow,omitempty"` // checks and rules that found something
	Class   map[string]string `yaml:"class,flow,omitempty"`   // what each of them found, at the gravest
	// Silent are the finders of pairs that had something to judge and found nothing.
	Silent map[string]int `yaml:"silent,flow,omitempty"`
}

// Data is what lies in the files beside this one.
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

// of is what was measured of a version; a new one if nothing was yet.
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

// variant is how a version of a package is run.
func (d *Data) variant(pkg, version string) (v Variant) {
	i := slices.IndexFunc(d.Variants, func(v Variant) bool {
		return v.Package == pkg && (v.Until == "" || compare(version, v.Until) <= 0)
	})
	if i < 0 {
		must.Fail("agents.yaml does not say how %s@%s is run", pkg, version)
	}
	return d.Variants[i]
}

// compare orders versions of numbers with dots.
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
