package scenarios

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
)

func conditionCommands(p *Protocol) []*Command {
	return []*Command{{
		Name: "needs", Group: "conditions",
		Args: "agent:CAPABILITY | model | stdio | http | ws | tool:NAME … | [!] saw PATTERN | " +
			"await PATTERN [within=D] | pick …",
		Captures: true,
		Summary:  "skip the scenario where it does not apply",
		Detail: p.CapabilityHelp + "tool:NAME needs a profile that maps the neutral tool. tool:NAME:ABILITY\n" +
			"also needs a profile that does not deny it: write_file:overwrite, write_file:folders,\n" +
			"write_file:create, read_file:large, delegate:again, delegate:nested, delegate:two.\n" +
			"model needs a model that acp-test controls; stdio, http and ws need an agent that is\n" +
			"reached that way. saw PATTERN needs a matching entry before this line, for optional\n" +
			"acts of agents; as NAME names the last match. ! saw PATTERN needs that there is none.\n" +
			"await PATTERN waits for a match as await does, and skips\n" +
			"the scenario if the turn ends first, without an error. A\n" +
			"line may also begin with conditions in brackets: [v2] [linux] [!windows].",
		Compile: compileNeeds,
	}}
}

func neutralTools() []string {
	return lists.Map(agents.NeutralTools(), func(t agents.NeutralTool) string { return t.Name })
}

func compileNeeds(l *Line) Step {
	first := l.Need(0, "what is needed")
	switch first.Raw() {
	case "!":
		l.Rest = l.Rest[1:]
		if w := l.Need(0, "saw PATTERN"); w.Raw() != "saw" {
			return l.Usage(w.Column, "! is allowed only before saw, not before %q", w.Raw())
		}
		return compileNeedsSaw(l, true)
	case "saw":
		return compileNeedsSaw(l, false)
	case "await":
		return compileNeedsAwait(l)
	case "pick":
		return compileNeedsPick(l)
	}
	var agent []string
	for _, w := range l.Rest {
		s, ok := w.Literal()
		what, name, _ := strings.Cut(s, ":")
		switch {
		case !ok:
			return l.Usage(w.Column, "needs takes no variables")
		case what == "agent" && name != "":
			agent = append(agent, name)
		case what == "tool" && !slices.Contains(neutralTools(), strings.Split(name, ":")[0]):
			return l.Mistake(w.Column, mistake.Suggest(name, neutralTools()), "there is no neutral tool %q", name)
		case what == "tool", name == "" && (what == "model" || slices.Contains(language.Bindings, what)):
		default:
			return l.Usage(w.Column, "%q is not a condition of needs", s)
		}
		needs := &l.Scenario().Needs
		*needs = append(*needs, language.Need{What: what, Name: name, Line: l.Number})
	}
	if len(agent) == 0 {
		return nil
	}
	// The agent's capabilities are known only after initialize, and later lines may still change its parameters.
	return func(_ context.Context, b *Branch) error {
		b.run.change(func(s *state) { s.setup.needs = append(s.setup.needs, agent...) })
		return b.Applies()
	}
}

// neededPattern compiles the pattern after "needs saw" or "needs await".
func neededPattern(l *Line) *language.Pattern {
	for key, w := range l.Options("in", "turn", "within") {
		l.Usage(w.Column, "needs %s looks at the whole run and takes no %s=", l.Rest[0].Raw(), key)
	}
	p, next := l.Pattern(1)
	if next < len(l.Rest) {
		l.Usage(l.Rest[next].Column, "needs %s takes one pattern", l.Rest[0].Raw())
	}
	return p
}

// compileNeedsAwait compiles "needs await", for actions that the specification leaves to the agent (PERM-001: asking
// is optional). If the turn ends without the awaited entry, the scenario is skipped; a plain await would be
// inconclusive. The scenario is also skipped if the turn stays open because the agent waits for an answer that the
// editor withholds.
func compileNeedsAwait(l *Line) Step {
	within := limitOf(l)
	p := neededPattern(l)
	return func(ctx context.Context, b *Branch) error {
		err := b.await(ctx, l, p, within)
		m, ok := errors.AsType[*Miss](err)
		if ok && b.endedWithoutError(m.by) {
			b.Settle(m.by)
			return &Skipped{tookTurn + strings.Join(m.Failure.Expected, " ")}
		}
		if ok && m.turnOpen > 0 && b.run.owesAnswer() {
			return &Skipped{"the agent waits for the editor's answer instead of " + strings.Join(m.Failure.Expected, " ")}
		}
		return err
	}
}

// owesAnswer reports whether the editor has not answered all requests of the agent.
func (r *run) owesAnswer() bool {
	open := map[int]bool{}
	for e := range r.t.All() {
		switch {
		case e.Source == transcript.Agent && e.Kind == transcript.Request:
			open[e.Seq] = true
		case e.Source == transcript.Editor && e.Kind == transcript.Response:
			delete(open, e.Ref)
		}
	}
	return len(open) > 0
}

// compileNeedsSaw compiles "needs saw". Such a line skips the scenario if the agent has not sent an optional entry.
// If not is true, the line skips the scenario if the agent has sent the entry.
func compileNeedsSaw(l *Line, not bool) Step {
	p := neededPattern(l)
	return func(_ context.Context, b *Branch) error {
		x, err := bind(p, b)
		if err != nil {
			return l.Fault(err)
		}
		var last transcript.Entry
		for e := range b.run.t.All() {
			if x.counts(e) {
				last = e
			}
		}
		switch {
		case last.Seq == 0 && !not:
			return &Skipped{"the agent has sent nothing that matches " + x.text}
		case last.Seq > 0 && not:
			return &Skipped{fmt.Sprintf("the agent has sent %s (#%d)", x.text, last.Seq)}
		case !not:
			b.Name(l.Alias, last)
		}
		return nil
	}
}

// Applies returns a Skipped error if the agent does not advertise a capability that the scenario needs. It returns
// nil while the capabilities are unknown.
func (r *run) Applies() error {
	for _, c := range stateOf(r, func(s *state) []string { return s.setup.needs }) {
		if has, known := r.client.Advertises(c); known && !has {
			return &Skipped{"the agent does not advertise " + c}
		}
	}
	return nil
}

func structureCommands() []*Command {
	return []*Command{
		steadyCommand(), eachCommand(), {
			Name: "check", Group: "structure", Passive: true, Args: "[REQUIREMENT…] [SLUG]",
			Summary: "open a check, which ends at the next one",
			Detail: "Its id is scenario#slug; the default slug is the first requirement in lower case. A\n" +
				"miss counts by its strongest requirement: must fails, should warns, anything else is\n" +
				"lint. Without requirements, a missing effect or end fails, anything else is lint.",
			Compile: compileCheck,
		}, {
			Name: "group", Group: "structure", Args: "", Blocks: 1,
			Summary: "await several entries in any order",
			Detail: "All lines look forward from the start of the group, lines that name a session from the\n" +
				"cursor in that session. Each line takes a different entry. The cursor ends at the last\nof them.",
			Compile: compileGroup,
		}, {
			Name: "both", Group: "structure", Args: "", Blocks: 2,
			Summary: "run two blocks at the same time",
			Detail:  "Write both { … }{ … }: each block has its own cursor and is about the\nsession it named last.",
			Compile: compileBoth,
		}, {
			Name: "repeat", Group: "structure", Args: "N", Blocks: 1,
			Summary: "play a block N times",
			Compile: func(l *Line) Step {
				n := l.Int(l.Need(0, "a number of rounds"), 2, "repeat takes a number of rounds, at least 2")
				l.AtMost(1)
				steps := slices.Repeat(l.Body(0), n)
				return func(ctx context.Context, b *Branch) error { return b.play(ctx, steps) }
			},
		}, {
			Name: "exec", Group: "structure", Passive: true, Args: "PROGRAM [ARG…]", Effect: true, OfTool: true,
			Summary: "run a program in the workspace with the transcript on its input",
			Detail: "The program runs with your rights and environment, outside of any --isolate.\n" +
				"It gets the transcript so far as JSON Lines on stdin and WORK, HOME and\nACP_TEST_SESSION in " +
				"its environment. A status other than 0 is a miss; reports\nshow the program's output.",
			Compile: compileExec,
		}, {
			Name: "tag", Group: "structure", Passive: true, Args: "NAME…",
			Summary: "tag the scenario, for --tag",
			Compile: func(l *Line) Step {
				for i := range l.Rest {
					s := l.One(i, "a tag")
					tags := &l.Scenario().Tags
					*tags = append(*tags, s)
				}
				return nil
			},
		}, {
			Name: "role", Group: "structure", Passive: true, Args: "editor|agent",
			Summary: "say which side the file scripts; the default is editor",
			Compile: func(l *Line) Step {
				s := l.One(0, "editor or agent")
				if s != "editor" && s != "agent" {
					return l.Usage(l.Rest[0].Column, "%q is no role", s)
				}
				l.Scenario().Role = s
				return nil
			},
		},
	}
}

var requirementID = lazy.Regexp(`^[A-Z][A-Z0-9]*(-[A-Z]+)?-[0-9]{3}$`)
var slugForm = lazy.Regexp(`^[a-z0-9][a-z0-9.-]*$`)

func compileCheck(l *Line) Step {
	d := &language.Check{Line: l.Number, Column: l.Name.Column, Title: l.Comment}
	for i, w := range l.Rest {
		switch s := l.One(i, "a requirement or a slug"); {
		case requirementID().MatchString(s):
			d.Requirements = append(d.Requirements, s)
		case slugForm().MatchString(s) && i == len(l.Rest)-1:
			d.Slug = s
		default:
			return l.Usage(w.Column,
				"%q is neither a requirement like CANCEL-001 nor, at the end, a slug of lower-case words joined by -", s)
		}
	}
	if d.Slug == "" && len(d.Requirements) > 0 {
		d.Slug = strings.ToLower(d.Requirements[0])
	}
	if d.Slug == "" {
		return l.Usage(len(l.Text)+1, "a check needs a requirement or a slug")
	}
	for _, c := range l.Scenario().Checks {
		if c.Slug == d.Slug {
			return l.Mistake(l.Name.Column, fmt.Sprintf("the first is on line %d", c.Line), "two checks have the id %q", d.Slug)
		}
	}
	l.Scenario().Checks = append(l.Scenario().Checks, d)
	return func(_ context.Context, b *Branch) error {
		b.run.open(d)
		return nil
	}
}

// open makes a check the current one, to which later misses belong.
func (r *run) open(d *language.Check) {
	r.t.Event(r.connection(), transcript.Note, transcript.CheckOpened, "",
		map[string]any{"check": d.Slug, "requirements": d.Requirements})
	r.engine.step(r.scenario.ID, "check "+d.Slug)
	r.change(func(s *state) {
		for _, c := range s.checks {
			if c.decl == d {
				c.reached = true
				s.current = c
			}
		}
	})
}

func (r *run) check() *checkState { return stateOf(r, func(s *state) *checkState { return s.current }) }

func compileGroup(l *Line) Step {
	steps := l.Body(0)
	for _, s := range steps {
		if s.Command != nil && s.Command.Name != "await" {
			l.Reject(s.Line, s.Column, "a group may only contain await lines")
		}
	}
	return func(ctx context.Context, b *Branch) error {
		g := &group{taken: map[int]bool{}, ends: map[*Session]int{}}
		b.group = g
		defer func() { b.group = nil }()
		for _, s := range steps {
			if err := b.do(ctx, s); err != nil {
				return err
			}
		}
		for session, last := range g.ends {
			b.Acted(session, b.run.t.At(last))
		}
		return nil
	}
}

func compileBoth(l *Line) Step {
	first, second := l.Body(0), l.Body(1)
	return func(ctx context.Context, b *Branch) error {
		if err := b.Begin(ctx); err != nil {
			return err
		}
		left, right := b.fork(), b.fork()
		done := make(chan error, 1)
		go func() { done <- right.play(ctx, second) }()
		err := left.play(ctx, first)
		if other := <-done; err == nil {
			err = other
		}
		b.join(left)
		b.join(right)
		return err
	}
}

// play runs steps until one of them ends the script. It continues after a soft Miss. A panic is a fault of this
// program; play returns it as an error, so that the artifacts are saved.
func (b *Branch) play(ctx context.Context, steps []played) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("acp-test failed: %v\n%s", p, debug.Stack())
		}
	}()
	for _, s := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := b.do(ctx, s)
		if m, ok := err.(*Miss); ok && m.Soft {
			b.run.missed(m)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// do runs one step. If the step needs a field that an entry of the agent lacks, do returns a Miss of the line.
func (b *Branch) do(ctx context.Context, s played) error {
	b.effects.wait()
	err := s.Do(ctx, b)
	if lack, ok := errors.AsType[*lacking](err); ok {
		return lack.miss(b.run, s.Source)
	}
	return err
}

// missed adds a miss to the open check, or to the scenario if the miss belongs to implied setup.
func (r *run) missed(m *Miss) {
	m.at = r.t.Len()
	r.change(func(s *state) {
		at := s.current
		if m.setup {
			at.reached, at = false, s.checks[0]
		}
		at.misses = append(at.misses, m)
	})
}
