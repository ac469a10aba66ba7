package words

import (
	"context"
	"fmt"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
)

// compileChild names the session of a subagent, so that later lines can speak of it.
func compileChild(l *scenarios.Line) scenarios.Step {
	n := 1
	if w, ok := l.Options("nth")["nth"]; ok {
		n = l.Int(w, 1, "nth= counts from 1")
	}
	name := l.One(0, "a name for the session")
	l.AtMost(1)
	l.DeclareSession(name)
	return func(_ context.Context, b *scenarios.Branch) error {
		seen := map[string]bool{}
		for e := range b.Transcript().All() {
			if acpframe.Update(e) != "subagent_update" {
				continue
			}
			id := e.JSON().Path("params.update.sessionId").Str()
			if seen[id] = true; len(seen) == n {
				s, spokenOf := b.NewSession(name, b.Work()), b.Session()
				s.ID = id
				b.Opened(s)
				b.Opened(spokenOf) // stays the one of lines that name none
				return nil
			}
		}
		return l.Fault(fmt.Errorf("the agent has announced %d subagents: await subagent first", len(seen)))
	}
}
