package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/mockclient/canary"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// services are what the editor offers beside files: terminals, elicitation,
// MCP servers.
type services struct {
	terminals mockclient.Terminals
	elicits   []mockclient.ElicitRule
	broken    bool           // a server that cannot be started
	stdio     bool           // a canary over stdio
	http      *canary.Server // a canary over http
}

// canaryName is the name of the MCP server a scenario gives to the agent.
const canaryName = "canary"

// token is what the canary sings; it only has to be told from other text.
func (r *run) token() string { return "canary-" + strconv.FormatInt(r.engine.Seed, 10) }

func (r *run) canaryLog() string { return filepath.Join(r.box.temp, "canary.log") }

// services returns what set-up lines have said of them so far.
func (r *run) services() (given services) {
	r.change(func(s *state) { given = s.setup.services })
	return given
}

// mcpServers are the servers given in session/new.
func (r *run) mcpServers() []any {
	out := []any{}
	s := r.services()
	if s.broken {
		out = append(out, canary.Stdio("broken", r.token(), r.canaryLog(), filepath.Join(r.box.temp, "no-such-program")))
	}
	if s.stdio {
		out = append(out, canary.Stdio(canaryName, r.token(), r.canaryLog(), r.engine.Self, "canary"))
	}
	if s.http != nil {
		name := canaryName
		if s.stdio {
			name += "_http"
		}
		out = append(out, s.http.Entry(name))
	}
	return out
}

func serviceCommands() []*Command {
	return []*Command{
		{
			Name: "terminal", Group: "setup", Args: "real [allow=GLOB]… | scripted [match=GLOB] [output=TEXT] [exit=N] [signal=SIG] [hold]",
			Summary: "choose what terminal/* does",
			Detail: "A scripted terminal runs nothing; without a line for its command it ends at once\n" +
				"with status 0 and no output. A real one runs on a pty what allow= permits; without\n" +
				"allow= that is every command. The default is scripted. Must stand before the\n" +
				"agent starts.",
			Compile: compileTerminal,
		}, {
			Name: "elicit", Group: "setup", Args: "accept|decline|cancel|hold|error [mode=form|url] [message=GLOB] [nth=N] [content=JSON]",
			Summary: "advertise elicitation and say how it is answered",
			Detail: "accept without content= fills the form with its defaults, else with the smallest\n" +
				"values its schema allows. The line given last is asked first.",
			Compile: compileElicit,
		}, {
			Name: "mcp", Group: "setup", Args: "canary [stdio|http] | broken",
			Summary: "give the agent an MCP server whose tool sings",
			Detail: "Its name is canary, its tool canary_sing{text}. Let the model call it with\n" +
				"tool: mcp, args: {server: canary, tool: canary_sing, args: {text: …}}, and ask\n" +
				"canary called. Given both ways, the one over http is canary_http. broken adds a\n" +
				"server whose program does not exist. Must stand before the session is opened.",
			Compile: compileMCP,
		}, {
			Name: "canary", Group: "back", Args: "initialized|called [text=TEXT]", Negatable: true, Effect: true,
			Summary: "ask whether the agent reached the MCP server it was given",
			Detail:  "The token given in env or headers must have arrived as well.",
			Compile: compileCanary,
		}, {
			Name: "same-history", Group: "back", Args: "REF|live REF",
			Summary: "compare two accounts of a conversation",
			Detail: "REF is the name of a session load; live is what happened before the load. The\n" +
				"difference is shown as a conversation.",
			Compile: compileSameHistory,
		},
	}
}

func compileTerminal(l *line) (func(context.Context, *branch) error, error) {
	var allow []script.Word
	var rest []script.Word
	for _, w := range l.words {
		if key, _, value, ok := w.Cut("="); ok && key == "allow" {
			allow = append(allow, value)
			continue
		}
		rest = append(rest, w)
	}
	l.words = rest
	opts, m := l.options("match", "output", "exit", "signal")
	if m != nil {
		return nil, m
	}
	kind, m := l.one(0, "real or scripted")
	if m != nil {
		return nil, m
	}
	command := mockclient.ScriptedCommand{Match: opts["match"].Raw(), Signal: opts["signal"].Raw()}
	if w, ok := opts["exit"]; ok {
		n, err := strconv.Atoi(w.Raw())
		if err != nil {
			return nil, l.usage(w.Column, "exit= is a number")
		}
		command.Exit = n
	}
	for _, w := range l.words[1:] {
		if w.Raw() != "hold" {
			return nil, l.usage(w.Column, "%q is nothing a terminal could do", w.Raw())
		}
		command.Hold = true
	}
	switch {
	case kind != "real" && kind != "scripted":
		return nil, l.usage(l.words[0].Column, "%q is no kind of terminal", kind)
	case kind == "real" && (len(opts) > 0 || command.Hold), kind == "scripted" && allow != nil:
		return nil, l.usage(l.words[0].Column, "that does not go with a %s terminal", kind)
	}
	return func(_ context.Context, b *branch) error {
		if err := l.early(b, "terminals"); err != nil {
			return err
		}
		if kind == "real" {
			globs := []string{"*"}
			if allow != nil {
				globs = nil
			}
			for _, w := range allow {
				glob, err := b.expand(w)
				if err != nil {
					return l.runtime(err)
				}
				globs = append(globs, glob)
			}
			b.run.change(func(s *state) {
				s.setup.terminals.Real, s.setup.terminals.Allow = true, append(s.setup.terminals.Allow, globs...)
			})
			return nil
		}
		output, err := b.expand(opts["output"])
		if err != nil {
			return l.runtime(err)
		}
		c := command
		c.Output = output
		b.run.change(func(s *state) { s.setup.terminals.Script = append(s.setup.terminals.Script, c) })
		return nil
	}, nil
}

func compileElicit(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("mode", "message", "nth", "content")
	if m != nil {
		return nil, m
	}
	choice, m := l.one(0, "a choice")
	if m != nil {
		return nil, m
	}
	if m := l.atMost(1); m != nil {
		return nil, m
	}
	rule := mockclient.ElicitRule{Mode: opts["mode"].Raw(), Message: opts["message"].Raw()}
	switch choice {
	case "accept":
		rule.Answer.Accept = true
	case "decline":
		rule.Answer.Decline = true
	case "cancel":
		rule.Answer.Cancel = true
	case "hold":
		rule.Answer.Hold = true
	case "error":
		rule.Answer.Error = &mockclient.RPCError{Code: -32603, Message: "the client failed, as the scenario says"}
	default:
		return nil, l.usage(l.words[0].Column, "%q is no answer%s", choice, suggestion(choice, []string{"accept", "decline", "cancel", "hold", "error"}))
	}
	if w, ok := opts["nth"]; ok {
		n, err := strconv.Atoi(w.Raw())
		if err != nil || n < 1 {
			return nil, l.usage(w.Column, "nth= is a number from 1")
		}
		rule.Nth = n
	}
	if w, ok := opts["content"]; ok {
		if err := json.Unmarshal([]byte(w.Raw()), &rule.Answer.Content); err != nil {
			return nil, l.usage(w.Column, "content= is a JSON object")
		}
	}
	return func(_ context.Context, b *branch) error {
		b.run.change(func(s *state) {
			for _, mode := range []string{"form", "url"} {
				if !s.ready && !s.ended && (rule.Mode == "" || rule.Mode == mode) {
					s.client.Set("elicitation."+mode, map[string]any{})
				}
			}
			s.setup.elicits = append([]mockclient.ElicitRule{rule}, s.setup.elicits...)
			if s.editor != nil {
				s.editor.SetElicitation(&mockclient.Elicitation{Rules: s.setup.elicits})
			}
		})
		return nil
	}, nil
}

func compileMCP(l *line) (func(context.Context, *branch) error, error) {
	what, m := l.one(0, "canary or broken")
	if m != nil {
		return nil, m
	}
	if m := l.atMost(2); m != nil {
		return nil, m
	}
	if what == "broken" && len(l.words) == 1 {
		return func(_ context.Context, b *branch) error {
			b.run.change(func(s *state) { s.setup.broken = true })
			return nil
		}, nil
	}
	if what != "canary" {
		return nil, l.usage(l.words[0].Column, "%q is no MCP server", what)
	}
	kind := "stdio"
	if len(l.words) > 1 {
		kind = l.words[1].Raw()
	}
	if kind != "stdio" && kind != "http" {
		return nil, l.usage(l.words[1].Column, "%q is no transport of the canary", kind)
	}
	return func(_ context.Context, b *branch) error {
		r := b.run
		if kind == "stdio" {
			if r.engine.Self == "" {
				return l.runtime(fmt.Errorf("the canary over stdio is this program, whose path the engine was not told"))
			}
			r.change(func(s *state) { s.setup.stdio = true })
			return nil
		}
		if given := r.services(); given.http == nil {
			server, err := canary.Start(r.token())
			if err != nil {
				return fmt.Errorf("starting the canary: %w", err)
			}
			r.change(func(s *state) { s.setup.http = server })
			if r.engine.Isolate && r.running() != nil {
				return &skipped{"an isolated agent reaches the canary over http only if it is set up before the agent starts"}
			}
		}
		return nil
	}, nil
}

func compileCanary(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("text")
	if m != nil {
		return nil, m
	}
	what, m := l.one(0, "initialized or called")
	if m != nil {
		return nil, m
	}
	if what != "initialized" && what != "called" {
		return nil, l.usage(l.words[0].Column, "%q is nothing a canary notices", what)
	}
	return func(_ context.Context, b *branch) error {
		r := b.run
		var seen []canary.Sighting
		given := r.services()
		if given.stdio {
			var err error
			if seen, err = canary.Read(r.canaryLog()); err != nil {
				return l.runtime(err)
			}
		}
		if given.http != nil {
			seen = append(seen, given.http.Sightings()...)
		}
		text, err := b.expand(opts["text"])
		if err != nil {
			return l.runtime(err)
		}
		found := false
		for _, s := range seen {
			found = found || s.What == what && s.Token && (text == "" || s.Text == text)
		}
		if found == l.Negated {
			return b.back(l, true, "canary "+what, fmt.Sprintf("what it noticed is %+v", seen))
		}
		return nil
	}, nil
}

func compileSameHistory(l *line) (func(context.Context, *branch) error, error) {
	var refs []string
	for i := range l.words {
		s, m := l.one(i, "live or the name of a load")
		if m != nil {
			return nil, m
		}
		if s != "live" {
			if s, m = l.ref(i); m != nil {
				return nil, m
			}
		}
		refs = append(refs, s)
	}
	if len(refs) != 2 || refs[1] == "live" {
		return nil, l.usage(l.Name.Column, "two accounts are needed, the second one a load")
	}
	return func(_ context.Context, b *branch) error {
		r := b.run
		var told [2]mockclient.History
		second, err := r.referred(l, refs[1])
		if err != nil {
			return err
		}
		for i, ref := range refs {
			first, last := 1, second.Seq-1
			if ref != "live" {
				load, err := r.referred(l, ref)
				if err != nil {
					return err
				}
				first, last = load.Seq, r.answerTo(load.Seq)
			}
			told[i] = mockclient.FoldHistory(r.t.Between(first, last), second.Session)
		}
		if diff := mockclient.Same(told[0], told[1]); diff != "" {
			err := b.back(l, true, "the same conversation", "another one")
			err.(*miss).failure.Diff = r.plain(diff)
			return err
		}
		return nil
	}, nil
}

// answerTo is the Seq of the answer to a request, or the last entry.
func (r *run) answerTo(seq int) int {
	for e := range r.t.From(seq) {
		if e.Source == transcript.Agent && e.Kind == transcript.Response && e.Ref == seq {
			return e.Seq
		}
	}
	return r.t.Len()
}

// places masks what differs from machine to machine, longest first, since one
// may begin like another.
func (r *run) places() []golden.Replacement {
	names := map[string]string{r.box.root: "$RUN"}
	if r.engine.Self != "" {
		names[r.engine.Self] = "$SELF"
	}
	if http := r.services().http; http != nil {
		names[http.Entry(canaryName).URL] = "$CANARY"
	}
	var out []golden.Replacement
	for _, place := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return len(b) - len(a) }) {
		out = append(out, golden.Replacement{Pattern: regexp.MustCompile(regexp.QuoteMeta(place) + `\b`), With: "$" + names[place]})
	}
	return out
}
