package sweep

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
)

// writeShortest writes scenario files: for each pair that sessions covered, the shortest session that covers it. It
// omits a session that does not pass in its own process, and one whose steps all occur in shipped scenarios.
func (s *sweep) writeShortest(ctx context.Context) error {
	if err := os.MkdirAll(s.Write, 0o755); err != nil {
		return fmt.Errorf("creating the folder for sessions: %w", err)
	}
	shipped, err := s.engine.Protocol.Shipped()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, sc := range shipped {
		if text, err := sc.Source(); err == nil {
			note(known, steps(Split(text).Lines)...)
		}
	}
	best := map[string]Schedule{}
	for _, r := range s.ran {
		if r.cell.Verdict == results.Pass {
			for _, pair := range r.Tried {
				if old, ok := best[pair]; !ok || size(r.Schedule) < size(old) {
					best[pair] = r.Schedule
				}
			}
		}
	}
	var names []string
	done := map[string]bool{}
	for pair, sch := range best {
		best[pair] = shortest(sch, pair)
		names = append(names, pair)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(size(best[a])-size(best[b]), strings.Compare(a, b))
	})
	written := 0
	for _, pair := range names {
		sch := best[pair]
		if done[pair] || !slices.ContainsFunc(steps(sch.text().Lines), func(step string) bool { return !known[step] }) {
			continue
		}
		id := "written/" + slug(pair)
		if res, began := s.runText(ctx, s.engine, sch.text(), id); !began || res.Verdict != results.Pass {
			continue
		}
		_ = confined.RemoveAll(filepath.Join(s.engine.Out, filepath.FromSlash(id))) // this run is not part of the results
		note(done, sch.Tried...)
		a := sch.text()
		a.Lines = append([]*script.Line{script.NewComment("Drawn, as " + sch.Drawn + ": " + pair + ".")}, a.Lines...)
		if err := os.WriteFile(reproFile(s.Write, slug(pair)), a.Text(), 0o644); err != nil {
			return fmt.Errorf("writing a session: %w", err)
		}
		written++
	}
	s.notes = append(s.notes, fmt.Sprintf("%d sessions are written to %s", written, s.Write))
	return nil
}

// shortest removes parts of a session for as long as the session still covers the pair.
func shortest(sch Schedule, pair string) Schedule {
	for _, smaller := range sch.Simpler() {
		if slices.Contains(smaller.Tried, pair) && size(smaller) < size(sch) {
			return shortest(smaller, pair)
		}
	}
	return sch
}

func size(sch Schedule) int { a := sch.text(); return len(a.Text()) }

// steps returns the commands of a script, each with the awaits before it.
func steps(lines []*script.Line) (out []string) {
	before := ""
	for _, l := range lines {
		if l.Kind != script.Command {
			continue
		}
		words := []string{l.Name.Raw()}
		if len(l.Words) > 0 && slices.Contains([]string{"await", "needs", "request", "session"}, words[0]) {
			words = append(words, l.Words[0].Raw())
			if words[0] == "needs" && len(l.Words) > 1 {
				words = append(words[1:], l.Words[1].Raw())
			}
		}
		now := strings.Join(words, " ")
		out = append(out, before+", then "+now)
		if words[0] == "await" {
			before = now
		}
	}
	return out
}

func note[T comparable](set map[T]bool, list ...T) {
	for _, x := range list {
		set[x] = true
	}
}
