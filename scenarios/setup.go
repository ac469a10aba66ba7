package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// setup is what set-up lines have said so far.
type setup struct {
	permits []mockclient.Rule
	env     map[string]string
	home    map[string][]byte
	files   mockclient.Files
	hold    []string
	needs   []string // capabilities of the agent
	services
	ids mockclient.IDs
	// policy declares what the agent does where the protocol leaves a choice.
	policy map[string]string
	// session is the answer to the latest session/new, for needs agent:modes.
	session transcript.Entry
}

func setupCommands() []*Command {
	return []*Command{
		{
			Name: "client", Group: "setup", Args: "CAPABILITY=VALUE…",
			Summary: "change what the editor advertises",
			Detail: "A capability is a path below clientCapabilities: fs.readTextFile=false,\n" +
				"terminal=false, elicitation.form={}. VALUE is JSON; none removes it. Must stand\n" +
				"before the agent is initialized. The default is fs both ways and a terminal.",
			Compile: compileClient,
		}, {
			Name: "permit", Group: "setup", Args: "CHOICE [kind=K] [title=GLOB] [offers=O] [nth=N] [after=N] [delay=D] [late] [twice]",
			Summary: "say how permission requests are answered from now on",
			Detail: "CHOICE is allow_once, allow_always, reject_once, reject_always, cancelled, hold\n" +
				"(until answer), never, error, error:CODE or option:ID. The conditions choose the\n" +
				"requests; the line given last is asked first. late keeps the request open when\n" +
				"the turn is cancelled, twice answers two times: both break the protocol on\n" +
				"purpose. Without permit a permission is rejected.",
			Compile: compilePermit,
		}, {
			Name: "hold", Group: "setup", Args: "METHOD…",
			Summary: "leave requests of the agent open until answer",
			Compile: func(l *line) (func(context.Context, *branch) error, error) {
				if _, m := l.need(0, "a method"); m != nil {
					return nil, m
				}
				return func(_ context.Context, b *branch) error {
					for _, w := range l.words {
						method := w.Raw()
						b.run.change(func(s *state) {
							s.setup.hold = append(s.setup.hold, method)
							s.allExcused = true // the script may leave it open for good
							if s.editor != nil {
								s.editor.SetHold(method, true)
							}
						})
					}
					return nil
				}, nil
			},
		}, {
			Name: "files", Group: "setup", Args: "missing=error|empty [invalid=error|replace]",
			Summary: "say how the editor answers for files that are missing or not UTF-8",
			Detail: "With missing=empty also agents that read a file before they write it can make\n" +
				"a new one: some take the error for a failure of their own.",
			Compile: compileFiles,
		}, {
			Name: "buffer", Group: "setup", Args: "FILE @SOURCE|TEXT",
			Summary: "open an unsaved buffer over a file: reads see its text",
			Compile: compileFile(openBuffer),
		}, {
			Name: "env", Group: "setup", Args: "NAME=VALUE…",
			Summary: "set variables in the agent's environment",
			Detail:  "Must stand before the agent starts.",
			Compile: func(l *line) (func(context.Context, *branch) error, error) {
				for _, w := range l.words {
					if _, _, _, ok := w.Cut("="); !ok {
						return nil, l.usage(w.Column, "%q is no NAME=VALUE", w.Raw())
					}
				}
				return func(_ context.Context, b *branch) error {
					for _, w := range l.words {
						key, _, value, _ := w.Cut("=")
						v, err := b.expand(value)
						if err != nil {
							return l.runtime(err)
						}
						b.run.change(func(s *state) { s.setup.env[key] = v })
					}
					return nil
				}, nil
			},
		}, {
			Name: "home", Group: "setup", Args: "FILE [@SOURCE]",
			Summary: "put a file of the archive into the agent's HOME",
			Detail:  "Must stand before the agent starts.",
			Compile: compileHome,
		}, {
			Name: "ids", Group: "setup", Args: "from=N | strings=PREFIX | list=ID,ID…",
			Summary: "choose the ids of the editor's requests",
			Detail:  "The default counts from 1. list takes JSON values. Must stand before the agent starts.",
			Compile: compileIDs,
		}, {
			Name: "policy", Group: "setup", Args: "NAME=VALUE…",
			Summary: "say what the agent promises where the protocol leaves a choice",
			Detail:  "concurrent-prompts=reject|queue|replace.",
			Compile: func(l *line) (func(context.Context, *branch) error, error) {
				opts, m := l.options("concurrent-prompts")
				if m != nil {
					return nil, m
				}
				if m := l.atMost(0); m != nil {
					return nil, m
				}
				return func(_ context.Context, b *branch) error {
					for k, w := range opts {
						b.run.change(func(s *state) { s.setup.policy[k] = w.Raw() })
					}
					return nil
				}, nil
			},
		}, {
			Name: "rules", Group: "setup", Args: "off ID… 'REASON'",
			Summary: "turn rules off for this scenario",
			Compile: func(l *line) (func(context.Context, *branch) error, error) {
				n := len(l.words)
				if n < 3 || l.words[0].Raw() != "off" || !l.words[n-1].Quoted {
					return nil, l.usage(l.Name.Column, "rules off needs ids and a quoted reason")
				}
				for _, w := range l.words[1 : n-1] {
					l.p.scenario.decl.rulesOff[w.Raw()] = l.words[n-1].Raw()
				}
				return nil, nil
			},
		}, {
			Name: "golden", Group: "setup", Args: "off|exact|canonical",
			Summary: "say how the run is compared with its golden; the default is canonical",
			Compile: func(l *line) (func(context.Context, *branch) error, error) {
				s, m := l.one(0, "off, exact or canonical")
				if m != nil {
					return nil, m
				}
				if !slices.Contains([]string{"off", "exact", "canonical"}, s) {
					return nil, l.usage(l.words[0].Column, "%q is no kind of golden", s)
				}
				l.p.scenario.decl.golden = s
				return nil, nil
			},
		}, {
			Name: "timeout", Group: "setup", Args: "DURATION",
			Summary: "give this scenario at least so long",
			Compile: func(l *line) (func(context.Context, *branch) error, error) {
				w, m := l.need(0, "a duration")
				if m != nil {
					return nil, m
				}
				d, m := l.duration(w)
				if m != nil {
					return nil, m
				}
				l.p.scenario.decl.timeout = d
				return nil, nil
			},
		},
	}
}

// early is the mistake of a set-up line that comes too late.
func (l *line) early(b *branch, what string) error {
	if b.run.running() == nil {
		return nil
	}
	return l.runtime(fmt.Errorf("%s must be set before the agent starts", what))
}

func compileClient(l *line) (func(context.Context, *branch) error, error) {
	type change struct {
		path  string
		value any
	}
	var changes []change
	if _, m := l.need(0, "a capability"); m != nil {
		return nil, m
	}
	for _, w := range l.words {
		key, _, value, ok := w.Cut("=")
		text, literal := value.Literal()
		if !ok || !literal {
			return nil, l.usage(w.Column, "%q is no CAPABILITY=VALUE", w.Raw())
		}
		var v any
		if text != "none" {
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return nil, l.usage(value.Column, "%q is no JSON value", text)
			}
		}
		changes = append(changes, change{key, v})
	}
	return func(_ context.Context, b *branch) error {
		if b.run.isReady() {
			return l.runtime(fmt.Errorf("capabilities must be set before the agent is initialized"))
		}
		b.run.change(func(s *state) {
			for _, c := range changes {
				s.client.Set(c.path, c.value)
			}
		})
		return nil
	}, nil
}

func compilePermit(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("kind", "title", "offers", "nth", "after", "delay")
	if m != nil {
		return nil, m
	}
	choice, m := l.one(0, "a choice")
	if m != nil {
		return nil, m
	}
	answer, err := mockclient.ParseAnswer(choice)
	if err != nil {
		return nil, l.usage(l.words[0].Column, "%v", err)
	}
	for _, w := range l.words[1:] {
		switch w.Raw() {
		case "late":
			answer.AfterCancel = true
		case "twice":
			answer.Twice = true
		default:
			return nil, l.usage(w.Column, "%q is no condition of permit", w.Raw())
		}
	}
	rule := mockclient.Rule{}
	for key, w := range opts {
		text := w.Raw()
		switch key {
		case "kind":
			rule.Kind = text
		case "title":
			rule.Title = text
		case "offers":
			rule.Offers = text
		case "nth", "after":
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return nil, l.usage(w.Column, "%s= is a number", key)
			}
			if key == "nth" {
				rule.Nth = n
			} else {
				rule.After = n
			}
		case "delay":
			d, m := l.duration(w)
			if m != nil {
				return nil, m
			}
			answer.Delay = d
		}
	}
	rule.Answer = answer
	if err := rule.Check(); err != nil {
		return nil, l.usage(l.Name.Column, "%v", err)
	}
	return func(_ context.Context, b *branch) error {
		b.run.change(func(s *state) {
			s.setup.permits = append([]mockclient.Rule{rule}, s.setup.permits...)
			if answer.AfterCancel || answer.Twice || answer.Never || answer.Option != "" || answer.Result != nil {
				s.allExcused = true
			}
			if s.editor != nil {
				s.editor.SetPolicy(s.setup.permissions())
			}
		})
		return nil
	}, nil
}

// permissions is the policy the permit lines make.
func (s *setup) permissions() *mockclient.Policy {
	return &mockclient.Policy{Rules: slices.Clone(s.permits)}
}

func compileFiles(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("missing", "invalid")
	if m != nil {
		return nil, m
	}
	if m := l.atMost(0); m != nil {
		return nil, m
	}
	missing, invalid := opts["missing"].Raw(), opts["invalid"].Raw()
	if !slices.Contains([]string{"", "error", "empty"}, missing) || !slices.Contains([]string{"", "error", "replace"}, invalid) {
		return nil, l.usage(l.Name.Column, "missing= is error or empty, invalid= is error or replace")
	}
	return func(_ context.Context, b *branch) error {
		if err := l.early(b, "files"); err != nil {
			return err
		}
		b.run.change(func(s *state) {
			s.setup.files.MissingEmpty, s.setup.files.ReplaceInvalid = missing == "empty", invalid == "replace"
		})
		return nil
	}, nil
}

func openBuffer(b *branch, _ *line, name, text string) error {
	b.run.change(func(s *state) { s.setup.files.Open(b.run.inWork(name), text) })
	return nil
}

func compileHome(l *line) (func(context.Context, *branch) error, error) {
	name, m := l.one(0, "a file")
	if m != nil {
		return nil, m
	}
	if m := l.atMost(2); m != nil {
		return nil, m
	}
	from := name
	if len(l.words) > 1 {
		from = strings.TrimPrefix(l.words[1].Raw(), "@")
	}
	data, ok := l.p.scenario.archived(from)
	if !ok {
		return nil, l.mistake(l.words[len(l.words)-1].Column, "add it below as -- "+from+" --", "the archive holds no file %q", from)
	}
	return func(_ context.Context, b *branch) error {
		if err := l.early(b, "files of HOME"); err != nil {
			return err
		}
		text, err := script.ExpandText(from, string(data), b.run.fixed)
		if err != nil {
			return err
		}
		b.run.change(func(s *state) { s.setup.home[name] = []byte(text) })
		return nil
	}, nil
}

func compileIDs(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("from", "strings", "list")
	if m != nil {
		return nil, m
	}
	if len(opts) != 1 || len(l.words) > 0 {
		return nil, l.usage(l.Name.Column, "one of from=, strings= and list= is needed")
	}
	var ids mockclient.IDs
	for key, w := range opts {
		text := w.Raw()
		switch key {
		case "from":
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, l.usage(w.Column, "from= is a whole number")
			}
			ids = mockclient.CountingIDs(n)
		case "strings":
			ids = mockclient.StringIDs(text)
		case "list":
			var list []json.RawMessage
			if err := json.Unmarshal([]byte("["+text+"]"), &list); err != nil {
				return nil, l.usage(w.Column, "list= takes JSON values")
			}
			ids = mockclient.ListedIDs(wireIDs(list)...)
		}
	}
	return func(_ context.Context, b *branch) error {
		if err := l.early(b, "ids"); err != nil {
			return err
		}
		b.run.change(func(s *state) { s.setup.ids = ids })
		return nil
	}, nil
}

// timeoutOf is the longer of the scenario's own deadline and the one given: an
// agent that needs its time needs it here, too.
func (s *Scenario) timeoutOf(d time.Duration) time.Duration {
	return max(s.decl.timeout, d)
}
