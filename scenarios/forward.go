package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

func forwardCommands() []*Command {
	return []*Command{{
		Name: "await", Group: "forward", Args: "PATTERN [within=D]", Captures: true, Effect: false,
		Summary: "wait for the next entry that matches",
		Detail: "Takes the first matching entry after the cursor, whether or not it has already\n" +
			"arrived, and moves the cursor there. The wait ends at once when no matching entry\n" +
			"can come any more. \"await turn\" ignores the cursor: it searches from the session's\n" +
			"latest prompt, because the turn may end before the script's later lines run.\n" +
			"\"await quiet D\" waits until the agent has sent nothing for D.\n" +
			"\"await file NAME [session=S]\" waits until that file exists. Let a command that the\n" +
			"agent runs create the file: the agent need not report that a command has started.\n" +
			"The wait ends in vain with the session's turn; with session=any no turn ends it.\n" +
			"See acp-test help patterns.",
		Compile: compileAwait,
	}}
}

func compileAwait(l *Line) Step {
	within := limitOf(l)
	switch {
	case len(l.Rest) > 0 && l.Rest[0].Raw() == "quiet":
		d := l.Duration(l.Need(1, "how long"))
		return func(ctx context.Context, b *Branch) error { return b.quiet(ctx, l, d, within) }
	case len(l.Rest) > 0 && l.Rest[0].Raw() == "file":
		about, name := l.Options("session")["session"], l.Need(1, "a file")
		l.AtMost(2)
		l.Inside(name)
		return func(ctx context.Context, b *Branch) error { return b.file(ctx, l, name, about.Raw(), within) }
	}
	p, _ := l.Pattern(0)
	return func(ctx context.Context, b *Branch) error { return b.await(ctx, l, p, within) }
}

// limitOf returns the value of the option within=, or 0 if the line has none.
func limitOf(l *Line) (d time.Duration) {
	if w, ok := l.Options("within")["within"]; ok {
		d = l.Duration(w)
	}
	return d
}

// await plays a line "await PATTERN". Only such lines wait for the agent or the model.
func (b *Branch) await(ctx context.Context, l *Line, p *language.Pattern, within time.Duration) error {
	if err := b.Begin(ctx); err != nil {
		return err
	}
	x, err := bind(p, b)
	if err != nil {
		return l.Fault(err)
	}
	looked, after := b.lookFrom(x, p)
	var taken map[int]bool
	if b.group != nil {
		taken = b.group.taken
	}
	full, timer := within, "within"
	if within == 0 {
		full, timer = b.run.engine.StepTimeout, "step timeout"
	}
	wait, cancel := b.waitFor(ctx, x.awaited(), timer, full)
	defer cancel()
	o := b.run.t.Await(wait, after, x.expectation(taken))
	switch {
	case o.Met():
		if about := b.sessionOf(x); about != nil && x.isTurn() {
			v := b.view(about)
			v.ended, v.over = o.Entry.Seq, append(v.over, o.Entry.Ref)
		}
		b.reach(looked, o.Entry)
		b.Name(l.Alias, o.Entry)
		return nil
	case ctx.Err() != nil && errors.Is(o.Cause, context.Cause(ctx)):
		return context.Cause(ctx)
	}
	return b.unmet(l, x, o)
}

// lookFrom returns the session whose cursor the line moves, and the Seq after which the line's search begins. It sets
// x.prompt to the session's open prompt.
func (b *Branch) lookFrom(x *bound, p *language.Pattern) (looked *Session, after int) {
	looked, after = b.Session(), b.At()
	about := b.sessionOf(x)
	if about != nil && p.Session != "" && p.Session != "any" {
		looked = about
	}
	if p.Of.OfRequest() {
		return looked, x.Ref
	}
	prompt := b.LastPrompt(about)
	if prompt == 0 {
		return looked, after
	}
	x.prompt = prompt
	v := b.view(about)
	switch {
	case x.isTurn():
		x.Over, after = v.over, max(prompt, v.ended)
	case looked == about:
		after = v.cursor
	}
	return looked, after
}

// unmet returns the Miss of a line whose pattern did not match.
func (b *Branch) unmet(l *Line, x *bound, o transcript.Outcome) *Miss {
	f := b.Failure(l, o)
	f.Expected = []string{x.text}
	miss := &Miss{Failure: f, Effect: x.of.Effect, by: o.Entry, ofTool: x.of.Inner}
	if o.Entry.Seq > 0 {
		b.run.hear(o.Entry)
		f.Observed = b.run.observed(o.Entry)
		f.Entries = append(f.Entries, o.Entry.Seq)
	}
	switch {
	case !x.isTurn():
	case o.Entry.Seq == 0:
		miss.turnOpen = x.prompt
	case OneOf(b.protocol().EndReason, x.Arg) && b.endedWithoutError(o.Entry):
		miss.turnEnd = o.Entry.Seq
	}
	// There is no situation to judge in two cases: the missing entry would have created it, or no open check has a
	// requirement.
	opens := x.of.Opens || x.of.InnerArg != nil && x.of.InnerArg(x.Arg)
	if c := b.run.check(); opens || !miss.Effect && (c.decl == nil || len(c.decl.Requirements) == 0) {
		miss.Verdict = results.Inconclusive
	}
	return miss
}

func (b *Branch) sessionOf(x *bound) *Session {
	return b.run.lastSession(func(s *Session) bool { return s.ID == x.Session })
}

// quiet waits until the agent has sent no frame for the duration d. The wait may last at most longest, or d and a
// step timeout if that is longer.
func (b *Branch) quiet(ctx context.Context, l *Line, d, longest time.Duration) error {
	if err := b.Begin(ctx); err != nil {
		return err
	}
	wait, cancel := b.StepTimeout(ctx, max(longest, d+b.run.engine.StepTimeout))
	defer cancel()
	last, agent := b.run.t.Len(), b.Agent()
	for woken := 0; ; {
		o := within(wait, b.run.t, last, d, agentFrame)
		switch {
		case o.Met():
			last = o.Entry.Seq
		case errors.Is(o.Cause, errQuiet) && woken < wakings && agent != nil && !idle(wait, b.run.t, last, d, agent):
			woken++
		case errors.Is(o.Cause, errQuiet) || o.Verdict == transcript.Unmeetable:
			b.Acted(b.Session(), b.run.t.At(last))
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			f := b.Failure(l, o)
			f.Expected = []string{fmt.Sprintf("no frame of the agent for %v", d)}
			f.Observed = b.run.observed(b.run.t.At(last))
			return &Miss{Failure: f, Effect: true}
		}
	}
}

// file waits until a file exists. If the turn ends or the timeout expires first, it returns an inconclusive Miss.
func (b *Branch) file(ctx context.Context, l *Line, name script.Word, about string, within time.Duration) error {
	if err := b.Begin(ctx); err != nil {
		return err
	}
	file, err := b.Path(l, name)
	if err != nil {
		return err
	}
	prompt := 0
	switch about {
	case "any": // no turn makes the file
	case "":
		prompt = b.LastPrompt(b.Session())
	default:
		prompt = b.LastPrompt(b.Named(about))
	}
	ends := transcript.First("the end of the turn", func(e transcript.Entry) bool {
		return prompt > 0 && e.Ref == prompt && b.endsTurn(e)
	})
	wait, cancel := b.StepTimeout(ctx, within)
	defer cancel()
	for {
		// Check whether the turn has ended before checking the file: a command may create the file just before the turn
		// ends.
		glance, stop := context.WithTimeoutCause(wait, 10*time.Millisecond, errGlance)
		o := b.run.t.Await(glance, prompt, ends)
		stop()
		if b.run.lstat(file) == nil {
			// First log all output that the agent wrote before it created the file.
			if agent := b.Agent(); agent != nil {
				agent.CatchUp(wait)
			}
			b.Did(l)
			return nil
		}
		if !o.Met() && errors.Is(o.Cause, errGlance) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := b.Failure(l, o)
		f.Expected = []string{"a file " + file}
		if o.Met() {
			f.Observed, f.Reason = b.run.observed(o.Entry),
				fmt.Sprintf("the turn ended first, at #%d, with %s", o.Entry.Seq, b.stopReason(o.Entry))
			f.Entries = append(f.Entries, o.Entry.Seq)
		}
		return &Miss{Failure: f, Verdict: results.Inconclusive}
	}
}

var (
	errQuiet  = errors.New("quiet")
	errGlance = errors.New("time to look again")
)

var agentFrame = transcript.First("a frame of the agent", func(e transcript.Entry) bool {
	return e.Source == transcript.Agent
})
