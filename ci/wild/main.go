// Wild runs the shipped scenarios against published versions of real agents, each before and after the fix of a bug.
// It checks that the scenarios find the bug in the version before the fix and find nothing in the version after it.
// It writes the counts to measured.yaml, and generates docs/wild.md from that file.
//
//	go run ./ci/wild                         all pairs
//	go run ./ci/wild -run 'codex|opencode'   those whose name matches
//	go run ./ci/wild -new                    those that were repeated too few times so far
//	go run ./ci/wild -scan PACKAGE -every 4  look for pairs: scenarios over versions
//	go run ./ci/wild -page                   docs/wild.md only
//
// Packages are downloaded from the npm registry into a folder of the user's cache.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/acp-test/acp-test/ci/must"
)

func main() {
	which := flag.String("run", "", "run only pairs whose name matches this pattern")
	repeats := flag.Int("repeat", 4, "how many times to run a scenario against a version")
	fresh := flag.Bool("new", false, "run only what was measured fewer times than -repeat")
	jobs := flag.Int("j", 2, "the number of scenarios to run at once")
	cache := flag.String("cache", "", "the folder for installed packages (default acp-test-wild in the user's cache)")
	out := flag.String("out", "acp-test-wild", "the folder for the results of the runs")
	pageOnly := flag.Bool("page", false, "write docs/wild.md from the stored measurements, and run nothing")
	scanned := flag.String("scan", "", "look for pairs: run scenarios against versions of this package")
	versions := flag.String("versions", "", "with -scan, the versions, separated by commas (default every -every-th)")
	every := flag.Int("every", 4, "with -scan, take every Nth version")
	tag := flag.String("tag", "matrix", "with -scan, the tag of the scenarios to run; all runs every scenario")
	only := flag.String("only", "", "with -scan, a pattern of scenario ids, instead of -tag")
	flag.Parse()
	r := &runner{cache: *cache, out: *out, jobs: *jobs}
	must.Main("wild", 1, func() {
		r.Data = load("ci/wild")
		switch {
		case *pageOnly:
		case *scanned != "":
			r.scan(*scanned, *versions, *every, selection(*tag, *only))
		default:
			r.pairs(*which, *repeats, *fresh)
		}
		must.Do(os.WriteFile("docs/wild.md", []byte(page(r.Data)), 0o644))
	})
}

// selection returns the flags of acp-test that select the scenarios of a scan.
func selection(tag, only string) []string {
	switch {
	case only != "":
		return []string{"--run", only}
	case tag == "all":
		return nil
	}
	return []string{"--tag", tag}
}

// pairs measures and judges the pairs whose names match. It runs one version after the other, each with the scenarios
// of all its pairs. If fresh is set, it runs only the scenarios that have fewer repeats so far than requested.
func (r *runner) pairs(which string, repeats int, fresh bool) {
	match := must.Get(regexp.Compile(which))
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
	r.begin()
	defer r.end()
	var wrong []error
	for i, s := range order {
		fmt.Printf("%d of %d: %s@%s\n", i+1, len(order), s.pkg, s.version)
		if err := must.Try(func() { r.measure(s.pkg, s.version, wanted[s], repeats) }); err != nil {
			wrong = append(wrong, fmt.Errorf("%s@%s: %w", s.pkg, s.version, err))
			fmt.Println(wrong[len(wrong)-1])
		}
		r.save("ci/wild")
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
	must.Do(errors.Join(wrong...))
}

// nodeVersion is the version of Node.js that all agents run on. The newer agents need version 22.
const nodeVersion = "22.23.3"

// begin builds the program and installs the Node.js that all agents run on.
func (r *runner) begin() {
	if r.cache == "" {
		r.cache = filepath.Join(must.Get(os.UserCacheDir()), "acp-test-wild")
	}
	r.temp = must.Get(os.MkdirTemp("", "acp-test-wild-"))
	r.program = filepath.Join(r.temp, "acp-test")
	r.command("", nil, "go", "build", "-o", r.program, "./cmd/acp-test")
	r.node = filepath.Join(r.install(nodePackage(), nodeVersion, false), "node_modules", nodePackage(), "bin")
}

func (r *runner) end() { os.RemoveAll(r.temp) }
