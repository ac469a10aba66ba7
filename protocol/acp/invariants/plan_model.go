package invariants

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// planTold checks that the plan that the model writes reaches the editor. It judges the last plan of a turn that ended
// by itself, after the model has got the result of the call.
func planTold(w *watch) {
	turns := map[*turn]*planned{}
	w.On(func(ev *event) {
		t := w.state.turnOf(ev)
		if t == nil || t.session.id != ev.Session {
			return
		}
		switch p := turns[t]; {
		case ev.Kind == transcript.ModelRequest && p != nil && ev.converses():
			p.back = true
		case ev.Kind == transcript.ModelAnswer:
			if steps := planSteps(ev.body.Get("steps")); len(steps) > 0 {
				rules.Remember(turns, rememberedRequests, t, &planned{seq: ev.Seq, steps: steps})
			}
		}
	}, modelEvent)
	w.inTurn(func(ev *event, t *turn) {
		if p := turns[t]; p != nil {
			p.told, p.entries = ev.Seq, nil
			for e := range ev.update.Get("entries").Items() {
				p.entries = append(p.entries, planStep{bare(e.Get("content").Str()), e.Get("status").Str()})
			}
		}
	}, planUpdate)
	w.onEnd(func(ev *event) {
		t := ev.turn
		p := turns[t]
		delete(turns, t)
		unclear := func() bool { return !t.alone() || t.mixed || t.like || t.stopped() }
		spoiled := func(k *tool) bool { return k.status == failed || k.denied > 0 }
		if p != nil && p.back && ev.stop == "end_turn" && !unclear() && !slices.ContainsFunc(t.tools, spoiled) {
			p.compare(w, ev)
		}
	})
}

// compare judges the plan that the agent sent, at the end of its turn.
func (p *planned) compare(w *watch, ev *event) {
	size := count(len(p.steps), "step")
	if w.judge("untold", p.told == 0, ev, "", []int{p.seq}, "The model wrote a plan of %s, but the agent sent no plan.",
		size) != nil {
		return
	}
	lost := lists.Where(p.steps, func(s planStep) bool { return p.shown(s) == "" })
	if len(lost) > 0 && len(lost) < len(p.steps) {
		w.find("partial", ev, "", []int{p.seq, p.told}, "The model wrote a plan of %s, but the plan that the agent sent "+
			"lacks %q.", size, lost[0].Step)
	}
	for _, s := range p.steps {
		now := p.shown(s)
		w.judge("stale", now != "" && s.Status != "" && now != s.Status, ev, s.Step, []int{p.seq, p.told},
			"In the model's last plan the step %q is %s, but in the plan that the agent sent last it is %s.", clip(s.Step),
			s.Status, now)
	}
}

// planned is the last plan that the model wrote in a turn, and the last plan that the agent sent after it. back says
// that the model has the result of its call.
type planned struct {
	seq, told int // Seqs of the model's answer and of the plan update; told is 0 without one
	back      bool
	steps     []planStep
	entries   []planStep // their texts without white space
}

type planStep struct{ Step, Status string }

// planSteps returns the plan in the steps of a model reply. It returns none if the reply has no plan, or several.
func planSteps(steps wire.Value) []planStep {
	var plans [][]planStep
	for s := range steps.Items() {
		head, args, _ := strings.Cut(s.Str(), "\nargs: ")
		if head != fmt.Sprintf("tool: %q", "plan") {
			continue
		}
		var given struct{ Steps []planStep }
		args, _, _ = strings.Cut(args, "\n") // other keys of the step may follow
		_ = json.Unmarshal([]byte(args), &given)
		plans = append(plans, given.Steps)
	}
	if len(plans) != 1 {
		return nil
	}
	return plans[0]
}

// shown returns the status of a step in the plan that the agent sent, or "" if that plan lacks the step.
func (p *planned) shown(s planStep) string {
	for _, e := range p.entries {
		if strings.Contains(e.Step, bare(s.Step)) {
			return e.Status
		}
	}
	return ""
}
