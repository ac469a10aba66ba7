package language

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
)

// Given holds the arguments of an act, after variables were expanded.
type Given struct {
	Words   []string
	Options map[string]string
	// Alias is the name of the request that the act sends, or "".
	Alias string

	body *serve.Block
}

// Number returns the word at index i as a number. The act's usage must declare this word as a number.
func (g Given) Number(i int) int {
	n, _ := strconv.Atoi(g.Words[i]) // the usage check has validated it
	return n
}

// AgentAct returns a command for handlers of a scripted agent, which calls do. args is the usage of the command. Its
// words JSON, N, BYTES, CODE and D each stand for an argument of that form; words joined by | are alternatives.
// Arguments are checked against this usage.
func AgentAct[B any](name, args, summary string, do func(s *serve.Run, g Given) error) *Command[B] {
	c := &Command[B]{Name: name, Group: "agent-acts", Args: args, Summary: summary,
		Act: func(l *Line[B]) func(*serve.Run) error {
			return l.act(strings.Fields(args), do)
		}}
	c.Captures = strings.HasSuffix(args, namedArgs)
	if rest, ok := strings.CutSuffix(args, "{ }"); ok {
		c.Args, c.Blocks = strings.TrimSpace(rest), 1
	}
	return c
}

// ofProcess lists the acts that require an agent with its own process.
var ofProcess = []string{"request", "notify", "result", "error", "stderr", "exit", "die", "fork", "ignore"}

// agentActs returns the commands for handlers: first those of the protocol, then the common ones.
func (d *Dialect[B]) agentActs() []*Command[B] {
	all := slices.Clone(d.AgentActs)
	add := func(name, args, summary string, do func(s *serve.Run, g Given) error) {
		if !d.Remote || !slices.Contains(ofProcess, name) {
			all = append(all, AgentAct[B](name, args, summary, do))
		}
	}
	plain := func(name, args, summary string, do func(s *serve.Run, g Given)) {
		add(name, args, summary, func(s *serve.Run, g Given) error {
			do(s, g)
			return nil
		})
	}
	plain("request", "METHOD JSON [id=JSON] as NAME", "send a request to the editor without waiting for the response",
		func(s *serve.Run, g Given) { s.Request(g.Alias, g.Words[0], g.Words[1], g.Options["id"]) })
	plain("notify", "METHOD JSON", "any notification", func(s *serve.Run, g Given) { s.Notify(g.Words[0], g.Words[1]) })
	plain("await", "NAME|cancel|METHOD [within=D]",
		"wait for the response to request NAME, for a cancel or hang-up, or for a frame of the editor",
		func(s *serve.Run, g Given) {
			within, _ := time.ParseDuration(g.Options["within"]) // without the option: no limit
			s.Await(g.Words[0], within)
		})
	plain("result", "JSON", "answer the request that this handler handles",
		func(s *serve.Run, g Given) { s.Result(g.Words[0]) })
	plain("error", "CODE 'MESSAGE'", "answer the request that this handler handles with an error",
		func(s *serve.Run, g Given) { s.Error(g.Words[0], g.Words[1]) })
	plain("send", "'LINE'", "write a line unchanged", func(s *serve.Run, g Given) { s.Send([]byte(g.Words[0])) })
	add("write", "'BYTES'", "write bytes without a newline; Go escapes such as \\n are replaced",
		func(s *serve.Run, g Given) error {
			text, err := unescape(g.Words[0])
			s.Write([]byte(text))
			return err
		})
	plain("stderr", "'TEXT' [bytes=N]", "write TEXT to stderr, repeated until it fills N bytes",
		func(s *serve.Run, g Given) {
			n, err := strconv.Atoi(g.Options["bytes"])
			if err != nil {
				n = len(g.Words[0])
			}
			s.Stderr(g.Words[0], n)
		})
	add("pause", "D", "let time pass", func(s *serve.Run, g Given) error {
		d, err := time.ParseDuration(g.Words[0])
		if err != nil {
			return err
		}
		return s.Pause(d)
	})
	add("repeat", "N { }", "run the block N times; $I counts from 1",
		func(s *serve.Run, g Given) error { return s.Repeat(g.Number(0), g.body) })
	add("join", "{ }", "write the block with one call", func(s *serve.Run, g Given) error { return s.Join(g.body) })
	add("split", "N { }", "write the block in pieces of N bytes",
		func(s *serve.Run, g Given) error { return s.Split(g.Number(0), g.body) })
	plain("go", "{ }", "run the block while the next lines run", func(s *serve.Run, g Given) { s.Beside(g.body) })
	add("exit", "CODE", "exit with this status", func(s *serve.Run, g Given) error { return s.Exit(g.Number(0)) })
	add("die", "", "kill itself with SIGKILL", func(s *serve.Run, _ Given) error { return s.Die() })
	plain("close", "", "close stdout, or a server's connection, and keep running",
		func(s *serve.Run, _ Given) { s.Close() })
	add("fork", "", "start a child that outlives its parent", func(s *serve.Run, _ Given) error { return s.Fork() })
	plain("ignore", "eof|term", "keep running at the end of the input (eof) or on SIGTERM (term)",
		func(s *serve.Run, g Given) { s.Ignore(g.Words[0]) })
	return all
}

// act checks the arguments of an act against its usage and returns the act's step.
func (l *Line[B]) act(usage []string, do func(*serve.Run, Given) error) func(*serve.Run) error {
	var kinds, keys []string
	checks := map[string]string{}
	most := 0
	for _, u := range usage {
		key, kind, option := strings.Cut(strings.Trim(u, "[]"), "=")
		switch {
		case option:
			keys, checks[key] = append(keys, key), kind
		case u == "as" && l.Alias == "":
			l.Usage(l.End()+1, "%s needs a name: as NAME", l.Name.Raw())
		case u == "as":
		case strings.HasSuffix(u, "…"):
			most += 1000
			kinds = append(kinds, u)
		case u != "NAME" && !strings.ContainsAny(u, "{}"):
			most++
			kinds = append(kinds, u)
		}
	}
	options := l.Options(keys...)
	for i, kind := range kinds {
		l.fits(l.Need(i, kind), kind)
	}
	for key, w := range options {
		l.fits(w, checks[key])
	}
	l.AtMost(most)
	var body *serve.Block
	if len(l.Blocks) > 0 && l.bad == nil {
		body = l.p.acts(l.Blocks[0])
	}
	return func(s *serve.Run) error {
		g := Given{Options: map[string]string{}, Alias: l.Alias, body: body}
		for i, w := range l.Rest {
			text, err := l.expandAct(s, w, kinds[min(i, len(kinds)-1)])
			if err != nil {
				return err
			}
			g.Words = append(g.Words, text)
		}
		for key, w := range options {
			var err error
			if g.Options[key], err = l.expandAct(s, w, checks[key]); err != nil {
				return err
			}
		}
		return do(s, g)
	}
}

// expandAct expands the variables of a word, and checks the result against the word's kind.
func (l *Line[B]) expandAct(s *serve.Run, w script.Word, kind string) (string, error) {
	text, err := s.Expand(w)
	if err == nil && strings.Contains(w.Raw(), "$") && kind != "JSON" {
		if problem := misfit(text, kind); problem != "" {
			err = fmt.Errorf("%s", problem)
		}
	}
	return text, err
}

// fits records a mistake if a word without variables does not have the form of its kind.
func (l *Line[B]) fits(w script.Word, kind string) {
	text, ok := w.Literal()
	if !ok || strings.Contains(text, "$") {
		return
	}
	if problem := misfit(text, kind); problem != "" {
		l.Usage(w.Column, "%s", problem)
	}
}

// misfit returns the reason why a text does not have the form that a usage requires, or "" if it does.
func misfit(text, kind string) string {
	switch kind {
	case "JSON":
		if !json.Valid([]byte(text)) {
			return fmt.Sprintf("%s is not valid JSON", text)
		}
	case "N", "BYTES", "CODE":
		n, err := strconv.Atoi(text)
		if err != nil || n > 1<<30 || n < 0 && kind != "CODE" {
			return fmt.Sprintf("%q is not a number", text)
		}
	case "'BYTES'":
		if _, err := unescape(text); err != nil {
			return err.Error()
		}
	case "D":
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return fmt.Sprintf("%q is no duration", text)
		}
	case "KIND:OPTION…":
		if text != "-" && !strings.Contains(text, ":") {
			return fmt.Sprintf("%q is no option: KIND:ID is expected", text)
		}
	default:
		if choices := strings.Split(kind, "|"); len(choices) > 1 && kind == strings.ToLower(kind) &&
			!slices.Contains(choices, text) {
			return fmt.Sprintf("%q is not one of %s", text, kind)
		}
	}
	return ""
}

// unescape replaces escapes such as \u0000, in Go's syntax, in a text.
func unescape(text string) (string, error) {
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		err = fmt.Errorf("%q has a bad escape", text)
	}
	return out, err
}
