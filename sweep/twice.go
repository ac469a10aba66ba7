package sweep

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// playAgain plays a session a second time, and notes if the agent did something else.
func (s *sweep) playAgain(ctx context.Context, sch Schedule, first results.Result) {
	id := sch.id() + "-again"
	res, began := s.runText(ctx, sch.text(), id)
	if !began {
		return
	}
	difference := s.difference(sch.id(), id, first, res)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twice++
	if difference != "" {
		s.chance = append(s.chance, sch.Drawn+": "+difference)
		return
	}
	// What is left of it is no reason to end.
	_ = confined.RemoveAll(filepath.Join(s.engine.Out, filepath.FromSlash(id)))
}

// difference says what an agent did in one of two plays of a session alone: a request, an answer
// or the end of a turn; "" if there is nothing. Text and the order of messages are not compared.
func (s *sweep) difference(a, b string, first, second results.Result) string {
	if first.Verdict == results.Error || second.Verdict == results.Error {
		return ""
	}
	one, two := s.acts(a), s.acts(b)
	var only []string
	for _, act := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(one), two...)))) {
		if x, y := count(one, act), count(two, act); x != y {
			only = append(only, fmt.Sprintf("%s %d times, then %d times", act, x, y))
		}
	}
	return strings.Join(only, "; ")
}

func count(list []string, x string) (n int) {
	for _, y := range list {
		if x == y {
			n++
		}
	}
	return n
}

// acts are the requests, the answers and the ends of turns that an agent sent in a run.
func (s *sweep) acts(id string) (out []string) {
	t, _, err := logged(s.engine.Out, id)
	if err != nil {
		return nil
	}
	for e := range t.All() {
		if e.Source != transcript.Agent {
			continue
		}
		switch code := e.JSON().Path("error.code"); {
		case e.Kind == transcript.Request:
			out = append(out, e.Method)
		case e.Kind != transcript.Response:
		case code.Exists():
			out = append(out, e.Method+" refused with "+code.Text())
		default:
			end, _ := s.engine.Protocol.TurnEnd(e)
			out = append(out, strings.TrimSpace(e.Method+" answered "+end))
		}
	}
	return out
}

// byChance says which sessions differed when they were played twice.
func (s *sweep) byChance() (notes []string) {
	if !s.Twice {
		return nil
	}
	const most = 5
	notes = append(notes, fmt.Sprintf("%d of %d sessions differed when they were played twice although nothing was "+
		"varied: chance inside the agent", len(s.chance), s.twice))
	slices.Sort(s.chance)
	return append(notes, s.chance[:min(most, len(s.chance))]...)
}
