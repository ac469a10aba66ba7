package scenarios

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// bound is a pattern with its variables expanded, for one branch.
type bound struct {
	language.Bound
	run    *run
	text   string
	of     *language.Kind
	fields []boundField
	prompt int // Seq of the prompt that is open where the search begins; 0 if none is
}

type boundField struct {
	path, operator, value string
	regexp                *regexp.Regexp
}

// bind expands the variables of a pattern.
func bind(p *language.Pattern, b *Branch) (*bound, error) {
	x := &bound{run: b.run, text: p.Text, of: p.Of}
	if p.HasArg {
		arg, err := b.Expand(p.Arg)
		if err != nil {
			return nil, err
		}
		x.Arg = arg
	}
	if p.Of.OfRequest() {
		e, ok := b.run.named(x.Arg)
		if !ok {
			return nil, fmt.Errorf("%s has not happened", x.Arg)
		}
		x.Ref = e.Seq
	}
	switch p.Session {
	case "any":
	case "":
		if s := b.Session(); s != nil {
			x.Session = s.ID
		}
	default:
		s := b.Named(p.Session)
		if s == nil {
			return nil, b.NotOpen(p.Session)
		}
		x.Session = s.ID
	}
	for _, f := range p.Fields {
		bf, err := bindField(f, b)
		if err != nil {
			return nil, err
		}
		x.fields = append(x.fields, bf)
	}
	x.text = b.spelled(p)
	if m := b.run.t.At(max(x.Ref, 1)).Method; p.Of.OfRequest() && m != "" {
		x.text = strings.Replace(x.text, " "+p.Arg.Raw(), " to "+m, 1)
	}
	return x, nil
}

// spelled returns the text of a pattern for messages. It expands variables that were set during the run. Variables
// for the run's directories keep their names, because their values differ from run to run.
func (b *Branch) spelled(p *language.Pattern) string {
	words := []script.Word{p.Arg}
	for _, f := range p.Fields {
		words = append(words, f.Value)
	}
	text, rest := "", p.Text
	for _, w := range words {
		for _, part := range w.Parts {
			before, after, ok := strings.Cut(rest, "$"+part.Text)
			if !part.Variable || !ok {
				continue
			}
			value := "$" + part.Text
			if _, err := b.run.Fixed(part.Text); err != nil {
				value, _ = b.Variable(part.Text) // no error: bind has already expanded it
				value = b.run.short(cmp.Or(value, "''"))
			}
			text, rest = text+before+value, after
		}
	}
	return text + rest
}

// isTurn reports whether the pattern matches the end of a turn.
func (x *bound) isTurn() bool { return x.of.Name == "turn" }

// match reports whether an entry has the pattern's kind and session and meets all its conditions.
func (x *bound) match(e transcript.Entry) bool {
	if !x.matchKind(e) {
		return false
	}
	return !slices.ContainsFunc(x.fields, func(f boundField) bool { return !f.match(x.run, e) })
}

func (x *bound) matchKind(e transcript.Entry) bool {
	return x.of.Match(x.Bound, e, x.Session == "" || e.Session == "" || e.Session == x.Session)
}

// match reports whether an entry meets the condition. A * in the path stands for the items of a list. With = or ~, at
// least one item must meet the condition. With != or !~, every item must meet it.
func (f *boundField) match(r *run, e transcript.Entry) bool {
	list, field, any := strings.Cut(f.path, ".*.")
	if !any {
		return f.holds(r.lookup(e, f.path))
	}
	all, _, _ := r.lookup(e, list)
	none := strings.HasPrefix(f.operator, "!")
	for item := range flat(all, list) {
		v := item.Path(field)
		if f.holds(v, v.Text(), v.Exists()) != none {
			return !none
		}
	}
	return none
}

// holds reports whether a value fulfils the condition.
func (f *boundField) holds(v wire.Value, text string, found bool) bool {
	switch f.operator {
	case "?":
		// A null result counts as success, because examples in the specification have it. The rule SHAPE reports a null
		// that is wrong.
		return found && (f.path == "result" || !v.IsNull())
	case "=":
		return found && OneOf(text, f.value)
	case "!=":
		return !found || !OneOf(text, f.value)
	case "~":
		return found && f.regexp.MatchString(text)
	case "!~":
		return !found || !f.regexp.MatchString(text)
	}
	return false
}

// OneOf reports whether text equals one of the values, which are separated by |.
func OneOf(text, values string) bool {
	return text == values || strings.Contains(values, "|") && slices.Contains(strings.Split(values, "|"), text)
}

// lookup returns the value at a path of an entry. It first searches the part of the message that a reader most likely
// means, and then the enclosing parts. The path "text" also finds stderr output.
func (r *run) lookup(e transcript.Entry, path string) (v wire.Value, text string, found bool) {
	switch {
	case path == "raw":
		return wire.Value{}, string(e.Raw), true
	case path == "problem" && e.Problem != "":
		return wire.Value{}, e.Problem, true
	case path == "text" && e.Source == transcript.Stderr:
		return wire.Value{}, string(e.Raw), true
	}
	if text, ok := r.told(e, path); ok {
		return wire.Value{}, text, true
	}
	within, path := r.protocol().Lookup(e, path)
	for _, in := range append(within, e.JSON()) {
		if v := in.Path(path); v.Exists() {
			return v, v.Text(), true
		}
	}
	return wire.Value{}, "", false
}

// expectation converts the pattern to an Expectation for await. taken has the Seqs that other lines of the group have
// matched. The wait ends early when no later entry can match: the turn ended for another reason, or before an event
// that must occur within it.
func (x *bound) expectation(taken map[int]bool) transcript.Expectation {
	expect := transcript.Expect(x.text, func() transcript.Fold {
		unmet := ""
		return func(e transcript.Entry) (transcript.Verdict, string) {
			switch {
			case x.match(e) && taken[e.Seq]:
				unmet = fmt.Sprintf("another line of the group took #%d, and no second entry matched", e.Seq)
				return transcript.Unmet, unmet
			case taken[e.Seq]:
				return transcript.Unmet, unmet
			case x.match(e):
				return x.decide(e)
			}
			if x.of.OfRequest() && e.Kind == transcript.Response && x.matchKind(e) {
				return transcript.Unmeetable, "the response is " + x.run.protocol().Brief(e)
			}
			if x.endsWith(e) {
				return transcript.Unmeetable, fmt.Sprintf("the turn ended first, at #%d, with %s", e.Seq, x.run.stopReason(e))
			}
			return transcript.Unmet, unmet
		}
	})
	expect.Outlives = x.of.Outlives
	return expect
}

// counts reports whether saw counts an entry. Unlike await, saw skips an entry with another argument, such as another
// stop reason.
func (x *bound) counts(e transcript.Entry) bool {
	if !x.match(e) {
		return false
	}
	v, _ := x.decide(e)
	return v == transcript.Met
}

// decide judges an entry of the right kind for await. For some kinds, the first such entry must match: for example,
// the first end of the turn must have the wanted stop reason. If it does not, no later entry can match.
func (x *bound) decide(e transcript.Entry) (transcript.Verdict, string) {
	switch {
	case x.isTurn() && !x.wantsEnd(x.run.stopReason(e)):
		return transcript.Unmeetable, "the turn ended with " + x.run.protocol().Brief(e)
	case x.of.Name == "exit" && x.Arg != "":
		if got := exitStatus(e); got != x.Arg {
			return transcript.Unmeetable, "the agent ended with " + got
		}
	}
	return transcript.Met, ""
}

// wantsEnd reports whether the pattern allows this stop reason. The pattern lists the allowed reasons. If it lists
// none, or "any", every reason except an error is allowed.
func (x *bound) wantsEnd(reason string) bool {
	if x.Arg == "" {
		return reason != "error"
	}
	return OneOf(reason, x.Arg) || reason != "error" && OneOf("any", x.Arg)
}

// endsWith reports whether e ends the turn in which a match was required. It returns false for patterns that entries
// after the turn may also match, such as state updates.
func (x *bound) endsWith(e transcript.Entry) bool {
	if x.prompt == 0 || e.Ref != x.prompt || !x.run.endsTurn(e) {
		return false
	}
	return x.of.Inner || x.of.InnerArg != nil && x.of.InnerArg(x.Arg)
}

// awaited returns the kind of entry that the pattern waits for. It includes the stop reason of a turn, but not the
// text of a message.
func (x *bound) awaited() string {
	if x.isTurn() {
		return strings.TrimSpace("the end of a turn " + x.Arg)
	}
	return x.of.Name
}

// exitStatus returns the exit status in an entry as text, such as "0", "1" or "SIGKILL".
func exitStatus(e transcript.Entry) string {
	v := e.JSON()
	if s := v.Get("signal").Str(); s != "" {
		return s
	}
	code, _ := v.Get("code").Int()
	return strconv.FormatInt(code, 10)
}
