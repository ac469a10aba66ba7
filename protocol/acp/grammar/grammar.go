package grammar

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// V1 returns the generator of conversations for ACP version 1.
func V1() *sweep.Generator { return generator(&Ability{}) }

// V2 returns the generator of conversations for ACP version 2.
func V2() *sweep.Generator { return generator(&Ability{V2: true}) }

func generator(of *Ability) *sweep.Generator {
	learn := func(seen map[string]*transcript.Transcript) (sweep.Grammar, string) {
		a := Learn(seen)
		return Grammar{a}, a.String()
	}
	more := func(g sweep.Grammar) map[string]sweep.Archive {
		list := g.(Grammar).modeProbes()
		maps.Copy(list, g.(Grammar).commandProbes())
		return of.heads(list)
	}
	questions := func(p *agents.Profile) map[string]sweep.Archive { return of.heads(Calibration(p)) }
	return &sweep.Generator{Questions: questions, More: more, Learn: learn}
}

// heads adds a line that names the protocol to each scenario, if the protocol is version 2. It changes list.
func (a *Ability) heads(list map[string]sweep.Archive) map[string]sweep.Archive {
	for name, x := range list {
		list[name] = a.head(x)
	}
	return list
}

func (a *Ability) head(x sweep.Archive) sweep.Archive {
	if a.V2 {
		x.Lines = append([]*script.Line{script.New("protocol acp-v2")}, x.Lines...)
	}
	return x
}

// Grammar draws conversations that one agent can have.
type Grammar struct{ *Ability }

// AskMode returns a mode in which the agent asks for permission. It returns "" if the agent asks in the initial mode
// or in no mode.
func (g Grammar) AskMode() string { return g.Asks }

// Session is a conversation. The agent's abilities and the key determine it completely. The key also lists the parts
// that are left out.
type Session struct {
	grammar Grammar
	sweep.Key
}

// Draw returns the conversation that belongs to a key.
func (g Grammar) Draw(k sweep.Key) sweep.DrawnSession {
	s := Session{g, k}
	w := s.written()
	return sweep.DrawnSession{Key: k, Archive: w.head(w.archive()), Covers: w.covers(), Smaller: s.smaller(w)}
}

// features are the parts that a conversation may lack. Each conversation lacks about a third of them, so that a
// feature also occurs without its usual companions (swarm testing).
var features = []string{"tools", "permissions", "failures", "shapes", "media", "several", "settings", "ways", "process",
	"servers", "writes", "asides", "stops"}

// written returns a writer that has written the whole conversation: the set-up, then the episodes.
func (s Session) written() *writer {
	w := newWriter(s.grammar.Ability)
	w.random = s.Random
	w.r = s.Random(-1)
	w.out = map[string]bool{}
	for _, f := range features {
		w.out[f] = w.r.IntN(3) == 0
	}
	length := 1 + w.r.IntN(6)
	w.left = s.Without
	w.setUp()
	for i := range length {
		w.r, w.opened = s.Random(i), 0
		if w.episode = i; !w.without(strconv.Itoa(i)) {
			w.oneEpisode()
		}
	}
	w.length = length
	if w.r = s.Random(length); w.has("servers") && w.has("process") && w.works("mcp") && !w.able(onNetwork) &&
		!w.without("e") && w.one(6) {
		w.endsConnecting()
	}
	return w
}

// smaller returns a function that draws shorter conversations. First come those with a single episode, then those in
// which one part is left out, the largest part first.
func (s Session) smaller(w *writer) func() []sweep.DrawnSession {
	return func() (out []sweep.DrawnSession) {
		parts := []string{"e", "s", "w"}
		var whole []string
		for i := range w.length {
			if n := strconv.Itoa(i); !s.without(n) {
				whole = append(whole, n)
				parts = append(parts, n, n+"a", n+"b", n+"r")
			}
		}
		less := func(more ...string) {
			k := s.Key
			k.Without = append(slices.Clone(k.Without), more...)
			out = append(out, s.grammar.Draw(k))
		}
		for i := range whole {
			if others := slices.Delete(slices.Clone(whole), i, i+1); len(others) > 1 {
				less(others...)
			}
		}
		slices.SortStableFunc(parts, func(a, b string) int { return rank(a) - rank(b) })
		for _, p := range parts {
			if !s.without(p) {
				less(p)
			}
		}
		return out
	}
}

// rank returns the sort key of a part: whole episodes come before parts of episodes.
func rank(part string) int {
	switch {
	case strings.Trim(part, "0123456789") == "":
		return 0
	case len(part) == 1:
		return 1
	}
	return 2
}

func (s Session) without(part string) bool { return slices.Contains(s.Without, part) }
