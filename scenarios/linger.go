package scenarios

import (
	"context"
	"slices"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// lingering is the default for scenarios whose findings may come late.
const lingering = 250 * time.Millisecond

// linger keeps the transcript open until no frame has come for a while.
func (r *run) linger(ctx context.Context) time.Duration {
	d := time.Duration(0)
	if r.engine.Linger != nil {
		d = *r.engine.Linger
	} else if slices.ContainsFunc(r.scenario.Tags,
		func(t string) bool { return t == "cancel" || t == "load" || t == "close" }) {
		d = lingering
	}
	agent := r.Agent()
	if d == 0 || agent == nil {
		return 0
	}
	if r.engine.Slot != nil {
		defer r.engine.Slot(r.scenario.ID)()
	}
	r.engine.step(r.scenario.ID, "lingering")
	silence(ctx, r.t, d, agent)
	return d
}

// lastWords waits until the agent in a shared process has nothing more to say: in one of its own
// it says that before it exits.
func (r *run) lastWords(ctx context.Context) {
	agent := r.Agent()
	if r.engine.share == nil || agent == nil {
		return
	}
	defer r.since(&r.state.waits.Linger)()
	const most, pause = 2 * time.Second, 5 * time.Millisecond // one that is never silent holds nobody up
	ctx, cancel := context.WithTimeoutCause(ctx, most, errQuiet)
	defer cancel()
	for last := r.t.Len(); ctx.Err() == nil && !idle(ctx, r.t, last, lingering, agent); last = r.t.Len() {
		within(ctx, r.t, last, pause, agentFrame)
	}
}

// hearModel waits, where the script has prompted the agent and the model was not asked yet,
// until it is or the agent is silent: what a failure says depends on whether the agent
// has a model (reached.go), and is not to depend on what was faster.
func (r *run) hearModel(ctx context.Context) {
	if agent := r.Agent(); agent != nil && r.scenario.Model != nil && len(r.prompts()) > 0 {
		untilAsked(ctx, r.t, lingering, agent)
	}
}

var modelAsked = transcript.First("a model request",
	func(e transcript.Entry) bool { return e.Kind == transcript.ModelRequest })

// untilAsked waits until the model has been asked or the agent has done nothing for d.
func untilAsked(ctx context.Context, t *transcript.Transcript, d time.Duration, agent talker) {
	for range wakings {
		last := t.Len()
		if within(ctx, t, 0, d, modelAsked).Met() || ctx.Err() != nil || idle(ctx, t, last, d, agent) {
			return
		}
	}
}

// within waits at most d for an entry behind another one.
func within(ctx context.Context, t *transcript.Transcript, after int, d time.Duration,
	wanted transcript.Expectation) transcript.Outcome {
	wait, cancel := context.WithTimeoutCause(ctx, d, errQuiet)
	defer cancel()
	return t.Await(wait, after, wanted)
}

// talker is whose silence is waited for: an agent.
type talker interface {
	Taken(context.Context)
	Busy() bool
	CatchUp(context.Context)
}

// wakings is how often an agent may turn out not to be silent yet: one that never
// is must not hold the run.
const wakings = 10

// silence waits until the agent has written nothing for d.
func silence(ctx context.Context, t *transcript.Transcript, d time.Duration, agent talker) {
	last := t.Len()
	for range wakings {
		if o := within(ctx, t, last, d, agentFrame); o.Met() {
			last = o.Entry.Seq
		} else if ctx.Err() != nil || idle(ctx, t, last, d, agent) {
			return
		}
	}
}

// idle reports whether an agent that has written nothing for d since an entry is
// silent of its own accord. On a machine with much to do the time alone does not
// say so: the agent has to have taken what was written to it, to have nothing more
// to do, and its words have to be read.
func idle(ctx context.Context, t *transcript.Transcript, last int, d time.Duration, agent talker) bool {
	wait, cancel := context.WithTimeoutCause(ctx, d, errQuiet)
	defer cancel()
	agent.Taken(wait)
	if agent.Busy() {
		return false
	}
	agent.CatchUp(wait)
	if wait.Err() != nil {
		return false
	}
	cancel() // only what is there already counts
	return !t.Await(wait, last, agentFrame).Met()
}
