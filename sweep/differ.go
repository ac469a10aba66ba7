package sweep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Differences compares each round of a scenario with the first round, by
// verdict and canonical text. It explains the first round that differs. If a
// scenario's text may vary, Differences compares only the verdicts.
func Differences(p *Planner, run results.Run, list []*scenarios.Scenario) []results.Difference {
	open := map[string]bool{}
	for _, s := range list {
		open[s.ID] = !s.Comparable()
	}
	first := map[string]results.Result{}
	at := map[string]int{}
	var out []results.Difference
	for _, r := range run.Results {
		one, ok := first[r.ID]
		if !ok {
			first[r.ID] = r
			continue
		}
		a, b := rendered(run.Out, one), rendered(run.Out, r)
		if (a == b || open[r.ID]) && one.Verdict == r.Verdict {
			continue
		}
		if i, ok := at[r.ID]; ok {
			out[i].Times++
			continue
		}
		at[r.ID] = len(out)
		out = append(out, results.Difference{
			ID: r.ID, Rounds: [2]int{one.Repeat, r.Repeat}, Verdicts: [2]results.Verdict{one.Verdict, r.Verdict}, Times: 1,
			How: Perturb(run.Seed, r.ID, r.Repeat).How, Rows: sideBySide(a, b), Explanation: explain(p, a, b, one, r),
		})
	}
	return out
}

func rendered(out string, r results.Result) string {
	text, err := confined.ReadBelow(out, filepath.FromSlash(r.Artifacts["rendered"]))
	if err != nil {
		return ""
	}
	return string(text)
}

// sideBySide returns pairs of lines of two texts, around each difference. A
// missing line is "".
func sideBySide(a, b string) [][2]string {
	var rows [][2]string
	var left, right []string
	flush := func() {
		for i := range max(len(left), len(right)) {
			var row [2]string
			if i < len(left) {
				row[0] = left[i]
			}
			if i < len(right) {
				row[1] = right[i]
			}
			rows = append(rows, row)
		}
		left, right = nil, nil
	}
	for line := range strings.SplitSeq(golden.Diff(a, b), "\n") {
		switch {
		case line == "", line == "-want +got", strings.HasPrefix(line, `\`):
		case strings.HasPrefix(line, "@@"):
			flush()
			rows = append(rows, [2]string{"…", "…"})
		case line[0] == '-':
			left = append(left, line[1:])
		case line[0] == '+':
			right = append(right, line[1:])
		default:
			flush()
			rows = append(rows, [2]string{line[1:], line[1:]})
		}
	}
	flush()
	return rows
}

// explain returns why two texts of one scenario differ: the normalizer of the
// profile that would make them equal, else the race that they show.
func explain(p *Planner, a, b string, one, other results.Result) string {
	if a == b {
		return "the messages are the same; " + cmp.Or(verdictOf(one, other),
			"only the timing or the workspace was judged differently")
	}
	left, right := lines(a), lines(b)
	if kind := freeKind(p, left, right); kind != "" {
		return fmt.Sprintf("%s comes at another position: if its position means nothing, normalize.unordered: [%s] in "+
			"the profile makes them the same", kind, kind)
	}
	if pattern := changing(left, right); pattern != "" {
		return fmt.Sprintf("a text changes from run to run: normalize.replace: [{pattern: %s, with: N}] in the "+
			"profile makes them the same", script.Quote(pattern))
	}
	race := order(left, right, one.Repeat, other.Repeat)
	if more := verdictOf(one, other); more != "" {
		race += "; " + more
	}
	return race
}

func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }

// verdictOf describes the failure of the result that did not pass, or returns
// "" if both passed. It prefers other.
func verdictOf(one, other results.Result) string {
	for _, r := range []results.Result{other, one} {
		if list := found(r); r.Verdict != results.Pass && len(list) > 0 {
			return fmt.Sprintf("round %d breaks %s: %s", r.Repeat, list[0].rule, sentence(list[0].message))
		}
		if r.Verdict != results.Pass && r.Reason != "" {
			return fmt.Sprintf("round %d: %s", r.Repeat, r.Reason)
		}
	}
	return ""
}

// freeKind returns a kind of notification whose position explains the
// difference: the texts contain the same lines of this kind and are otherwise
// equal. It returns "" if there is no such kind.
func freeKind(p *Planner, left, right []string) string {
	for _, kind := range kindsOf(p, append(only(left, right), only(right, left)...), left, right) {
		var rest, free [2][]string
		for i, text := range [][]string{left, right} {
			for _, l := range text {
				if kindOfLine(p, l) == kind {
					free[i] = append(free[i], l)
				} else {
					rest[i] = append(rest[i], l)
				}
			}
			slices.Sort(free[i])
		}
		if slices.Equal(rest[0], rest[1]) && slices.Equal(free[0], free[1]) {
			return kind
		}
	}
	return ""
}

// kindsOf returns the kinds of notifications that may explain a difference:
// first the kinds of the differing lines, then all others.
func kindsOf(p *Planner, differing, left, right []string) []string {
	var kinds []string
	for _, l := range append(differing, append(slices.Clone(left), right...)...) {
		if k := kindOfLine(p, l); k != "" && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// kindOfLine returns the name by which profiles refer to the notification in a
// line: the kind of a state update, or the method of another notification. It
// returns "" for the content of a turn, whose order a user sees.
func kindOfLine(p *Planner, l string) string {
	word, ok := strings.CutPrefix(l, "<-- ")
	if !ok {
		return ""
	}
	word, _, _ = strings.Cut(word, " ")
	if p.State != nil && p.State(word) {
		return word
	}
	return ""
}

// volatile lists patterns of text that programs generate anew in each run.
var volatile = []string{`\d+`, `[0-9a-f]{4,}(?:-[0-9a-f]{4,})*`, `[A-Za-z0-9_-]{8,}`}

// changing returns a pattern that makes two texts equal if its matches are
// masked in both. The pattern generalizes the first part that differs, and
// includes the words around it. changing returns "" if there is no such
// pattern.
func changing(left, right []string) string {
	if len(left) != len(right) {
		return ""
	}
	for _, form := range volatile {
		mask := regexp.MustCompile(form)
		var patterns []string
		for i := range left {
			if left[i] == right[i] {
				continue
			}
			if mask.ReplaceAllString(left[i], "N") != mask.ReplaceAllString(right[i], "N") {
				patterns = nil
				break
			}
			if p := around(left[i], right[i], mask, form); !slices.Contains(patterns, p) {
				patterns = append(patterns, p)
			}
		}
		if len(patterns) == 0 {
			continue
		}
		p := strings.Join(patterns, "|")
		re := regexp.MustCompile(p)
		masked := func(a, b string) bool { return re.ReplaceAllString(a, "N") == re.ReplaceAllString(b, "N") }
		if slices.EqualFunc(left, right, masked) {
			return p
		}
	}
	return ""
}

// around returns a pattern for the first part in which two lines differ. The
// pattern includes the word before that part.
func around(a, b string, mask *regexp.Regexp, form string) string {
	x, y := mask.FindAllStringIndex(a, -1), mask.FindAllStringIndex(b, -1)
	for i := range min(len(x), len(y)) {
		if a[x[i][0]:x[i][1]] == b[y[i][0]:y[i][1]] {
			continue
		}
		before := a[:x[i][0]]
		if words := strings.Fields(before); len(words) > 0 {
			last := strings.LastIndex(before, words[len(words)-1])
			before = strings.TrimLeft(before[last:], `"({[`)
		}
		if mask.MatchString(before) {
			before = ""
		}
		return regexp.QuoteMeta(before) + form
	}
	return form
}

// order describes which message came earlier or later than in the other round,
// or which is missing.
func order(left, right []string, one, other int) string {
	onlyLeft, onlyRight := only(left, right), only(right, left)
	if len(onlyLeft) == 0 && len(onlyRight) == 0 {
		for i := range left {
			if i >= len(right) || left[i] == right[i] {
				continue
			}
			return fmt.Sprintf("the same messages in another order, a race in the agent: round %d has %s before "+
				"%s, round %d after it", one, brief(left[i]), brief(right[i]), other)
		}
	}
	var parts []string
	for _, side := range []struct {
		alone []string
		round int
	}{{onlyLeft, one}, {onlyRight, other}} {
		if n := len(side.alone); n > 0 {
			parts = append(parts, fmt.Sprintf("%s in round %d only, the first of them %s",
				printable.Plural(n, "message is", "messages are"), side.round, brief(side.alone[0])))
		}
	}
	return "the agent behaves differently: " + strings.Join(parts, "; ")
}

// only returns the lines of text that other lacks, or contains fewer times.
func only(text, other []string) []string {
	have := map[string]int{}
	for _, l := range other {
		have[l]++
	}
	var out []string
	for _, l := range text {
		if have[l]--; have[l] < 0 {
			out = append(out, l)
		}
	}
	return out
}

func brief(line string) string {
	const most = 60
	if r := []rune(line); len(r) > most {
		return "“" + string(r[:most]) + "…”"
	}
	return "“" + line + "”"
}

// Perturb returns random changes to an editor's timing that must not matter:
// writes in pieces, delayed reads, slow answers. They depend only on seed,
// scenario and round. The first round is unchanged.
func Perturb(seed int64, id string, round int) scenarios.Perturbation {
	var p scenarios.Perturbation
	if round <= 1 {
		return p
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", round, id)
	r := rand.New(rand.NewPCG(uint64(seed), h.Sum64()))
	split, reads, answers := 1+r.IntN(40), 1+r.IntN(10), 1+r.IntN(40)
	// Each round makes two of the three changes. So rounds differ, and each
	// changes something.
	without := r.IntN(3)
	if without != 0 {
		p.Split = split
		p.How = append(p.How, fmt.Sprintf("writes in pieces of %d bytes", split))
	}
	if without != 1 {
		// Most reads are not delayed, because otherwise a long reply would take too
		// long.
		p.Pace.Read = sometimes(r.Uint64(), 6, reads)
		p.How = append(p.How, fmt.Sprintf("one of six reads up to %d ms late", reads))
	}
	if without != 2 {
		p.Pace.Answer = sometimes(r.Uint64(), 2, answers)
		p.How = append(p.How, fmt.Sprintf("every other answer up to %d ms late", answers))
	}
	return p
}

// sometimes returns a function that draws a duration. In one of n calls, on
// average, the duration is up to most milliseconds, else 0.
func sometimes(seed uint64, n, most int) func() time.Duration {
	r := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration {
		if r.IntN(n) > 0 {
			return 0
		}
		return time.Duration(1+r.IntN(most*1000)) * time.Microsecond
	}
}
