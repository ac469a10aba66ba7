package words

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/wire"
)

func compileHold(l *scenarios.Line) scenarios.Step {
	method, from := l.One(0, "a method"), 1
	once := len(l.Rest) > 1 && l.Rest[1].Raw() == "once"
	if once {
		from++
	}
	conditions := scenarios.Where(l, from)
	return func(_ context.Context, b *scenarios.Branch) error {
		is, err := conditions(b)
		if err != nil {
			return l.Fault(err)
		}
		if all, taken := is, new(atomic.Bool); once {
			is = func(params wire.Value) bool { return all(params) && taken.CompareAndSwap(false, true) }
		}
		c := of(b)
		c.change(func() {
			if once {
				is = c.heldOnce(method, is)
			}
			c.hold = append(c.hold, held{method, is})
			if c.editor != nil {
				c.editor.HoldIf(method, is)
			}
		})
		b.ExcuseAll() // the script may never answer the request
		return nil
	}
}

// heldOnce returns a condition of a hold for one request. The request of an earlier hold may be in the log, but not yet
// handled: then the earlier condition still takes that request.
func (c *client) heldOnce(method string, is func(wire.Value) bool) func(wire.Value) bool {
	earlier := c.once[method]
	if c.once == nil {
		c.once = map[string]func(wire.Value) bool{}
	}
	c.once[method] = is
	if earlier == nil {
		return is
	}
	return func(params wire.Value) bool { return earlier(params) || is(params) }
}

func compileRefuse(l *scenarios.Line) scenarios.Step {
	method, on := l.One(0, "a method"), len(l.Rest) < 2
	if !on {
		l.Choice(1, "end", "off")
	}
	l.AtMost(2)
	return func(_ context.Context, b *scenarios.Branch) error {
		c := of(b)
		c.change(func() {
			if c.refuse == nil {
				c.refuse = map[string]bool{}
			}
			c.refuse[method] = on
			if c.editor != nil {
				c.editor.Refuse(method, on)
			}
		})
		return nil
	}
}

func compilePolicy(l *scenarios.Line) scenarios.Step {
	busy, ok := l.Options("concurrent-prompts")["concurrent-prompts"]
	if !ok || !slices.Contains(agents.Busy, busy.Raw()) {
		return l.Usage(l.Name.Column, "concurrent-prompts= must be one of %s", strings.Join(agents.Busy, ", "))
	}
	l.DeclareBusy(busy.Raw())
	l.AtMost(0)
	return nil
}

func compileClient(l *scenarios.Line) scenarios.Step {
	type change struct {
		path  string
		value any
	}
	var changes []change
	l.Need(0, "a capability")
	given := l.Rest
	next := given[0].Is("next")
	if next {
		l.Need(1, "a capability")
		given = given[1:]
	}
	for _, w := range given {
		key, _, value, ok := w.Cut("=")
		text, literal := value.Literal()
		if !ok || !literal {
			return l.Usage(w.Column, "%q does not have the form CAPABILITY=VALUE", w.Raw())
		}
		var v any
		if text != "none" {
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return l.Usage(value.Column, "%q is not a JSON value", text)
			}
		}
		changes = append(changes, change{key, v})
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		if b.Ready() && !next {
			return l.Fault(fmt.Errorf("capabilities must be set before the agent is initialized"))
		}
		of(b).change(func() {
			of(b).offers = of(b).offers.Clone() // the agent that runs was told others
			for _, c := range changes {
				of(b).offers.Set(c.path, c.value)
			}
		})
		return nil
	}
}

// adding compiles a line whose word makes the editor add members to all its messages.
func adding(
	word string, add func(v *schema.Version, method string, result bool, raw []byte) []byte,
) func(*scenarios.Line) scenarios.Step {
	return func(l *scenarios.Line) scenarios.Step {
		l.AtMost(0)
		return func(_ context.Context, b *scenarios.Branch) error {
			if err := scenarios.Early(l, b, word); err != nil {
				return err
			}
			of(b).change(func() { of(b).adds = add })
			return nil
		}
	}
}

func compileEscapes(l *scenarios.Line) scenarios.Step {
	l.AtMost(0)
	return func(_ context.Context, b *scenarios.Branch) error {
		if err := scenarios.Early(l, b, "escapes"); err != nil {
			return err
		}
		of(b).change(func() { of(b).escapes = true })
		return nil
	}
}

func compilePermit(l *scenarios.Line) scenarios.Step {
	opts := l.Options("kind", "title", "about", "offers", "nth", "after", "delay", "remember")
	choice := l.One(0, "a choice")
	answer, err := mockclient.ParseAnswer(choice)
	if err != nil {
		return l.Usage(l.Rest[0].Column, "%v", err)
	}
	for _, w := range l.Rest[1:] {
		switch w.Raw() {
		case "late":
			answer.AfterCancel = true
		case "twice":
			answer.Twice = true
		default:
			return l.Usage(w.Column, "%q is not an option of permit: use late, twice or one with =", w.Raw())
		}
	}
	rule := mockclient.Rule{Kind: opts["kind"].Raw(), Title: opts["title"].Raw(), About: opts["about"].Raw(),
		Offers: opts["offers"].Raw()}
	for key, to := range map[string]*int{"nth": &rule.Nth, "after": &rule.After} {
		if w, ok := opts[key]; ok {
			*to = l.Int(w, 0, "%s= is a number", key)
		}
	}
	if w, ok := opts["delay"]; ok {
		answer.Delay = l.Duration(w)
	}
	remember := mockclient.RememberNothing
	if w, ok := opts["remember"]; ok {
		memories := map[string]mockclient.Memory{"tool": mockclient.RememberTool, "session": mockclient.RememberSession}
		remember = memories[w.Raw()]
		if remember == mockclient.RememberNothing || !strings.HasSuffix(choice, "_always") {
			return l.Usage(w.Column, "remember= must be tool or session, and CHOICE must end in _always")
		}
	}
	rule.Answer = answer
	if err := rule.Check(); err != nil {
		return l.Usage(l.Name.Column, "%v", err)
	}
	return func(ctx context.Context, b *scenarios.Branch) error {
		c := of(b)
		c.Settle(ctx) // earlier requests get the earlier answers
		c.change(func() {
			c.permits = append([]mockclient.Rule{rule}, c.permits...)
			c.remember = max(c.remember, remember)
			if c.editor != nil {
				c.editor.SetPolicy(c.policy())
			}
		})
		if answer.AfterCancel || answer.Twice || answer.Never || answer.Option != "" || answer.Result != nil {
			b.ExcuseAll()
		}
		return nil
	}
}

// policy returns the editor's answers to permission requests, as the permit lines have set them.
func (c *client) policy() *mockclient.Policy {
	return &mockclient.Policy{Rules: slices.Clone(c.permits), Remember: c.remember}
}

func compileFiles(l *scenarios.Line) scenarios.Step {
	opts := l.Options("missing", "invalid")
	l.AtMost(0)
	missing, invalid := opts["missing"].Raw(), opts["invalid"].Raw()
	if !slices.Contains([]string{"", "error", "empty", "needed"}, missing) ||
		!slices.Contains([]string{"", "error", "replace"}, invalid) {
		return l.Usage(l.Name.Column, "missing= must be error, empty or needed; invalid= must be error or replace")
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		if err := scenarios.Early(l, b, "files"); err != nil {
			return err
		}
		of(b).change(func() {
			files := &of(b).files
			files.MissingEmpty = missing == "empty" || missing == "needed" && b.Lacks("write_file:create") != ""
			files.ReplaceInvalid = invalid == "replace"
		})
		return nil
	}
}

func openBuffer(b *scenarios.Branch, _ *scenarios.Line, name, text string) error {
	of(b).change(func() { of(b).files.Open(b.InWork(name), text) })
	return nil
}

func compileIDs(l *scenarios.Line) scenarios.Step {
	opts := l.Options("from", "strings", "list")
	theirs := len(l.Rest) == 1 && l.Rest[0].Is("theirs")
	if len(opts)+len(l.Rest) != 1 || len(opts) == 0 && !theirs {
		return l.Usage(l.Name.Column, "give exactly one of from=, strings=, list= or theirs")
	}
	var ids mockclient.IDs
	for key, w := range opts {
		text := w.Raw()
		switch key {
		case "from":
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return l.Usage(w.Column, "from= is a whole number")
			}
			ids = mockclient.CountingIDs(n)
		case "strings":
			ids = mockclient.StringIDs(text)
		case "list":
			var raw []json.RawMessage
			if err := json.Unmarshal([]byte("["+text+"]"), &raw); err != nil {
				return l.Usage(w.Column, "list= takes JSON values")
			}
			ids = mockclient.ListedIDs(lists.Map(raw, func(id json.RawMessage) wire.ID { return wire.ID(id) })...)
		}
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		if err := scenarios.Early(l, b, "ids"); err != nil {
			return err
		}
		of(b).change(func() { of(b).ids, of(b).theirIDs = ids, theirs })
		return nil
	}
}

// compileSystem compiles a line that sets the system prompt of sessions.
func compileSystem(l *scenarios.Line) scenarios.Step {
	l.AtMost(2)
	text, mode := l.One(0, "a text or none"), "append"
	if len(l.Rest) > 1 {
		mode = l.Choice(1, "mode of the system prompt", "override")
	}
	var given map[string]any
	if text != "none" || mode == "override" {
		given = map[string]any{"mode": mode, "content": []any{map[string]any{"type": "text", "text": text}}}
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		of(b).change(func() { of(b).system = given })
		return nil
	}
}

func compileTerminal(l *scenarios.Line) scenarios.Step {
	allow := l.Every("allow")
	opts := l.Options("match", "output", "exit", "signal")
	kind := l.One(0, "real or scripted")
	if kind == "real" {
		l.Starts("the editor runs the commands that the agent requests")
	}
	command := mockclient.ScriptedCommand{Match: opts["match"].Raw(), Signal: opts["signal"].Raw()}
	if w, ok := opts["exit"]; ok {
		command.Exit = l.Int(w, math.MinInt, "exit= is a number")
	}
	for _, w := range l.Rest[1:] {
		if w.Raw() != "hold" {
			return l.Usage(w.Column, "%q is not an option of terminal: use hold or one with =", w.Raw())
		}
		command.Hold = true
	}
	switch {
	case kind != "real" && kind != "scripted":
		return l.Usage(l.Rest[0].Column, "%q is not a kind of terminal: use real or scripted", kind)
	case kind == "real" && (len(opts) > 0 || command.Hold), kind == "scripted" && allow != nil:
		return l.Usage(l.Rest[0].Column, "a %s terminal does not take these options (real takes only allow=)", kind)
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		if err := scenarios.Early(l, b, "terminals"); err != nil {
			return err
		}
		if kind == "real" {
			globs := []string{"*"}
			if allow != nil {
				globs = nil
			}
			for _, w := range allow {
				glob, err := b.Expand(w)
				if err != nil {
					return l.Fault(err)
				}
				globs = append(globs, glob)
			}
			of(b).change(func() {
				t := &of(b).terminals
				t.Real, t.Allow = true, append(t.Allow, globs...)
			})
			return nil
		}
		output, err := b.Expand(opts["output"])
		if err != nil {
			return l.Fault(err)
		}
		c := command
		c.Output = output
		of(b).change(func() { of(b).terminals.Script = append(of(b).terminals.Script, c) })
		return nil
	}
}

func compileElicit(l *scenarios.Line) scenarios.Step {
	opts := l.Options("mode", "message", "nth", "content")
	choice := l.One(0, "a choice")
	l.AtMost(1)
	rule := mockclient.ElicitRule{Mode: opts["mode"].Raw(), Message: opts["message"].Raw()}
	switch choice {
	case "accept":
		rule.Answer.Accept = true
	case "decline":
		rule.Answer.Decline = true
	case "cancel":
		rule.Answer.Cancel = true
	case "later":
		rule.Answer.Result = map[string]any{"action": "_later"}
	case "hold":
		rule.Answer.Hold = true
	case "error":
		rule.Answer.Error = &mockclient.RPCError{Code: -32603, Message: "the client failed, as the scenario says"}
	default:
		return l.Usage(l.Rest[0].Column, "%q is no answer%s", choice,
			mistake.Meant(choice, []string{"accept", "decline", "cancel", "later", "hold", "error"}))
	}
	if w, ok := opts["nth"]; ok {
		rule.Nth = l.Int(w, 1, "nth= is a number from 1")
	}
	if w, ok := opts["content"]; ok {
		if err := json.Unmarshal([]byte(w.Raw()), &rule.Answer.Content); err != nil {
			return l.Usage(w.Column, "content= must be a JSON object")
		}
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		ready, c := b.Ready(), of(b)
		c.change(func() {
			for _, mode := range []string{"form", "url"} {
				if !ready && (rule.Mode == "" || rule.Mode == mode) {
					c.offers.Set("elicitation."+mode, map[string]any{})
				}
			}
			c.elicits = append([]mockclient.ElicitRule{rule}, c.elicits...)
			if c.editor != nil {
				c.editor.SetElicitation(&mockclient.Elicitation{Rules: c.elicits})
			}
		})
		return nil
	}
}
