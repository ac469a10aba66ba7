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

// planTold checks that the model's plan reaches the editor. When a turn ends with end_turn, it compares the model's
// last plan with the agent's last plan update after it. It skips turns in which the model did not get the result of the
// plan call, or in which a tool call failed or was denied. The result knows whether the model wrote a plan in a turn.
func planTold(w *watch) (knows func(*turn) bool) {
	turns := map[*turn]*planned{}
	w.On(func(ev *event) {
		if t := w.state.turnOf(ev); t != nil && t.session.id == ev.Session {
			planOf(turns, t, ev)
		}
	}, modelEvent)
	w.inTurn(func(ev *event, t *turn) {
		if p := turns[t]; p != nil {
			p.sent, p.entries = ev.Seq, nil
			for e := range ev.update.Get("entries").Items() {
				if len(p.entries) == planSize {
					break
				}
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
		if p != nil && p.resultSeen && ev.stop == "end_turn" && !unclear() && !slices.ContainsFunc(t.tools, spoiled) {
			p.compare(w, ev)
		}
	})
	return func(t *turn) bool { return turns[t] != nil }
}

// planOf stores the plan that the model writes in a turn, and that it got the result.
func planOf(turns map[*turn]*planned, t *turn, ev *event) {
	switch p := turns[t]; {
	case ev.Kind == transcript.ModelRequest && p != nil && ev.converses():
		p.resultSeen = true
	case ev.Kind == transcript.ModelAnswer:
		switch plans := plansIn(ev.body.Get("steps")); {
		case len(plans) > 1:
			delete(turns, t)
		case len(plans) == 1 && len(plans[0]) > 0:
			rules.Remember(turns, rememberedRequests, t, &planned{seq: ev.Seq, steps: plans[0], former: p.all()})
		}
	}
}

// compare judges the agent's last plan at the end of a turn. If it has none of the model's steps, the agent may word
// steps differently, and compare reports nothing.
func (p *planned) compare(w *watch, ev *event) {
	steps := lists.Where(p.steps, planStep.known)
	if len(steps) == 0 {
		return
	}
	size := count(len(p.steps), "step")
	if w.judge("not-sent", p.sent == 0, ev, "", []int{p.seq}, "The model wrote a plan of %s, but the agent sent "+
		"no plan update between that reply and the end of the turn.", size) != nil {
		return
	}
	lost := lists.Where(steps, func(s planStep) bool { return p.shown(s) == "" })
	if len(lost) > 0 && len(lost) < len(steps) {
		w.find("steps-missing", ev, "", []int{p.seq, p.sent}, "The model's last plan has %s, but the plan that the agent "+
			"sent last lacks the step %q.", size, clip(lost[0].Step))
	}
	for _, s := range p.former {
		w.judge("steps-kept", len(lost) == 0 && p.keeps(s), ev, s.Step, []int{p.seq, p.sent},
			"The model's last plan has no step %q, but the plan that the agent sent last still has it.", clip(s.Step))
	}
	for _, s := range steps {
		now := p.shown(s)
		w.judge("stale", now != "" && s.Status != "" && now != s.Status, ev, s.Step, []int{p.seq, p.sent},
			"In the model's last plan the step %q is %s, but in the plan that the agent sent last it is %s.", clip(s.Step),
			s.Status, now)
	}
}

// planned is the last plan that the model wrote in a turn, and the last plan that the agent sent after it. resultSeen
// says that the model got the result of its plan call. former has the steps of the model's earlier plans in the turn.
type planned struct {
	seq, sent  int // Seqs of the model's answer and of the plan update; sent is 0 without one
	resultSeen bool
	steps      []planStep
	former     []planStep
	entries    []planStep // their texts without white space
}

type planStep struct{ Step, Status string }

// known reports whether the step has no status or one that the protocol has. An agent may leave out a step with another
// status, such as a cancelled one, or show it under one of the protocol's.
func (s planStep) known() bool {
	return slices.Contains([]string{"", "pending", "in_progress", "completed"}, s.Status)
}

// all returns the steps of all plans of the model in the turn.
func (p *planned) all() []planStep {
	if p == nil || len(p.former) > planSize {
		return nil
	}
	return append(p.former, p.steps...)
}

// plansIn returns the plans in the steps of a model reply.
func plansIn(steps wire.Value) (plans [][]planStep) {
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
	return plans
}

// keeps reports whether the plan that the agent sent has an unfinished step that the model's last plan lacks. A step
// may be the beginning of another.
func (p *planned) keeps(former planStep) bool {
	step := bare(former.Step)
	return !slices.ContainsFunc(p.steps, func(s planStep) bool {
		now := bare(s.Step)
		return strings.Contains(now, beginning(step)) || strings.Contains(step, beginning(now))
	}) && slices.ContainsFunc(p.entries, func(e planStep) bool {
		return e.Step == step && (e.Status == "pending" || e.Status == "in_progress")
	})
}

// shown returns the status of a step in the plan that the agent sent, or "" if that plan lacks the step. The agent may
// cut long steps.
func (p *planned) shown(s planStep) string {
	step := beginning(bare(s.Step))
	for _, e := range p.entries {
		if strings.Contains(e.Step, step) {
			return e.Status
		}
	}
	return ""
}
