package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

func backCommands() []*Command {
	return []*Command{
		pickCommand(), {
			Name: "saw", Group: "back", Args: "PATTERN [count=N|count>=N] [before PATTERN] [after PATTERN] [in=run|turn=N]",
			Negatable: true, OfTool: true,
			Summary: "ask whether an entry came, without waiting",
			Detail: "Looks at one session's entries from its latest prompt until now: the session that the\n" +
				"pattern names, by default the current one. in=run and turn=N choose other entries.\n" +
				"count=N is exact; the default is at least one. before and after refer to the first\n" +
				"match of their pattern. If nothing matches, each entry counts as before and none as after.\n" +
				"after permission means after the editor wrote its answer.",
			Compile: compileSaw,
		}, {
			Name: "text", Group: "back", Args: "~ REGEXP [in=run|turn=N]", Negatable: true, Effect: true, OfTool: true,
			Summary: "ask whether the joined text of the agent's messages of the turn matches",
			Detail: "Text before the model's first words, or after its last, is ignored if neither the model\n" +
				"nor the user ever said it: it is a greeting or a notice of the agent itself.",
			Compile: compileText,
		}, {
			Name: "cmp", Group: "back", Args: "FILE WANT", Effect: true, OfTool: true,
			Summary: "compare a file of the workspace with an expected one",
			Detail: "WANT is the name of a file of the archive, usually want/FILE. Variables in it are\nexpanded. FILE may " +
				"be absolute.",
			Compile: compileCmp,
		}, {
			Name: "exists", Group: "back", Args: "FILE…", Negatable: true, Effect: true, OfTool: true,
			Summary: "ask whether files of the workspace exist",
			Compile: compileExists,
		}, {
			Name: "model", Group: "back", Args: "requests==N | requests<=N | requests>=N | saw [path=value…]", Negatable: true,
			Effect: true, OfTool: true,
			Summary: "ask which requests the model server got",
			Detail: "requests counts the requests of the conversation since the latest prompt, without\n" +
				"side requests and retries. \"model saw\" looks for a request with the conditions\n" +
				"given: text~REGEXP searches its body, the other paths are those of the\n" +
				"model-request entry (lane, step, wire, body.…).",
			Compile: compileModel,
		}, {
			Name: "descendants", Group: "back", Args: "none", Effect: true, Process: true,
			Summary: "ask that within a second the agent has only the processes that it had before the first prompt",
			Compile: compileDescendants,
		}, {
			Name: "stderr", Group: "back", Args: "~ REGEXP", Negatable: true, Process: true,
			Summary: "ask whether the agent's stderr output matches",
			Compile: compileStderr,
		},
	}
}

// looker is the part of a session that a line searches, for saw, text and similar commands.
type looker struct {
	in   string
	turn int
}

func lookerOf(l *Line) (k looker) {
	opts := l.Options("in", "turn")
	if w, ok := opts["in"]; ok {
		if k.in = w.Raw(); k.in != "run" && k.in != "turn" {
			l.Usage(w.Column, "in= is run or turn")
		}
	}
	if w, ok := opts["turn"]; ok {
		k.turn = l.Int(w, 1, "turn= is the number of a turn, from 1")
	}
	return k
}

// window returns the part of a session that a line searches: the entries after from, up to and including to. By
// default this is the latest turn. With in=run it is the whole run; with turn=N it is turn N.
func (k looker) window(b *Branch, s *Session) (from, to int, err error) {
	prompts, to := b.PromptsOf(s), b.run.t.Len()
	n := k.turn
	if n == 0 {
		n = len(prompts)
	}
	switch {
	case k.in == "run" || n == 0:
		return 0, to, nil
	case n > len(prompts):
		return 0, 0, fmt.Errorf("turn=%d: the session has only %d so far", n, len(prompts))
	case n < len(prompts):
		to = prompts[n] - 1
	}
	return prompts[n-1] - 1, to, nil
}

// Back returns the Miss of a line that searches past entries. Usually the script continues after the Miss. However, a
// Miss before the first check ends the script if it depends on a tool call, because without the tool's effect there
// is no situation to judge.
func (b *Branch) Back(l *Line, effect bool, expected, observed string, entries ...int) error {
	f := b.Failure(l, transcript.Outcome{})
	f.Expected, f.Observed, f.Entries = []string{expected}, observed, entries
	ofTool := !l.Negated && ofTool(l) && !b.run.keeps(l)
	return &Miss{Failure: f, Effect: effect, Soft: !ofTool || b.run.check().decl != nil, ofTool: ofTool}
}

// keeps reports whether the line is a cmp that requires a file to be unchanged since the start.
func (r *run) keeps(l *Line) bool {
	if !l.Name.Is("cmp") || len(l.Words) < 2 {
		return false
	}
	before, was := r.scenario.Archived(l.Words[0].Raw())
	after, wanted := r.scenario.Archived(l.Words[1].Raw())
	return was && wanted && bytes.Equal(before, after)
}

// ofTool reports whether the line expects an effect that requires a tool call.
func ofTool(l *Line) bool {
	c := l.Command()
	return c != nil && c.OfTool
}

// saw is a compiled line that searches past entries.
type saw struct {
	line           *Line
	pattern        *language.Pattern
	window         looker
	before, after  *language.Pattern // nil means no limit
	want           int
	exact, counted bool // counted: the line has count=; exact: with the operator =
}

func compileSaw(l *Line) Step {
	s := &saw{line: l, want: 1}
	s.count()
	if l.Negated && s.counted {
		return l.Usage(1, "\"! saw\" cannot have a count")
	}
	s.window = lookerOf(l)
	var next int
	s.pattern, next = l.Pattern(0, "before", "after")
	for next < len(l.Rest) {
		bound := &s.after
		if l.Rest[next].Raw() == "before" {
			bound = &s.before
		}
		*bound, next = l.Pattern(next+1, "before", "after")
	}
	return s.play
}

// count moves the condition count=N or count>=N from the line's words to the fields of s.
func (s *saw) count() {
	l := s.line
	l.Rest = slices.DeleteFunc(slices.Clone(l.Rest), func(w script.Word) bool {
		key, op, value, ok := w.Cut(">=", "=")
		if !ok || key != "count" {
			return false
		}
		value.Column = w.Column
		s.want, s.exact, s.counted = l.Int(value, 0, "count is a number"), op == "=", true
		return true
	})
}

func (s *saw) play(ctx context.Context, b *Branch) error {
	if err := b.Begin(ctx); err != nil {
		return err
	}
	x, err := bind(s.pattern, b)
	if err != nil {
		return s.line.Fault(err)
	}
	from, to, err := s.stretch(b, x)
	if err != nil {
		return s.line.Fault(err)
	}
	return s.judge(b, x.text, seqsOf(b.run.t.Between(from+1, to), x.counts))
}

// stretch returns the range of entries to search: those after from, up to and including to.
func (s *saw) stretch(b *Branch, x *bound) (from, to int, err error) {
	about := b.Session()
	if name := s.pattern.Session; name != "" && name != "any" {
		about = b.sessionOf(x)
	}
	if from, to, err = s.window.window(b, about); err != nil {
		return 0, 0, err
	}
	if s.before != nil {
		at, err := b.first(s.before, from, to, false)
		if err != nil {
			return 0, 0, err
		}
		if at > 0 {
			to = at - 1
		}
	}
	if s.after != nil {
		at, err := b.first(s.after, from, to, true)
		if err != nil {
			return 0, 0, err
		}
		from = cmp.Or(at, to)
	}
	return from, to, nil
}

// judge returns a Miss if the line requires another number of entries than were found (seen).
func (s *saw) judge(b *Branch, text string, seen []int) error {
	l := s.line
	switch {
	case l.Negated && len(seen) > 0:
		line := strings.Replace(strings.TrimPrefix(l.Text, "!"), s.pattern.Text, text, 1)
		return b.Back(l, false, "no "+strings.TrimSpace(strings.TrimPrefix(line, " saw")),
			fmt.Sprintf("%s, the first at #%d:\n%s", times(len(seen)), seen[0], b.Line(b.run.t.At(seen[0]))), seen...)
	case l.Negated, len(seen) == s.want, !s.exact && len(seen) > s.want:
		return nil
	case s.exact:
		text += ", exactly " + times(s.want)
	case s.counted:
		text += ", at least " + times(s.want)
	}
	got := "none"
	if len(seen) > 0 {
		got = times(len(seen))
	}
	return b.Back(l, false, text, got, seen...)
}

func times(n int) string {
	if n == 1 {
		return "one"
	}
	return strconv.Itoa(n)
}

// first returns the Seq of the first entry after from, up to and including to, that matches p. It returns 0 if none
// matches. If after is set, a permission request counts only when it is answered; first then returns the Seq of the
// answer.
func (b *Branch) first(p *language.Pattern, from, to int, after bool) (int, error) {
	x, err := bind(p, b)
	if err != nil {
		return 0, err
	}
	for e := range b.run.t.Between(from+1, to) {
		if !x.counts(e) {
			continue
		}
		if after && p.Of.Answered {
			for a := range b.run.t.Between(e.Seq+1, to) {
				if a.Source == transcript.Editor && a.Kind == transcript.Response && a.Ref == e.Seq {
					return a.Seq, nil
				}
			}
			return 0, nil
		}
		return e.Seq, nil
	}
	return 0, nil
}

func compileText(l *Line) Step {
	k := lookerOf(l)
	re := l.Tilde()
	return func(_ context.Context, b *Branch) error {
		from, to, err := k.window(b, b.Session())
		if err != nil {
			return l.Fault(err)
		}
		text := b.run.said(b.Session(), from, to)
		if re.MatchString(text) == l.Negated {
			return b.Back(l, true, strings.TrimPrefix(l.Text, "! "), fmt.Sprintf("the text %q", transcript.Clip(text, 600)))
		}
		return nil
	}
}

func compileDescendants(l *Line) Step {
	if s := l.One(0, "none"); s != "none" {
		return l.Usage(l.Rest[0].Column, "write \"descendants none\"")
	}
	l.Scenario().Orphans = true
	return func(ctx context.Context, b *Branch) error {
		patience, cancel := context.WithTimeout(ctx, dying)
		defer cancel()
		for {
			var lines []string
			agent, err := b.Alive(l)
			if err != nil {
				return err
			}
			for _, d := range agent.Descendants() {
				if !stateOf(b.run, func(s *state) bool { return s.residents[d.PID] }) && !d.Dying() {
					lines = append(lines, fmt.Sprintf("pid %d: %s", d.PID, d.Command))
				}
			}
			switch {
			case len(lines) == 0:
				return nil
			case patience.Err() != nil:
				return b.Back(l, true, "no process that the agent started since the first prompt", strings.Join(lines, "\n"))
			}
			// The kernel does not notify this process of the end of another process's child, so it polls.
			select {
			case <-time.After(10 * time.Millisecond):
			case <-patience.Done():
			}
		}
	}
}

// dying is how long a process may take to exit after it was told to. The agent must stop promptly, not instantly, and
// a helper may first have to end other processes.
const dying = time.Second

// CountResidents records which of the agent's processes run before the first prompt.
func (r *run) CountResidents() {
	r.change(func(s *state) {
		if !r.scenario.Orphans || s.residents != nil || s.agent == nil {
			return
		}
		s.residents = map[int]bool{}
		for _, d := range s.agent.Descendants() {
			s.residents[d.PID] = true
		}
	})
}

func compileStderr(l *Line) Step {
	re := l.Tilde()
	return func(_ context.Context, b *Branch) error {
		text := b.run.stderr(1 << 20)
		if re.MatchString(text) == l.Negated {
			return b.Back(l, false, strings.TrimPrefix(l.Text, "! "), fmt.Sprintf("%q", transcript.Clip(text, 600)))
		}
		return nil
	}
}
