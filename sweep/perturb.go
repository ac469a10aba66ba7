package sweep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios"
)

// Perturb is the scenario with what an editor may do without meaning anything
// by it: writes in pieces, reads that wait, answers that take their time. The
// first round is the scenario as it is. how says what was done; nothing is done
// to a script that shapes its writes itself or speaks before it is initialized.
func Perturb(text []byte, seed int64, round int) (perturbed []byte, how []string) {
	a := split(text)
	at := -1
	for i, l := range a.lines {
		switch command(l) {
		case "start", "initialize", "send", "write-shape", "stall", "both", "request", "notify", "authenticate":
			return text, nil
		case "prompt", "session":
			if at < 0 {
				at = i
			}
		}
	}
	if round <= 1 || at < 0 {
		return text, nil
	}
	r := rand.New(rand.NewPCG(uint64(seed), uint64(round)))
	lines := slices.Clone(a.lines)
	for i, l := range lines {
		w := words(l)
		if command(l) == "permit" && len(w) > 1 && !strings.Contains(l, "delay=") && w[1] != "hold" && w[1] != "never" {
			d := 1 + r.IntN(40)
			lines[i] = fmt.Sprintf("%s delay=%dms", strings.TrimRight(l, " "), d)
			how = append(how, fmt.Sprintf("line %d answers after %d ms", i+1, d))
		}
	}
	var extra []string
	if n := r.IntN(48); n < 40 {
		extra = append(extra, fmt.Sprintf("write-shape split=%d", 1+n))
		how = append(how, fmt.Sprintf("writes in pieces of %d bytes", 1+n))
	}
	if r.IntN(2) == 0 {
		d := 5 + r.IntN(60)
		extra = append(extra, fmt.Sprintf("stall %dms", d))
		how = append(how, fmt.Sprintf("reads nothing for the first %d ms", d))
	}
	// The session is open before writes come in pieces, so that nothing of the
	// set-up needs a turn of its own.
	a.lines = slices.Concat(lines[:at], extra, lines[at:])
	return a.text(), how
}

// Flake is a scenario that did not come out the same in all rounds.
type Flake struct {
	Scenario string
	// Rounds are the two that differ, and Verdicts theirs.
	Rounds   [2]int
	Verdicts [2]scenarios.Verdict
	// How is what the second round did differently.
	How []string
	// Explanation says what kind of difference it is.
	Explanation string
	// Diff is from the first round's canonical text to the second's.
	Diff string
}

// Repeat runs each scenario in several rounds, perturbed from the second on,
// and reports which did not come out the same. Results are in the order of the
// list, round by round. The engine's Out must be set.
func Repeat(ctx context.Context, e *scenarios.Engine, list []*scenarios.Scenario, rounds, jobs int, finished func(scenarios.Result)) ([]scenarios.Result, []Flake, error) {
	type job struct {
		sc    *scenarios.Scenario
		round int
		how   []string
	}
	var all []job
	for round := 1; round <= rounds; round++ {
		for _, sc := range list {
			text, err := sc.Source()
			if err != nil {
				return nil, nil, fmt.Errorf("reading scenario %s: %w", sc.ID, err)
			}
			text, how := Perturb(text, e.Seed, round)
			p, err := scenarios.Parse(sc.ID, sc.File, text)
			if err != nil {
				return nil, nil, fmt.Errorf("perturbing %s: %w", sc.ID, err)
			}
			p.Tags = sc.Tags
			all = append(all, job{p, round, how})
		}
	}
	results := make([]scenarios.Result, len(all))
	var wait sync.WaitGroup
	next := make(chan int)
	for range max(jobs, 1) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range next {
				own := *e
				own.Out = filepath.Join(e.Out, fmt.Sprintf("repeat-%d", all[i].round))
				res := own.Run(ctx, all[i].sc)
				res.Repeat = all[i].round
				for k, v := range res.Artifacts {
					res.Artifacts[k] = fmt.Sprintf("repeat-%d/%s", all[i].round, v)
				}
				results[i] = res
				if finished != nil {
					finished(res)
				}
			}
		}()
	}
	done := 0
	for i := range all {
		if ctx.Err() != nil {
			break
		}
		next <- i
		done = i + 1
	}
	close(next)
	wait.Wait()
	first := map[string]int{}
	var flakes []Flake
	seen := map[string]bool{}
	for i, r := range results[:done] {
		j, ok := first[r.ID]
		if !ok {
			first[r.ID] = i
			continue
		}
		if f, differs := compare(e.Out, results[j], r); differs && !seen[r.ID] {
			seen[r.ID] = true
			f.How = all[i].how
			flakes = append(flakes, f)
		}
	}
	return results[:done], flakes, nil
}

// compare says how two runs of one scenario differ.
func compare(out string, a, b scenarios.Result) (Flake, bool) {
	f := Flake{Scenario: a.ID, Rounds: [2]int{a.Repeat, b.Repeat}, Verdicts: [2]scenarios.Verdict{a.Verdict, b.Verdict}}
	one, two := rendered(out, a), rendered(out, b)
	if one == two {
		f.Explanation = "the messages are the same: what differs is the judgement of time or of the workspace"
		return f, a.Verdict != b.Verdict
	}
	f.Diff = golden.Diff(one, two)
	switch {
	case slices.Equal(sortedLines(one), sortedLines(two)):
		f.Explanation = "the same messages in another order: a race that the agent shows, or one that normalize.unordered of its profile should name"
	case strings.Join(strings.Fields(digitless(one)), " ") == strings.Join(strings.Fields(digitless(two)), " "):
		f.Explanation = "only numbers differ: normalize.replace of the profile should mask them"
	default:
		f.Explanation = "messages differ: the agent does something else"
	}
	return f, true
}

func rendered(out string, r scenarios.Result) string {
	text, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(r.Artifacts["rendered"])))
	if err != nil {
		return ""
	}
	return string(text)
}

func sortedLines(s string) []string {
	lines := strings.Split(s, "\n")
	sort.Strings(lines)
	return lines
}

func digitless(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// Text is a flake for people.
func (f Flake) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: round %d %s, round %d %s\n  %s\n", f.Scenario, f.Rounds[0], f.Verdicts[0], f.Rounds[1], f.Verdicts[1], f.Explanation)
	for _, h := range f.How {
		fmt.Fprintf(&b, "  round %d: %s\n", f.Rounds[1], h)
	}
	for line := range strings.Lines(f.Diff) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}
