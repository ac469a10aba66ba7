// Wild runs the shipped scenarios against published versions of real agents, before
// and after a bug, and says whether they name the bug before and are silent after.
// It writes what it saw to measured.yaml, and docs/wild.md from that.
//
//	go run ./ci/wild                         all pairs
//	go run ./ci/wild -run 'codex|opencode'   those whose name matches
//	go run ./ci/wild -new                    those that were not measured so often yet
//	go run ./ci/wild -scan PACKAGE -every 4  look for pairs: scenarios over versions
//	go run ./ci/wild -page                   docs/wild.md only
//
// Packages come from the npm registry into a folder of the user's cache.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	which := flag.String("run", "", "only pairs whose name matches this pattern")
	repeats := flag.Int("repeat", 4, "how often a scenario runs against a version")
	fresh := flag.Bool("new", false, "only what has not been measured so often yet")
	jobs := flag.Int("j", 2, "how many scenarios run at once")
	cache := flag.String("cache", "", "where packages are installed (default acp-test-wild in the user's cache)")
	out := flag.String("out", "acp-test-wild", "the folder for the results of the runs")
	pageOnly := flag.Bool("page", false, "write docs/wild.md from what was measured, and run nothing")
	scanned := flag.String("scan", "", "look for pairs: run scenarios against versions of this package")
	versions := flag.String("versions", "", "with -scan, the versions, separated by commas (default every -every-th)")
	every := flag.Int("every", 4, "with -scan, how many versions it goes on by")
	tag := flag.String("tag", "matrix", "with -scan, the tag of the scenarios; all for every one")
	only := flag.String("only", "", "with -scan, in place of -tag a pattern of their ids")
	flag.Parse()
	r := &runner{cache: *cache, out: *out, jobs: *jobs}
	err := func() (err error) {
		if r.Data, err = load("ci/wild"); err != nil {
			return err
		}
		switch {
		case *pageOnly:
		case *scanned != "":
			err = r.scan(*scanned, *versions, *every, selection(*tag, *only))
		default:
			err = r.pairs(*which, *repeats, *fresh)
		}
		if err != nil {
			return err
		}
		return os.WriteFile("docs/wild.md", []byte(page(r.Data)), 0o644)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wild:", err)
		os.Exit(1)
	}
}

// selection is the scenarios of a scan, as arguments of the program.
func selection(tag, only string) []string {
	switch {
	case only != "":
		return []string{"--run", only}
	case tag == "all":
		return nil
	}
	return []string{"--tag", tag}
}

// pairs judges the pairs that match: the versions one after the other, each with the
// scenarios of all its pairs, or with fresh those that have not been measured so often.
func (r *runner) pairs(which string, repeats int, fresh bool) error {
	match, err := regexp.Compile(which)
	if err != nil {
		return err
	}
	type side struct{ pkg, version string }
	wanted := map[side][]string{}
	var order []side
	for _, p := range r.Pairs {
		if !match.MatchString(p.Name()) {
			continue
		}
		for _, version := range []string{p.Bad, p.Good} {
			s := side{p.Package, version}
			if seen := r.of(s.pkg, s.version).Scenarios[p.Scenario]; fresh && seen != nil && seen.Of >= repeats {
				continue
			}
			if wanted[s] == nil {
				order = append(order, s)
			}
			wanted[s] = append(wanted[s], p.Scenario)
		}
	}
	if err := r.begin(); err != nil {
		return err
	}
	defer r.end()
	var wrong []error
	for i, s := range order {
		fmt.Printf("%d of %d: %s@%s\n", i+1, len(order), s.pkg, s.version)
		err := r.measure(s.pkg, s.version, wanted[s], repeats)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s@%s: %w", s.pkg, s.version, err))
			fmt.Println(wrong[len(wrong)-1])
		}
		if err := r.save("ci/wild"); err != nil {
			return err
		}
	}
	told := 0
	for _, p := range r.Pairs {
		if match.MatchString(p.Name()) {
			v := r.verdict(p)
			fmt.Printf("%-90s %s\n", p.Name(), v)
			if v.tells() {
				told++
			} else {
				wrong = append(wrong, fmt.Errorf("%s: %s", p.Name(), v))
			}
		}
	}
	fmt.Printf("%d pairs are flagged before and silent after\n", told)
	return errors.Join(wrong...)
}

// nodeVersion is the Node that all agents run on: the newer ones want 22.
const nodeVersion = "22.23.3"

// begin builds the program and installs the Node that all agents run on.
func (r *runner) begin() error {
	if r.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		r.cache = filepath.Join(dir, "acp-test-wild")
	}
	var err error
	if r.temp, err = os.MkdirTemp("", "acp-test-wild-"); err != nil {
		return err
	}
	r.program = filepath.Join(r.temp, "acp-test")
	if err := r.command("", nil, "go", "build", "-o", r.program, "./cmd/acp-test"); err != nil {
		return err
	}
	node, err := r.install(nodePackage(), nodeVersion, false)
	if err != nil {
		return err
	}
	r.node = filepath.Join(node, "node_modules", nodePackage(), "bin")
	return nil
}

func (r *runner) end() { os.RemoveAll(r.temp) }
