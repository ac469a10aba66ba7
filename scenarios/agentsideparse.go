package scenarios

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/mistake"
)

// agentScript compiles an agent-side script.
func (p *parser) agentScript() (*AgentScript, error) {
	s := &AgentScript{Capabilities: map[string]string{}, RulesOff: map[string]string{}}
	var comment []string
	for p.next < len(p.lines) {
		l, err := p.agentLine(&comment)
		if err != nil {
			return nil, err
		}
		if l == nil {
			continue
		}
		switch name := l.name.raw(); name {
		case "role":
		case "tag":
			for i := range l.words {
				tag, m := l.agentWord(i, "a tag")
				if m != nil {
					return nil, m
				}
				p.scenario.Tags = append(p.scenario.Tags, tag)
			}
		case "timeout":
			text, m := l.agentWord(0, "a duration")
			if m != nil {
				return nil, m
			}
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				return nil, l.mistake(l.words[0].column, "a duration is a number with a unit, such as 250ms or 2s", "%q is no duration", text)
			}
			s.Timeout = d
		case "capabilities":
			for _, w := range l.words {
				key, _, value, ok := w.cut("=")
				text, literal := value.literal()
				if !ok || !literal {
					return nil, l.mistake(w.column, "usage: capabilities PATH=VALUE…", "%q is no capability", w.raw())
				}
				s.Capabilities[key] = text
			}
		case "rules":
			off, m := l.agentWord(0, "off")
			if m == nil && off != "off" || len(l.words) != 3 {
				return nil, l.mistake(l.name.column, "usage: rules off ID 'reason'", "rules turns one rule off, with a reason")
			}
			id, m := l.agentWord(1, "a rule")
			if m != nil {
				return nil, m
			}
			s.RulesOff[id], _ = l.words[2].literal()
		case "on":
			h, err := p.agentHandler(l)
			if err != nil {
				return nil, err
			}
			s.Handlers = append(s.Handlers, *h)
		case "check":
			c, err := l.agentCheck(comment)
			if err != nil {
				return nil, err
			}
			s.Checks = append(s.Checks, *c)
		case "sent", "answered", "left-running":
			if len(s.Checks) == 0 {
				return nil, l.mistake(l.name.column, "open a check first: check SLUG", "%s stands in no check", name)
			}
			x, m := l.agentExpectation()
			if m != nil {
				return nil, m
			}
			last := &s.Checks[len(s.Checks)-1]
			last.Lines = append(last.Lines, *x)
		default:
			known := []string{"tag", "timeout", "capabilities", "rules", "on", "check", "sent", "answered", "left-running"}
			hint := mistake.Nearest(name, known)
			if slices.Contains(agentActNames(), name) {
				hint = "acts stand inside a handler: on EVENT { … }"
			}
			return nil, l.mistake(l.name.column, hint, "unknown command %q", name)
		}
		comment = nil
	}
	if len(s.Handlers) == 0 && len(s.Checks) == 0 {
		return nil, &Mistake{File: p.file, Line: 1, Message: "the script does nothing", Hint: "acp-test help agent-side explains the language"}
	}
	return s, nil
}

// agentLine is the next line that says something; nil for a comment or an empty
// one.
func (p *parser) agentLine(comment *[]string) (*line, error) {
	number, text := p.next+1, strings.TrimRight(p.lines[p.next], " \t\r")
	p.next++
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "#") {
		note := strings.TrimSpace(strings.TrimLeft(trimmed, "#"))
		if p.scenario.Title == "" {
			p.scenario.Title = note
		}
		*comment = append(*comment, note)
		return nil, nil
	}
	if trimmed == "" {
		*comment = nil
		return nil, nil
	}
	l, _, err := p.line(number, text)
	return l, err
}

func (l *line) agentWord(i int, what string) (string, *Mistake) {
	if i >= len(l.words) {
		return "", l.mistake(len(l.text)+1, "", "%s is missing", what)
	}
	s, ok := l.words[i].literal()
	if !ok {
		return "", l.mistake(l.words[i].column, "", "%s must not hold a variable", what)
	}
	return s, nil
}

func (p *parser) agentHandler(l *line) (*AgentHandler, error) {
	if !l.opens {
		return nil, l.mistake(len(l.text), "usage: on EVENT [~ 'REGEXP'] [nth=N] { … }", "on needs a block { }")
	}
	name, m := l.agentWord(0, "an event")
	if m != nil {
		return nil, m
	}
	event, ok := agentEvent(name)
	if !ok {
		return nil, l.mistake(l.words[0].column, "an event is a method of the editor, or prompt, cancel, new, load, resume, close, connect or eof", "%q is no event", name)
	}
	h := &AgentHandler{Line: l.number, Event: event}
	for i := 1; i < len(l.words); i++ {
		w, _ := l.words[i].literal()
		switch {
		case w == "~" && i+1 < len(l.words):
			text, m := l.agentWord(i+1, "a regular expression")
			if m != nil {
				return nil, m
			}
			re, err := regexp.Compile(text)
			if err != nil {
				return nil, l.mistake(l.words[i+1].column, "", "bad regular expression: %v", err)
			}
			h.Text = re
			i++
		case strings.HasPrefix(w, "nth="):
			n, err := strconv.Atoi(strings.TrimPrefix(w, "nth="))
			if err != nil || n < 1 {
				return nil, l.mistake(l.words[i].column, "", "nth= takes a number from 1")
			}
			h.Nth = n
		default:
			return nil, l.mistake(l.words[i].column, "usage: on EVENT [~ 'REGEXP'] [nth=N] { … }", "%q is one word too many", l.words[i].raw())
		}
	}
	acts, err := p.agentBlock(l)
	h.Acts = acts
	return h, err
}

// agentBlock reads acts up to the } that closes the block l opened.
func (p *parser) agentBlock(opened *line) ([]AgentAct, error) {
	acts := []AgentAct{}
	var comment []string
	for p.next < len(p.lines) {
		l, err := p.agentLine(&comment)
		switch {
		case err != nil:
			return nil, err
		case l == nil:
			continue
		case l.name.raw() == "}" && !l.name.quoted:
			return acts, nil
		}
		a, err := p.agentAct(l)
		if err != nil {
			return nil, err
		}
		acts = append(acts, *a)
	}
	return nil, opened.mistake(len(opened.text), "", "the block that begins here is not closed")
}

func (p *parser) agentAct(l *line) (*AgentAct, error) {
	name := l.name.raw()
	i := slices.IndexFunc(agentActs(), func(a agentAct) bool { return a.name == name })
	if i < 0 {
		return nil, l.mistake(l.name.column, mistake.Nearest(name, agentActNames()), "unknown act %q", name)
	}
	d := agentActs()[i]
	usage := "usage: " + strings.TrimSpace(d.name+" "+d.args)
	options, m := l.options(d.options...)
	if m != nil {
		return nil, m
	}
	a := &AgentAct{Line: l.number, Name: name, As: l.as, Options: map[string]AgentWord{}}
	for k, w := range options {
		a.Options[k] = AgentWord{w}
	}
	for _, w := range l.words {
		a.Words = append(a.Words, AgentWord{w})
	}
	switch {
	case len(a.Words) < d.min:
		return nil, l.mistake(len(l.text)+1, usage, "%s needs more words", name)
	case len(a.Words) > d.max:
		return nil, l.mistake(l.words[d.max].column, usage, "%q is one word too many", l.words[d.max].raw())
	case l.opens != d.block:
		return nil, l.mistake(len(l.text), usage, "%s takes %s", name, map[bool]string{true: "a block { }", false: "no block"}[d.block])
	case l.as != "" && !d.captures, l.negate:
		return nil, l.mistake(1, usage, "%s gives nothing that could have a name, and cannot be negated", name)
	case d.captures && l.as == "":
		return nil, l.mistake(len(l.text)+1, usage, "%s needs a name: as NAME", name)
	}
	if l.as != "" {
		p.names[l.as] = true
	}
	if d.block {
		var err error
		if a.Body, err = p.agentBlock(l); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (l *line) agentCheck(comment []string) (*AgentCheck, error) {
	c := &AgentCheck{Line: l.number, Title: strings.Join(comment, " ")}
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
			return nil, l.mistake(w.column, "usage: check [REQUIREMENT…] SLUG", "%q is neither a requirement nor a slug", s)
		}
	}
	if c.Slug == "" && len(c.Requirements) > 0 {
		c.Slug = strings.ToLower(c.Requirements[0])
	}
	if c.Slug == "" {
		return nil, l.mistake(len(l.text)+1, "usage: check [REQUIREMENT…] SLUG", "a check needs a name")
	}
	return c, nil
}

func (l *line) agentExpectation() (*AgentExpectation, *Mistake) {
	x := &AgentExpectation{Line: l.number, Text: l.text, Negate: l.negate, What: l.name.raw()}
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
				return nil, l.mistake(l.words[0].column, "", "%q is no method", about)
			}
		} else if !l.p.names[about] {
			return nil, l.mistake(l.words[0].column, "a request gets a name with as NAME", "no request above is named %s", about)
		}
		rest = l.words[1:]
	}
	for _, w := range rest {
		key, op, value, ok := w.cut("!=", "!~", "=", "~")
		if !ok {
			return nil, l.mistake(w.column, "a condition is path=value, path!=value or path~regexp", "%q is no condition", w.raw())
		}
		if key == "count" {
			x.Count, _ = value.literal()
			if !regexp.MustCompile(`^(>=|<=)?\d+$`).MatchString(x.Count) {
				return nil, l.mistake(w.column, "", "count= takes a number, >=N or <=N")
			}
			continue
		}
		if strings.HasSuffix(op, "~") {
			text, _ := value.literal()
			if _, err := regexp.Compile(text); err != nil {
				return nil, l.mistake(w.column, "", "bad regular expression: %v", err)
			}
		}
		x.Fields = append(x.Fields, AgentField{key, op, AgentWord{value}})
	}
	return x, nil
}
