package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/script"
)

func setupCommands() []*Command {
	return []*Command{
		{
			Name: "protocol", Group: "setup", Passive: true, Args: "NAME…",
			Summary: "say in the first line which protocols the scenario is about; the default is " + language.Default,
			Compile: func(l *Line) Step {
				l.Need(0, "the name of a protocol")
				for i := range l.Rest {
					l.One(i, "the name of a protocol")
				}
				if len(l.Scenario().Checks) > 0 {
					return l.Usage(1, "protocol must come before all other commands")
				}
				l.Scenario().Several = len(l.Rest) > 1
				return nil
			},
		}, {
			Name: "env", Group: "setup", Alone: true, Args: "NAME=VALUE…",
			Summary: "set variables in the agent's environment",
			Detail:  "Must stand before the agent starts.",
			Compile: func(l *Line) Step {
				l.Starts("the agent gets a variable")
				for _, w := range l.Rest {
					if _, _, _, ok := w.Cut("="); !ok {
						return l.Usage(w.Column, "%q is no NAME=VALUE", w.Raw())
					}
				}
				return func(_ context.Context, b *Branch) error {
					for _, w := range l.Rest {
						key, _, value, _ := w.Cut("=")
						v, err := b.Expand(value)
						if err != nil {
							return l.Fault(err)
						}
						b.run.change(func(s *state) { s.setup.env[key] = v })
					}
					return nil
				}
			},
		}, {
			Name: "home", Group: "setup", Alone: true, Args: "FILE [@SOURCE]",
			Summary: "put a file of the archive into the agent's HOME",
			Detail:  "Must stand before the agent starts.",
			Compile: compileHome,
		}, {
			Name: "rules", Group: "setup", Args: "off ID… 'REASON'",
			Summary: "turn rules off for this scenario",
			Compile: func(l *Line) Step {
				n := len(l.Rest)
				if n < 3 || l.Rest[0].Raw() != "off" || !l.Rest[n-1].Quoted {
					return l.Usage(l.Name.Column, "rules off needs ids and a quoted reason")
				}
				for _, w := range l.Rest[1 : n-1] {
					l.Scenario().RulesOff[w.Raw()] = l.Rest[n-1].Raw()
				}
				return nil
			},
		}, {
			Name: "alone", Group: "setup", Alone: true, Args: "'REASON'",
			Summary: "run in a process of the agent that no other scenario used",
			Detail: "Scenarios share the agent's processes where possible. A scenario with commands about\n" +
				"the process, its environment or its HOME gets its own process even without this line.",
			Compile: func(l *Line) Step {
				l.One(0, "a reason")
				l.AtMost(1)
				return nil
			},
		}, {
			Name: "golden", Group: "setup", Passive: true, Args: "off|exact|canonical",
			Summary: "say how the run is compared with its golden; the default is canonical",
			Compile: func(l *Line) Step {
				s := l.One(0, "off, exact or canonical")
				if !slices.Contains([]string{"off", "exact", "canonical"}, s) {
					return l.Usage(l.Rest[0].Column, "%q is no kind of golden", s)
				}
				l.Scenario().Golden = s
				return nil
			},
		}, {
			Name: "further", Group: "setup", Passive: true, Args: "off 'REASON'",
			Summary: "leave out the plain turn that follows the last line",
			Detail: "After the last line of a scenario that went well, and some silence, acp-test plays one\n" +
				"more plain turn in the session that was prompted last. Its check, `further`, has class\n" +
				"warn. acp-test leaves the turn out if no session is open and idle.",
			Compile: func(l *Line) Step {
				if len(l.Rest) != 2 || l.Rest[0].Raw() != "off" || !l.Rest[1].Quoted {
					return l.Usage(l.Name.Column, "further needs off and a quoted reason")
				}
				l.Scenario().Further = l.Rest[1].Raw()
				return nil
			},
		}, {
			Name: "timeout", Group: "setup", Args: "DURATION",
			Summary: "give this scenario at least this much time",
			Compile: func(l *Line) Step {
				w := l.Need(0, "a duration")
				d := l.Duration(w)
				l.Scenario().Timeout = d
				return nil
			},
		},
	}
}

// Early returns a mistake if the agent is already running. It is for set-up lines, which must come before the agent's
// start. what names the setting.
func Early(l *Line, b *Branch, what string) error {
	if b.Agent() == nil {
		return nil
	}
	return l.Fault(fmt.Errorf("%s must be set before the agent starts", what))
}

func compileHome(l *Line) Step {
	name := l.One(0, "a file")
	l.AtMost(2)
	l.Starts("the agent gets a file of settings, which may name programs")
	from := name
	if len(l.Rest) > 1 {
		from = strings.TrimPrefix(l.Rest[1].Raw(), "@")
	}
	data, ok := l.Scenario().Archived(from)
	if !ok {
		return l.Mistake(l.Rest[len(l.Rest)-1].Column, "add it below as -- "+from+" --", "the archive holds no file %q", from)
	}
	return func(_ context.Context, b *Branch) error {
		if err := Early(l, b, "files of HOME"); err != nil {
			return err
		}
		text, err := script.ExpandText(from, string(data), b.Fixed)
		if err != nil {
			return err
		}
		b.run.change(func(s *state) { s.setup.home[name] = []byte(text) })
		return nil
	}
}
