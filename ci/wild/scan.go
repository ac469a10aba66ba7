package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/scenarios/results"
)

// scan runs scenarios once against several versions of a package, with shared processes. It prints the outcomes that
// change between versions, as candidates for pairs. A version whose folder already contains results is not run again.
func (r *runner) scan(pkg, versions string, every int, which []string) {
	r.begin()
	defer r.end()
	list := strings.Split(versions, ",")
	if versions == "" {
		list = r.published(pkg, every)
	}
	var columns []column
	for _, version := range list {
		var outcomes []results.Result
		if err := must.Try(func() { outcomes = r.scanned(pkg, version, which) }); err != nil {
			fmt.Printf("%s@%s: %v\n", pkg, version, err)
			continue
		}
		fmt.Printf("%s@%s: broken at the gate: %v\n", pkg, version, broken(outcomes))
		columns = append(columns, column{version, marks(outcomes)})
		m := r.of(pkg, version)
		m.Gate, m.Scan = broken(outcomes), true
		for _, id := range r.named(func(p Pair) (string, bool) { return p.Scenario, p.Package == pkg }) {
			if old := m.Scenarios[id]; old == nil || old.Of == 1 {
				m.Scenarios[id] = r.seen(pkg, id, outcomes)
			}
		}
		r.save("ci/wild")
	}
	fmt.Print(changes(columns))
}

// scanned returns the results of scanning a version, from this run or an earlier one.
func (r *runner) scanned(pkg, version string, which []string) []results.Result {
	if outcomes, err := resultsOf(r.folder(pkg, version, "scan")); err == nil {
		return outcomes
	}
	return r.run(r.variant(pkg, version), version, "scan", which...)
}

// column is a version in a scan, with a mark for each scenario and for each check and rule point in it.
type column struct {
	version string
	marks   map[string]byte
}

// marks returns a mark for each scenario, and for each check and point of a rule. A scenario has "s" if it was
// skipped and "." if it was judged. A check or point has "x" if it has a finding, and "." if it had something to
// judge and found nothing.
func marks(outcomes []results.Result) map[string]byte {
	m := map[string]byte{}
	for _, res := range outcomes {
		if res.Verdict == results.Skip {
			m[res.ID] = 's'
			continue
		}
		m[res.ID] = '.'
		for _, c := range res.Checks {
			switch key := res.ID + "#" + c.Slug; {
			case c.NotReached:
			case flags(c.Verdict):
				m[key] = 'x'
			case c.Verdict == results.Pass && m[key] == 0:
				m[key] = '.'
			}
		}
		for rule, times := range res.Evidence {
			if times > 0 {
				m[res.ID+"#"+rule] = '.'
			}
		}
		for _, f := range res.Findings {
			if flags(f.Class) {
				m[res.ID+"#"+f.Rule] = 'x'
				m[res.ID+"#"+f.Rule+" "+f.Point] = 'x'
			}
		}
	}
	return m
}

// changes returns a table of the marks that differ between versions of a scan: one line per mark, one column per
// version.
func changes(columns []column) string {
	keys := map[string]byte{}
	for _, c := range columns {
		maps.Copy(keys, c.marks)
	}
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, "%s ", c.version)
	}
	b.WriteByte('\n')
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var line []byte
		for _, c := range columns {
			mark := c.marks[key]
			if rule, _, ok := strings.Cut(key, " "); ok && mark == 0 && c.marks[rule] != 0 {
				mark = '.' // only other points of the rule had findings, or none had
			}
			line = append(line, max(mark, ' '))
		}
		// Versions without a mark could not be judged and are ignored in the comparison.
		if seen := strings.ReplaceAll(string(line), " ", ""); strings.Trim(seen, seen[:1]) != "" {
			fmt.Fprintf(&b, "%s  %s\n", line, key)
		}
	}
	return b.String()
}

// published returns release versions of a package from the registry: the last, and every n-th before it (n is every).
func (r *runner) published(pkg string, every int) (list []string) {
	file := filepath.Join(r.temp, "versions")
	r.command("", r.path(), "sh", "-c", `npm view "$0" versions --json >"$1"`, pkg, file)
	b := must.Get(os.ReadFile(file))
	all := regexp.MustCompile(`"\d+\.\d+\.\d+"`).FindAllString(string(b), -1)
	for i, quoted := range all {
		if (len(all)-1-i)%every == 0 {
			list = append(list, strings.Trim(quoted, `"`))
		}
	}
	return list
}
