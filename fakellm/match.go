package fakellm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
)

// match is the result of matching a request: its lane, its place in the script
// and its reply.
type match struct {
	lane   string
	prompt *Prompt // nil if the request contains no known prompt
	index  int     // number of the prompt, from 1; 0: unknown
	step   int
	reply  *Reply // nil if nothing matched, or for the built-in reply of a lane
	turn   int    // number of the turn in the script, from 1; 0 for a lane
	why    string // the reason why nothing matched
	near   string // closest reply, with the condition that failed
}

// key returns a name for the place in the script that a request asks for. If an agent sends a request again, the
// retry has the same key.
func (p match) key(run string) string {
	k := "p" + strconv.Itoa(p.index) + "s" + strconv.Itoa(p.step)
	if p.lane != LaneMain {
		k = p.lane + "_" + k
	}
	if run != "" {
		k = run + "_" + k
	}
	return k
}

// find returns the reply that a request gets. Only the content of the request decides.
func (s *Server) find(r *request) match {
	m := match{lane: LaneMain, step: 1}
	prompts := s.known()
	at := -1
	if len(prompts) > 0 {
		m.prompt, at = findPrompt(prompts, r)
		if m.prompt != nil {
			m.index = m.prompt.Index
		}
	} else {
		m.index, at = r.turns()
	}
	if at >= 0 && at < len(r.items) {
		m.step = r.stepsAfter(at) + 1
	}
	f := &facts{r: r, prompt: m.prompt}
	if !s.lane(&m, f, len(prompts) > 0) {
		s.turn(&m, f)
	}
	return m
}

// lane reports whether a side lane answers the request, and records the lane in m.
func (s *Server) lane(m *match, f *facts, registered bool) bool {
	off := map[string]bool{}
	own := map[string]*Lane{}
	for _, l := range s.lanes {
		if len(l.When) == 0 && slices.Contains(builtIn, l.Name) {
			if own[l.Name] == nil {
				own[l.Name], off[l.Name] = l, l.Main
			}
			continue
		}
		if !f.holds(l.When) {
			continue
		}
		if l.Main {
			return false
		}
		m.lane, m.reply = l.Name, choose(&l.Reply, f)
		return true
	}
	name := ""
	switch {
	case f.r.wantJSON && !off[LaneSchema]:
		name = LaneSchema
	case len(f.r.tools) == 0 && !off[LaneNoTools] && registered && s.aside(m, f):
		name = LaneNoTools
	default:
		return false
	}
	m.lane = name
	if l := own[name]; l != nil {
		m.reply = choose(&l.Reply, f)
	}
	return true
}

// aside reports whether a request without tools is a side job and not part of the conversation. An agent whose tools
// are configured offers tools in every request of its conversation, so such a request is a side job. For other
// agents, the text must also read like a side job.
func (s *Server) aside(m *match, f *facts) bool {
	if s.cfg.Tools != nil || m.prompt == nil {
		return true
	}
	head := f.r.systemText() + "\n" + strings.ReplaceAll(f.text("user"), m.prompt.Text, "")
	return sideJob(head)
}

func sideJob(text string) bool {
	text = strings.ToLower(text[:min(len(text), 2000)])
	return slices.ContainsFunc([]string{"title", "summar", "classif", "topic", "categor", "name for this", "name the ",
		"suggest"},
		func(word string) bool { return strings.Contains(text, word) })
}

// turn finds the reply to a request that belongs to the conversation, and records it in m.
func (s *Server) turn(m *match, f *facts) {
	turns := s.cfg.Script.Turns
	if s.cfg.Improvise != nil {
		made, err := NewScript(s.cfg.Improvise(f.text("user")))
		if err != nil {
			m.why = err.Error()
			return
		}
		turns, m.index = made.Turns, 1
	}
	switch {
	case m.prompt != nil && m.prompt.Reply != "" && m.step == 1:
		m.reply = &Reply{Steps: []Step{{Kind: StepText, Chunks: []string{m.prompt.Reply}}}}
		return
	case m.index == 0:
		m.why = "the request contains the text of none of this scenario's prompts"
		m.near = s.nearestPrompt(f)
		return
	case m.index > len(turns):
		m.why = fmt.Sprintf("prompt %d has no replies: the script has %s", m.index,
			printable.Plural(len(turns), "turn", "turns"))
		return
	}
	t := &turns[m.index-1]
	if m.step > len(t.Replies) {
		m.lane = LaneAfter
		for _, l := range s.lanes {
			if l.Name == LaneAfter {
				m.reply = choose(&l.Reply, f)
				break
			}
		}
		return
	}
	r := &t.Replies[m.step-1]
	m.turn = m.index
	if m.reply = choose(r, f); m.reply == nil {
		m.why = fmt.Sprintf("the conditions (when) of reply %d to prompt %d do not hold", m.step, m.index)
		m.near = s.near(r, f)
	}
}

// choose returns nil if the guard of r does not hold. Otherwise it returns r or, if r has alternatives, the first of
// them whose guard holds.
func choose(r *Reply, f *facts) *Reply {
	if !f.holds(r.When) {
		return nil
	}
	if len(r.Alternatives) == 0 {
		return r
	}
	for i := range r.Alternatives {
		if c := choose(&r.Alternatives[i], f); c != nil {
			return c
		}
	}
	return nil
}

// near describes the reply whose guard came closest to matching, and the conditions that failed.
func (s *Server) near(r *Reply, f *facts) string {
	best, ratio := "", -1.0
	var look func(*Reply)
	look = func(r *Reply) {
		held := 0
		var misses []string
		for _, c := range r.When {
			if f.check(c) {
				held++
				continue
			}
			misses = append(misses, fmt.Sprintf("%s, but %s is %q", c, c.Field, clip(f.text(c.Field), 80)))
		}
		if q := float64(held) / float64(max(1, len(r.When))); len(misses) > 0 && q > ratio {
			ratio = q
			best = fmt.Sprintf("%s:%d: %d of %s hold; wanted %s", s.cfg.Script.Name, r.Line, held,
				printable.Plural(len(r.When), "condition", "conditions"), strings.Join(misses, "; "))
		}
		for i := range r.Alternatives {
			look(&r.Alternatives[i])
		}
	}
	look(r)
	return best
}

// nearestPrompt describes the registered prompt that shares the most words with the user's text in the request.
func (s *Server) nearestPrompt(f *facts) string {
	said := lists.Set(strings.Fields(f.text("user")))
	best, most := "", 0
	for _, p := range s.known() {
		n := lists.Count(strings.Fields(p.Text), func(w string) bool { return said[w] })
		if n > most {
			best, most = fmt.Sprintf("prompt %d %q shares %s with the user's text %q", p.Index, clip(p.Text, 80),
				printable.Plural(n, "word", "words"), clip(f.text("user"), 80)), n
		}
	}
	return best
}

// findPrompt returns the prompt whose text occurs last in the user's part of the conversation, and the index of the
// item with that text. The item may contain more text, because agents wrap prompts and add text before and after
// them.
func findPrompt(prompts []Prompt, r *request) (*Prompt, int) {
	for i := len(r.items) - 1; i >= 0; i-- {
		if r.items[i].role != roleUser {
			continue
		}
		if p := lastIn(prompts, r.items[i].text); p != nil {
			return nth(prompts, p, r.items[:i+1]), i
		}
	}
	// A prompt without text, such as a lone image, cannot be found in a request. If the last prompt sent is such a
	// prompt, assume that the request belongs to it.
	if n := len(prompts); n > 0 && strings.TrimSpace(prompts[n-1].Text) == "" {
		if turns, from := r.turns(); turns > 0 {
			return &prompts[n-1], from
		}
	}
	return nil, -1
}

// lastIn returns the prompt whose text ends last in s. If several end at the same position, it returns the longest.
func lastIn(prompts []Prompt, s string) *Prompt {
	var best *Prompt
	end, length := 0, 0
	s = squeeze(s)
	for i := range prompts {
		t := squeeze(prompts[i].Text)
		at := strings.LastIndex(s, t)
		if t == "" || at < 0 {
			continue
		}
		if e := at + len(t); best == nil || e > end || e == end && len(t) > length {
			best, end, length = &prompts[i], e, len(t)
		}
	}
	return best
}

// clip shortens text for a message to about n characters on one line.
func clip(s string, n int) string {
	if s = squeeze(s); utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}

// squeeze replaces each run of white space in s by one space, so that texts can be compared.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// nth chooses, among the prompts with the same text as p, the one that a request belongs to. Within a session, it
// counts how many times the text occurs in the conversation. Between sessions, it chooses the latest prompt.
func nth(prompts []Prompt, p *Prompt, items []item) *Prompt {
	said := 0
	for _, it := range items {
		if it.role == roleUser && strings.Contains(squeeze(it.text), squeeze(p.Text)) {
			said++
		}
	}
	nth := map[string]int{} // number of prompts with the text so far, by session
	var best *Prompt
	exact := false
	for i := range prompts {
		q := &prompts[i]
		if q.Text != p.Text {
			continue
		}
		session := cmp.Or(q.Session, q.Name)
		nth[session]++
		if n := nth[session]; n == said || n < said && !exact {
			best, exact = q, n == said
		}
	}
	return best
}

// facts gives access to the fields of a request that conditions compare.
type facts struct {
	r      *request
	prompt *Prompt
}

func (c Condition) String() string {
	switch {
	case c.Pattern != nil && c.Negate:
		return fmt.Sprintf("%s!~ %q", c.Field, c.Pattern)
	case c.Pattern != nil:
		return fmt.Sprintf("%s~ %q", c.Field, c.Pattern)
	}
	return fmt.Sprintf("%s: %q", c.Field, c.Value)
}

// holds reports whether all conditions of a guard are true.
func (f *facts) holds(g Guard) bool {
	return !slices.ContainsFunc(g, func(c Condition) bool { return !f.check(c) })
}

func (f *facts) check(c Condition) bool {
	if c.Field == "tool" {
		return slices.ContainsFunc(f.r.toolNames(), c.match) != c.Negate
	}
	return c.match(f.text(c.Field)) != c.Negate
}

func (c Condition) match(s string) bool {
	if c.Pattern != nil {
		return c.Pattern.MatchString(s)
	}
	return strings.TrimSpace(s) == strings.TrimSpace(c.Value)
}

// text returns the value of a field as text. The field "user" is the whole last message of the user, as the agent
// sent it. The field "prompt" is only the text that the editor sent.
func (f *facts) text(field string) string {
	r := f.r
	switch field {
	case "user":
		return r.lastRun(roleUser, len(r.items))
	case "prompt":
		if f.prompt != nil {
			return f.prompt.Text
		}
	case "result":
		return strings.Join(r.results(), "\n")
	case "system":
		return r.systemText()
	case "model":
		return r.model
	case "wire":
		return r.wire
	case "path":
		return r.path
	case "body":
		return string(r.raw)
	case "tool":
		return strings.Join(r.toolNames(), " ")
	case "tools":
		return fmt.Sprint(len(r.tools) > 0)
	case "schema":
		return fmt.Sprint(r.wantJSON)
	case "stream":
		return fmt.Sprint(r.stream)
	}
	return ""
}
