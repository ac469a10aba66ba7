package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

func forwardCommands() []*Command {
	return []*Command{{
		Name: "await", Group: "forward", Args: "PATTERN [within=D]", Captures: true, Effect: false,
		Summary: "wait for the next entry that matches",
		Detail: "Takes the first matching entry after the cursor, whether or not it has already\n" +
			"arrived, and moves the cursor there. An entry that can no longer come ends the\n" +
			"wait at once. \"await turn\" looks from the session's latest prompt on, since acts\n" +
			"that follow the prompt may cross the end of its turn. \"await quiet D\" waits until\n" +
			"the agent has sent nothing for D. \"await file NAME\" waits until there is such a\n" +
			"file, which a command of the agent can leave to show that it runs: an agent need\n" +
			"not say so.\n" +
			"See acp-test help patterns.",
		Compile: compileAwait,
	}}
}

func compileAwait(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("within")
	if m != nil {
		return nil, m
	}
	var within time.Duration
	if w, ok := opts["within"]; ok {
		if within, m = l.duration(w); m != nil {
			return nil, m
		}
	}
	if len(l.words) > 0 && l.words[0].Raw() == "quiet" {
		w, m := l.need(1, "how long")
		if m != nil {
			return nil, m
		}
		d, m := l.duration(w)
		if m != nil {
			return nil, m
		}
		return func(ctx context.Context, b *branch) error { return b.quiet(ctx, l, d, within) }, nil
	}
	if len(l.words) > 0 && l.words[0].Raw() == "file" {
		name, m := l.need(1, "a file")
		if m == nil {
			m = l.atMost(2)
		}
		if m != nil {
			return nil, m
		}
		return func(ctx context.Context, b *branch) error { return b.file(ctx, l, name, within) }, nil
	}
	p, _, m := l.pattern(0)
	if m != nil {
		return nil, m
	}
	return func(ctx context.Context, b *branch) error { return b.await(ctx, l, p, within) }, nil
}

// await is the one place where a script waits for the agent or the model.
func (b *branch) await(ctx context.Context, l *line, p *pattern, within time.Duration) error {
	if err := b.run.begin(ctx); err != nil {
		return err
	}
	x, err := p.bind(b)
	if err != nil {
		return l.runtime(err)
	}
	after := b.at()
	if p.kind == "response" {
		after = x.ref
	}
	about := b.sessionOf(x)
	if prompt := b.run.lastPrompt(about); prompt > 0 && p.kind != "response" {
		x.prompt = prompt
		if p.session != "" && p.session != "any" {
			after = b.view(about).cursor
		}
		if p.kind == "turn" {
			after = max(prompt, b.view(about).ended)
			x.over = b.view(about).over
		}
	}
	var taken map[int]bool
	if b.group != nil {
		taken = b.group.taken
		if p.kind != "response" { // which has its own place to look from
			after = b.group.start
		}
	}
	wait, cancel := b.run.stepTimeout(ctx, within)
	defer cancel()
	o := b.run.t.Await(wait, after, x.expectation(taken))
	if o.Met() {
		if about = b.sessionOf(x); about != nil && p.kind == "turn" {
			v := b.view(about)
			v.ended, v.over = o.Entry.Seq, append(v.over, o.Entry.Ref)
		}
		if b.group == nil && about != nil && p.session != "" && p.session != "any" {
			b.acted(about, o.Entry)
		} else {
			b.reach(o.Entry)
		}
		b.run.name(l.as, o.Entry)
		return nil
	}
	if ctx.Err() != nil && errors.Is(o.Cause, context.Cause(ctx)) {
		return context.Cause(ctx)
	}
	f := b.run.failure(l, o)
	f.Expected = []string{x.text}
	miss := &miss{failure: f, effect: x.kind == "turn" || x.kind == "exit" || x.kind == "model", by: o.Entry}
	if o.Entry.Seq > 0 {
		f.Observed = b.run.observed(o.Entry)
		f.Entries = append(f.Entries, o.Entry.Seq)
	}
	if x.kind == "turn" && oneOf("cancelled", x.arg) && turnEnd(o.Entry) && stopReason(o.Entry) != "error" {
		miss.turnEnd = o.Entry.Seq
	}
	// Without what had to open, or before any check and outside of what a
	// requirement asks, there is no situation to judge.
	if c := b.run.check(); x.opens() || !miss.effect && (c.decl == nil || len(c.decl.requirements) == 0) {
		miss.verdict = Inconclusive
	}
	return miss
}

func (b *branch) sessionOf(x *bound) *session {
	return b.run.lastSession(func(s *session) bool { return s.id == x.session })
}

// quiet waits until no frame of the agent has come for d.
func (b *branch) quiet(ctx context.Context, l *line, d, within time.Duration) error {
	if err := b.run.begin(ctx); err != nil {
		return err
	}
	wait, cancel := b.run.stepTimeout(ctx, max(within, d+b.run.engine.StepTimeout))
	defer cancel()
	last, agent := b.run.t.Len(), b.run.running()
	for woken := 0; ; {
		pause, stop := context.WithTimeoutCause(wait, d, errQuiet)
		o := b.run.t.Await(pause, last, agentFrame)
		stop()
		switch {
		case o.Met():
			last = o.Entry.Seq
		case errors.Is(o.Cause, errQuiet) && woken < wakings && agent != nil && !idle(wait, b.run.t, last, d, agent):
			woken++
		case errors.Is(o.Cause, errQuiet) || o.Verdict == transcript.Unmeetable:
			b.acted(b.current(), b.run.t.At(last))
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			f := b.run.failure(l, o)
			f.Expected = []string{fmt.Sprintf("no frame of the agent for %v", d)}
			f.Observed = b.run.observed(b.run.t.At(last))
			return &miss{failure: f, effect: true}
		}
	}
}

// file waits until a file is there, or the turn within which it was to be made
// has ended. Without it there is no situation to judge.
func (b *branch) file(ctx context.Context, l *line, name script.Word, within time.Duration) error {
	if err := b.run.begin(ctx); err != nil {
		return err
	}
	file, err := b.expand(name)
	if err != nil {
		return l.runtime(err)
	}
	prompt := b.run.lastPrompt(b.current())
	ends := transcript.First("the end of the turn", func(e transcript.Entry) bool {
		return prompt > 0 && e.Ref == prompt && turnEnd(e)
	})
	wait, cancel := b.run.stepTimeout(ctx, within)
	defer cancel()
	for {
		// Looked for before the file is: a command may make it just before.
		glance, stop := context.WithTimeoutCause(wait, 10*time.Millisecond, errGlance)
		o := b.run.t.Await(glance, prompt, ends)
		stop()
		if _, err := os.Lstat(b.run.inWork(file)); err == nil {
			// What the agent said before it made the file came before it.
			if agent := b.run.running(); agent != nil {
				agent.CatchUp(wait)
			}
			b.run.did(l)
			return nil
		}
		if !o.Met() && errors.Is(o.Cause, errGlance) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := b.run.failure(l, o)
		f.Expected = []string{"a file " + file}
		if o.Met() {
			f.Observed, f.Reason = b.run.observed(o.Entry), fmt.Sprintf("the turn ended first, at #%d, with %s", o.Entry.Seq, stopReason(o.Entry))
			f.Entries = append(f.Entries, o.Entry.Seq)
		}
		return &miss{failure: f, verdict: Inconclusive}
	}
}

var (
	errQuiet  = errors.New("quiet")
	errGlance = errors.New("time to look again")
)

var agentFrame = transcript.First("a frame of the agent", func(e transcript.Entry) bool {
	return e.Source == transcript.Agent
})
