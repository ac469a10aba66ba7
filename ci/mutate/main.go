// Mutate makes one change at a time to good transcripts and prints how often acp-test check finds the change. Changes
// that break a MUST must be reported with class fail. Legal changes must add no finding.
//
//	acp-test run --out good && go run ./ci/mutate good
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/refagent/mutation"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/sabotage"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

func main() {
	each := flag.Int("n", 40, "the number of mutations of each kind")
	seed := flag.Uint64("seed", 1, "the seed of the random choice")
	least := flag.Float64("least", 0.95, "the least share of breaking mutations that must be class fail")
	show := flag.Bool("v", false, "show each miss")
	flag.Parse()
	must.Main("mutate", 1, func() { run(flag.Arg(0), *each, *seed, *least, *show) })
}

// good is a transcript without failures.
type good struct {
	file string
	log  []transcript.Entry
	had  map[string]results.Verdict // verdicts of the unchanged transcript, by rule and point
}

// kind is one kind of change to a transcript. If told is true, a finding of any class counts.
type kind struct {
	sabotage.Mutation
	told bool
}

func readKinds() []kind {
	seen := lists.Where(sabotage.All(), func(m sabotage.Mutation) bool { return !m.Live })
	return lists.Map(seen, func(m sabotage.Mutation) kind {
		q, _ := invariants.V1().Requirement(m.Breaks)
		return kind{m, q.Level != "must"}
	})
}

// site is the n-th place at which a kind of change applies to a transcript.
type site struct {
	g *good
	n int
}

// tally counts the changes of one kind: those that were made, and those that a rule found.
type tally struct{ drawn, found int }

func run(dir string, each int, seed uint64, least float64, show bool) {
	all, list := load(dir), readKinds()
	r := rand.New(rand.NewPCG(seed, 0))
	var breaking, legal tally
	fmt.Printf("%d good transcripts\n%-32s %6s %6s\n", len(all), "kind", "drawn", "named")
	for _, k := range list {
		t := k.try(all, r, each, show)
		sum := &breaking
		if k.Legal {
			sum = &legal
		}
		sum.drawn, sum.found = sum.drawn+t.drawn, sum.found+t.found
		fmt.Printf("%-32s %6d %6d%s\n", k.Name, t.drawn, t.found, map[bool]string{true: "  legal"}[k.Legal])
	}
	share := float64(breaking.found) / float64(max(breaking.drawn, 1))
	fmt.Printf("%d of %d breaking mutations are class fail: %.1f %%; %d legal ones were blamed\n", breaking.found,
		breaking.drawn, 100*share, legal.found)
	if breaking.drawn == 0 || share < least || legal.found > 0 {
		must.Fail("want at least %.0f %% of breaking mutations found, and no legal one blamed", 100*least)
	}
}

// try draws at most each places in the good transcripts, makes the change at each place, and counts the changes that
// a rule finds.
func (k *kind) try(all []good, r *rand.Rand, each int, show bool) (t tally) {
	var sites []site
	for i := range all {
		p := k.Nth(-1).Player()
		play(p, all[i].log)
		for n := range p.Hits() {
			sites = append(sites, site{&all[i], n + 1})
		}
	}
	r.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	for _, s := range sites {
		if t.drawn == each {
			break
		}
		log, at := play(k.Nth(s.n).Player(), s.g.log)
		if at < 0 {
			continue
		}
		t.drawn++
		classes := judged(log)
		news := lists.Where(slices.Sorted(maps.Keys(classes)), func(id string) bool { return s.g.had[id] != classes[id] })
		hit := slices.ContainsFunc(news, func(id string) bool { return k.Legal || k.told || classes[id] == results.Fail })
		if hit {
			t.found++
		}
		if show && hit == k.Legal {
			fmt.Printf("  %s at #%d of %s: %v\n", k.Name, at+1, s.g.file,
				lists.Map(news, func(id string) string { return id + " " + fmt.Sprint(classes[id]) }))
		}
	}
	return t
}

// play applies a mutation to a log. at is the first index at which out differs from log, or -1 if they are equal.
func play(p *mutation.Player, log []transcript.Entry) (out []transcript.Entry, at int) {
	out = sabotage.Log(log, func(int) *mutation.Player { return p })
	for i := range min(len(out), len(log)) {
		if !bytes.Equal(out[i].Raw, log[i].Raw) {
			return out, i
		}
	}
	if len(out) != len(log) {
		return out, min(len(out), len(log))
	}
	return out, -1
}

// load returns the transcripts below a directory that have no failures.
func load(dir string) (all []good) {
	must.Do(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "transcript.jsonl" {
			return err
		}
		f := must.Get(os.Open(path))
		defer f.Close()
		t, err := transcript.Load(f, acpframe.Classifier{})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer t.Close()
		g := good{file: path, log: slices.Collect(t.All()), had: map[string]results.Verdict{}}
		classes := judged(g.log)
		for id, class := range classes {
			g.had[id] = class
			if class == results.Fail || class == results.Error {
				return nil // the scenario provokes failures on purpose
			}
		}
		all = append(all, g)
		return nil
	}))
	if len(all) == 0 {
		must.Fail("there is no good transcript below %q", dir)
	}
	return all
}

// judged returns the worst class of the findings about the agent, by rule and point.
func judged(log []transcript.Entry) map[string]results.Verdict {
	t := must.Get(sabotage.Rebuild(transcript.Header{}, acpframe.Classifier{}, log))
	defer t.Close()
	judge := replay.Judge{Protocol: recordings.V1(), Rules: invariants.V1(), Severity: "v1", Text: canonical.V1()}
	found := map[string]results.Verdict{}
	for _, f := range judge.Check("mutated", t).Findings {
		if !strings.HasPrefix(f.Rule, "C-") {
			found[f.Rule+"/"+f.Point] = max(found[f.Rule+"/"+f.Point], f.Class)
		}
	}
	return found
}
