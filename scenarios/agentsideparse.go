package scenarios

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios/script"
)

// agentScript compiles an agent-side script.
func (p *parser) agentScript(lines []*script.Line) *AgentScript {
	s := &AgentScript{Capabilities: map[string]string{}, RulesOff: map[string]string{}}
	p.agentLines(lines, func(l *line) error { return p.agentTop(s, l) })
	if len(s.Handlers) == 0 && len(s.Checks) == 0 && len(p.mistakes) == 0 {
		p.mistakes = append(p.mistakes, &Mistake{File: p.file, Line: 1, Message: "the script does nothing", Hint: "acp-test help agent-side explains the language"})
	}
	return s
}

// agentLines hands over the lines that say something, each with the comment
// above it.
func (p *parser) agentLines(lines []*script.Line, do func(*line) error) {
	var comment []string
	for _, node := range lines {
		switch node.Kind {
		case script.Comment:
			p.scenario.Title = cmp.Or(p.scenario.Title, node.Note())
			comment = append(comment, node.Note())
			continue
		case script.Command:
			l := &line{Line: node, p: p, words: node.Words, as: node.As.Raw(), comment: strings.Join(comment, " ")}
			if err := do(l); err != nil {
				p.failed(node, err)
			}
		case script.Broken:
			p.suppose(node)
		}
		comment = nil
	}
}

// agentTop compiles a line outside of handlers.
func (p *parser) agentTop(s *AgentScript, l *line) error {
	switch name := l.Name.Raw(); name {
	case "role":
	case "tag":
		for i := range l.words {
			tag, m := l.agentWord(i, "a tag")
			if m != nil {
				return m
			}
			p.scenario.Tags = append(p.scenario.Tags, tag)
		}
	case "timeout":
		text, m := l.agentWord(0, "a duration")
		if m != nil {
			return m
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return l.mistake(l.words[0].Column, "a duration is a number with a unit, such as 250ms or 2s", "%q is no duration", text)
		}
		s.Timeout = d
	case "capabilities":
		for _, w := range l.words {
			key, _, value, ok := w.Cut("=")
			text, literal := value.Literal()
			if !ok || !literal {
				return l.mistake(w.Column, "usage: capabilities PATH=VALUE…", "%q is no capability", w.Raw())
			}
			s.Capabilities[key] = text
		}
	case "rules":
		off, m := l.agentWord(0, "off")
		if m == nil && off != "off" || len(l.words) != 3 {
			return l.mistake(l.Name.Column, "usage: rules off ID 'reason'", "rules turns one rule off, with a reason")
		}
		id, m := l.agentWord(1, "a rule")
		if m != nil {
			return m
		}
		s.RulesOff[id], _ = l.words[2].Literal()
	case "on":
		h, err := p.agentHandler(l)
		if err != nil {
			return err
		}
		s.Handlers = append(s.Handlers, *h)
	case "check":
		c, err := l.agentCheck()
		if err != nil {
			return err
		}
		s.Checks = append(s.Checks, *c)
	case "sent", "answered", "left-running":
		if len(s.Checks) == 0 {
			return l.mistake(l.Name.Column, "open a check first: check SLUG", "%s stands in no check", name)
		}
		x, m := l.agentExpectation()
		if m != nil {
			return m
		}
		last := &s.Checks[len(s.Checks)-1]
		last.Lines = append(last.Lines, *x)
	default:
		known := []string{"tag", "timeout", "capabilities", "rules", "on", "check", "sent", "answered", "left-running"}
		hint := mistake.Nearest(name, known)
		if slices.Contains(agentActNames(), name) {
			hint = "acts stand inside a handler: on EVENT { … }"
		}
		return l.mistake(l.Name.Column, hint, "unknown command %q", name)
	}
	return nil
}

func (l *line) agentWord(i int, what string) (string, *Mistake) {
	if i >= len(l.words) {
		return "", l.mistake(l.End()+1, "", "%s is missing", what)
	}
	s, ok := l.words[i].Literal()
	if !ok {
		return "", l.mistake(l.words[i].Column, "", "%s must not hold a variable", what)
	}
	return s, nil
}

func (p *parser) agentHandler(l *line) (*AgentHandler, error) {
	if len(l.Blocks) != 1 {
		return nil, l.mistake(l.End(), "usage: on EVENT [~ 'REGEXP'] [nth=N] { … }", "on needs a block { }")
	}
	name, m := l.agentWord(0, "an event")
	if m != nil {
		return nil, m
	}
	event, ok := agentEvent(name)
	if !ok {
		return nil, l.mistake(l.words[0].Column, "an event is a method of the editor, or prompt, cancel, new, load, resume, close, connect or eof", "%q is no event", name)
	}
	h := &AgentHandler{Line: l.Number, Event: event}
	for i := 1; i < len(l.words); i++ {
		w, _ := l.words[i].Literal()
		switch {
		case w == "~" && i+1 < len(l.words):
			text, m := l.agentWord(i+1, "a regular expression")
			if m != nil {
				return nil, m
			}
			re, err := regexp.Compile(text)
			if err != nil {
				return nil, l.mistake(l.words[i+1].Column, "", "bad regular expression: %v", err)
			}
			h.Text = re
			i++
		case strings.HasPrefix(w, "nth="):
			n, err := strconv.Atoi(strings.TrimPrefix(w, "nth="))
			if err != nil || n < 1 {
				return nil, l.mistake(l.words[i].Column, "", "nth= takes a number from 1")
			}
			h.Nth = n
		default:
			return nil, l.mistake(l.words[i].Column, "usage: on EVENT [~ 'REGEXP'] [nth=N] { … }", "%q is one word too many", l.words[i].Raw())
		}
	}
	h.Acts = p.agentBlock(l.Blocks[0])
	return h, nil
}

// agentBlock compiles the acts of a block.
func (p *parser) agentBlock(lines []*script.Line) []AgentAct {
	acts := []AgentAct{}
	p.agentLines(lines, func(l *line) error {
		a, err := p.agentAct(l)
		if err == nil {
			acts = append(acts, *a)
		}
		return err
	})
	return acts
}

func (p *parser) agentAct(l *line) (*AgentAct, error) {
	name := l.Name.Raw()
	i := slices.IndexFunc(agentActs(), func(a agentAct) bool { return a.name == name })
	if i < 0 {
		return nil, l.mistake(l.Name.Column, mistake.Nearest(name, agentActNames()), "unknown act %q", name)
	}
	d := agentActs()[i]
	usage := "usage: " + strings.TrimSpace(d.name+" "+d.args)
	options, m := l.options(d.options...)
	if m != nil {
		return nil, m
	}
	a := &AgentAct{Line: l.Number, Name: name, As: l.as, Options: map[string]AgentWord{}}
	for k, w := range options {
		a.Options[k] = AgentWord{w}
	}
	for _, w := range l.words {
		a.Words = append(a.Words, AgentWord{w})
	}
	switch {
	case len(a.Words) < d.min:
		return nil, l.mistake(l.End()+1, usage, "%s needs more words", name)
	case len(a.Words) > d.max:
		return nil, l.mistake(l.words[d.max].Column, usage, "%q is one word too many", l.words[d.max].Raw())
	case (len(l.Blocks) == 1) != d.block || len(l.Blocks) > 1:
		return nil, l.mistake(l.End(), usage, "%s takes %s", name, map[bool]string{true: "a block { }", false: "no block"}[d.block])
	case l.as != "" && !d.captures, l.Negated:
		return nil, l.mistake(1, usage, "%s gives nothing that could have a name, and cannot be negated", name)
	case d.captures && l.as == "":
		return nil, l.mistake(l.End()+1, usage, "%s needs a name: as NAME", name)
	}
	if l.as != "" {
		p.names[l.as] = true
	}
	if d.block {
		a.Body = p.agentBlock(l.Blocks[0])
	}
	return a, nil
}

func (l *line) agentCheck() (*AgentCheck, error) {
	c := &AgentCheck{Line: l.Number, Title: l.comment}
	for i, w := range l.words {
		s, m := l.agentWord(i, "a requirement or a slug")
		switch {
		case m != nil:
			return nil, m
		case requirementID.MatchString(s):
			c.Requirements = append(c.Requirements, s)
		case slugForm.MatchString(s) && i == len(l.words)-1:
			c.Slug = s
		default:
			return nil, l.mistake(w.Column, "usage: check [REQUIREMENT…] SLUG", "%q is neither a requirement nor a slug", s)
		}
	}
	if c.Slug == "" && len(c.Requirements) > 0 {
		c.Slug = strings.ToLower(c.Requirements[0])
	}
	if c.Slug == "" {
		return nil, l.mistake(l.End()+1, "usage: check [REQUIREMENT…] SLUG", "a check needs a name")
	}
	return c, nil
}

func (l *line) agentExpectation() (*AgentExpectation, *Mistake) {
	x := &AgentExpectation{Line: l.Number, Text: l.Text, Negate: l.Negated, What: l.Name.Raw()}
	rest := l.words
	if x.What != "left-running" {
		about, m := l.agentWord(0, "a method or a name")
		if m != nil {
			return nil, m
		}
		x.About = about
		if x.What == "sent" {
			if long, ok := agentEvent(about); ok {
				x.About = long
			} else {
				return nil, l.mistake(l.words[0].Column, "", "%q is no method", about)
			}
		} else if !l.p.names[about] {
			return nil, l.mistake(l.words[0].Column, "a request gets a name with as NAME", "no request above is named %s", about)
		}
		rest = l.words[1:]
	}
	for _, w := range rest {
		key, op, value, ok := w.Cut("!=", "!~", "=", "~")
		if !ok {
			return nil, l.mistake(w.Column, "a condition is path=value, path!=value or path~regexp", "%q is no condition", w.Raw())
		}
		if key == "count" {
			x.Count, _ = value.Literal()
			if !regexp.MustCompile(`^(>=|<=)?\d+$`).MatchString(x.Count) {
				return nil, l.mistake(w.Column, "", "count= takes a number, >=N or <=N")
			}
			continue
		}
		if strings.HasSuffix(op, "~") {
			text, _ := value.Literal()
			if _, err := regexp.Compile(text); err != nil {
				return nil, l.mistake(w.Column, "", "bad regular expression: %v", err)
			}
		}
		x.Fields = append(x.Fields, AgentField{key, op, AgentWord{value}})
	}
	return x, nil
}
