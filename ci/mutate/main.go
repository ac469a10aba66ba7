// Mutate changes one thing in good transcripts and says how often acp-test check names
// it: changes that break a MUST have to be class fail, and legal ones of the same kinds
// have to give nothing that the transcript did not give before.
//
//	acp-test run --out good && go run ./ci/mutate good
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

func main() {
	each := flag.Int("n", 40, "how many mutations of each kind")
	seed := flag.Uint64("seed", 1, "what is drawn")
	least := flag.Float64("least", 0.95, "the share of the breaking mutations that has to be class fail")
	show := flag.Bool("v", false, "show each miss")
	flag.Parse()
	if err := run(flag.Arg(0), *each, *seed, *least, *show); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// good is a transcript that nothing is wrong with.
type good struct {
	file string
	log  []entry
	had  map[string]bool // what it gives as it is
}

func run(dir string, each int, seed uint64, least float64, show bool) error {
	all, err := load(dir)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	total, named, wrong := 0, 0, 0
	fmt.Printf("%d good transcripts\n%-32s %6s %6s\n", len(all), "kind", "drawn", "named")
	for _, k := range kinds {
		type site struct {
			g  *good
			at int
		}
		var sites []site
		for i := range all {
			for _, at := range k.sites(all[i].log) {
				sites = append(sites, site{&all[i], at})
			}
		}
		r.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
		drawn, found := 0, 0
		for _, s := range sites {
			if drawn == each {
				break
			}
			log, ok := k.apply(copied(s.g.log), s.at)
			if !ok {
				continue
			}
			drawn++
			classes := judged(log)
			news := slices.DeleteFunc(slices.Sorted(maps.Keys(classes)), func(id string) bool { return s.g.had[id] })
			hit := slices.ContainsFunc(news, func(id string) bool { return classes[id] == results.Fail })
			if k.legal {
				hit = len(news) > 0
			}
			if hit {
				found++
			}
			if show && hit == k.legal {
				fmt.Printf("  %s at #%d of %s: %v\n", k.name, s.at+1, s.g.file, news)
			}
		}
		fmt.Printf("%-32s %6d %6d%s\n", k.name, drawn, found, map[bool]string{true: "  legal"}[k.legal])
		if k.legal {
			wrong += found
			continue
		}
		total, named = total+drawn, named+found
	}
	share := float64(named) / float64(max(total, 1))
	fmt.Printf("%d of %d breaking mutations are class fail: %.1f %%; %d legal ones were blamed\n", named, total,
		100*share, wrong)
	if total == 0 || share < least || wrong > 0 {
		return fmt.Errorf("at least %.0f %% were wanted, and no legal one blamed", 100*least)
	}
	return nil
}

// load reads the transcripts below a directory that nothing is wrong with.
func load(dir string) (all []good, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "transcript.jsonl" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		t, err := transcript.Load(f, acpframe.Classifier{})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer t.Close()
		g := good{file: path, had: map[string]bool{}}
		for e := range t.All() {
			g.log = append(g.log, entryOf(e))
		}
		classes := judged(copied(g.log))
		for id, class := range classes {
			g.had[id] = true
			if class == results.Fail || class == results.Error {
				return nil // a scenario that does wrong on purpose
			}
		}
		all = append(all, g)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no good transcript is below %q", dir)
	}
	return all, err
}

// judged is what check finds about the agent, with the worst class of each point.
func judged(log []entry) map[string]results.Verdict {
	var now time.Duration
	t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{},
		Now: func() time.Time { return time.Unix(0, 0).Add(now) }})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	at := map[int]int{} // Seq in the file → here
	for _, e := range log {
		now = max(now, e.At)
		var added transcript.Entry
		if e.Frame() {
			added = t.AppendFrame(e.Conn, e.Source, e.raw(), 0)
		} else {
			e.Ref = at[e.Ref]
			added = t.Append(e.Entry)
		}
		at[e.Seq] = added.Seq
	}
	judge := replay.Judge{Protocol: recordings.V1(), Rules: invariants.V1(), Severity: "v1", Text: canonical.V1()}
	found := map[string]results.Verdict{}
	for _, f := range judge.Check("mutated", t).Findings {
		if !strings.HasPrefix(f.Rule, "C-") {
			found[f.Rule+"/"+f.Point] = f.Class
		}
	}
	return found
}
