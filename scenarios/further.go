package scenarios

import (
	"context"
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Texts of the user and the model in the further turn. No scenario contains them.
const (
	furtherPrompt = "One more thing: say that you are ready for what comes next."
	furtherReply  = "Ready for what comes next, whatever it may be."
)

// further plays one simple turn in an idle session after the last check, because consequences of a scenario often
// show only later. It adds a check of class warn: the turn must end normally and contain the model's text. Goldens do
// not include this turn.
func (r *run) further(ctx context.Context) {
	p, agent := r.protocol(), r.Agent()
	if p.Further == nil || r.engine.NoFurther || r.scenario.Further != "" || agent == nil || !r.Ready() ||
		r.Ended() || r.unsure() != "" {
		return
	}
	var settled int
	r.change(func(s *state) { settled = s.settled })
	defer r.change(func(s *state) { s.settled = settled })
	r.engine.step(r.scenario.ID, "a further turn")
	agent.CatchUp(ctx) // frames sent until now belong to the scenario
	b := &Branch{run: r}
	asked, ok := p.Further(b, fakellm.Prompt{Index: len(r.scenario.Prompts) + 1, Text: furtherPrompt, Reply: furtherReply})
	if !ok {
		return
	}
	c := &checkState{reached: true, decl: &language.Check{Slug: results.FurtherCheck, Class: results.Warn,
		Title: "One plain turn more works as any other."}}
	r.change(func(s *state) {
		s.checks, s.current = append(s.checks, c), c
	})
	wait, cancel := b.waitFor(ctx, "the end of a further turn", "step timeout", r.engine.StepTimeout)
	defer cancel()
	o := r.t.Await(wait, asked.Seq, transcript.First("the end of the turn", func(e transcript.Entry) bool {
		return e.Ref == asked.Seq && b.endsTurn(e)
	}))
	f := r.Failure(Implied("a plain turn after the last line"), o)
	f.Expected = []string{fmt.Sprintf("a turn that ends with %s and says %q", p.StopReasons[0], furtherReply)}
	f.Entries = []int{asked.Seq}
	if !o.Met() {
		if ctx.Err() == nil {
			r.missed(&Miss{Failure: f, Effect: true})
		}
		return
	}
	var said strings.Builder
	for e := range r.t.Between(asked.Seq, o.Entry.Seq) {
		if e.Session == asked.Session {
			said.WriteString(p.Said(e))
		}
	}
	f.Entries = append(f.Entries, o.Entry.Seq)
	f.Observed = fmt.Sprintf("%s, with the text %q", b.stopReason(o.Entry), said.String())
	if reason, _ := p.TurnEnd(o.Entry); reason != p.StopReasons[0] || !strings.Contains(said.String(), furtherReply) {
		r.missed(&Miss{Failure: f, Effect: true})
	}
}
