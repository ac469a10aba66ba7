package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Words are the words of which random texts consist. Most are not plain ASCII:
// letters of two, three and four bytes, combining marks, joined emoji,
// right-to-left text and control characters.
var Words = []string{
	"Grüße", "naïve", "日本語", "🙂", "שלום", "e\u0301tude", "👩\u200d👩\u200d👧", "Ωμέγα", "zażółć", "한국어", "\u202bab\u202c",
	"plain", "words", "“quoted”", "a\tb", "<b>&amp;</b>", "`code`", "**bold**", "c:\\dir", "100%", "{x}", "a\u200bb", "…",
	"{{y}}", "${HOME}", "it's", "```go\nx := 1",
	"one\u2028two", "next\u0085line", "[DONE]", "data:", "null", `a\nb`, "%s", "&#39;", "/help", "# Titel",
}

// Episodes is a Grammar whose sessions are sequences of episodes. The episodes
// come from a protocol's table in the txtar format:
//
// A section "turn NAME" is a complete turn. A section "state NAME" starts a
// turn and holds it; any section "act NAME" can follow. The lines after
// "model:" are the model's turns. If the section begins with "% needs ABILITY",
// it is omitted for agents without the ability. "% alone" means that no later
// episode uses the thread. {t} is the thread, {i} the number of the episode,
// {text} a random text for the script, and {say} one for the model.
type Episodes struct {
	// Head holds the lines before the first episode. Opens is the line that
	// opens the thread {t}.
	Head, Opens string
	// Has is the set of the agent's abilities.
	Has  map[string]bool
	list []section
}

// section is one section of a table.
type section struct {
	kind, name, lines, model, needs string
	alone                           bool
}

// Read adds the sections of a table and returns g. It omits sections whose
// ability the agent lacks.
func (g *Episodes) Read(table []byte) *Episodes {
	for _, f := range txtar.Parse(table).Files {
		var s section
		s.kind, s.name, _ = strings.Cut(f.Name, " ")
		s.lines, s.model, _ = strings.Cut(string(f.Data), "model:\n")
		for rest, ok := strings.CutPrefix(s.lines, "% "); ok; rest, ok = strings.CutPrefix(s.lines, "% ") {
			var word string
			word, s.lines, _ = strings.Cut(rest, "\n")
			s.alone = s.alone || word == "alone"
			if needs, ok := strings.CutPrefix(word, "needs "); ok {
				s.needs = needs
			}
		}
		if s.needs == "" || g.Has[s.needs] {
			g.list = append(g.list, s)
		}
	}
	return g
}

// of returns the sections of one kind.
func (g *Episodes) of(kind string) []section {
	return lists.Where(g.list, func(s section) bool { return s.kind == kind })
}

// Pairs returns all combinations of a state and an act, and all complete turns.
func (g *Episodes) Pairs() (out [][2]string) {
	for _, s := range g.of("state") {
		for _, a := range g.of("act") {
			out = append(out, [2]string{s.name, a.name})
		}
	}
	return append(out, lists.Map(g.of("turn"), func(s section) [2]string { return [2]string{"turn", s.name} })...)
}

// AskMode returns "", because the table has no modes.
func (*Episodes) AskMode() string { return "" }

// Draw draws a session of up to six episodes on up to three threads.
func (g *Episodes) Draw(k Key) DrawnSession {
	d := &drawnEpisodes{Episodes: g, Key: k, covers: map[[2]string]bool{}}
	r := k.Random(-1)
	length := 1 + r.IntN(6)
	turns := r.IntN(3) // with 0, the session only holds turns, so that states meet states
	d.lines.WriteString(g.Head)
	for i := range length {
		if d.i = i; !slices.Contains(k.Without, strconv.Itoa(i)) {
			d.episode(k.Random(i), turns)
		}
	}
	a := Split([]byte(d.lines.String()))
	a.Model = "turns:\n" + d.model.String()
	out := DrawnSession{Key: k, Archive: a, Covers: slices.SortedFunc(maps.Keys(d.covers), comparePairs)}
	out.Smaller = func() (list []DrawnSession) {
		for i := range length {
			if n := strconv.Itoa(i); !slices.Contains(k.Without, n) && len(k.Without) < length-1 {
				less := k
				less.Without = append(slices.Clone(k.Without), n)
				list = append(list, g.Draw(less))
			}
		}
		if !slices.Contains(k.Without, "w") {
			less := k
			less.Without = append(slices.Clone(k.Without), "w")
			list = append(list, g.Draw(less))
		}
		return list
	}
	return out
}

func comparePairs(a, b [2]string) int { return slices.Compare(a[:], b[:]) }

// drawnEpisodes is a drawn session whose scenario is being written.
type drawnEpisodes struct {
	*Episodes
	Key
	lines, model strings.Builder
	covers       map[[2]string]bool
	threads      []string
	i, n         int
}

func (d *drawnEpisodes) episode(r *rand.Rand, turns int) {
	t := "t" + strconv.Itoa(d.i)
	if old := len(d.threads); old > 0 && (old > 2 || r.IntN(4) > 0) {
		t = d.threads[r.IntN(old)]
	} else {
		d.threads = append(d.threads, t)
		d.write(section{lines: d.Opens}, t, r)
	}
	s := pickOf(r, d.of("state"))
	if turns > 0 && r.IntN(2) == 0 {
		s = pickOf(r, d.of("turn"))
		d.covers[[2]string{"turn", s.name}] = true
		d.write(s, t, r)
		return
	}
	a := pickOf(r, d.of("act"))
	d.covers[[2]string{s.name, a.name}] = true
	d.write(s, t, r)
	d.write(a, t, r)
}

func pickOf[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

var variables = lazy.Regexp(`\{(t|i|text|say)\}`)

// write writes the lines of a section for the thread t.
func (d *drawnEpisodes) write(s section, t string, r *rand.Rand) {
	fill := func(text string) string {
		return variables().ReplaceAllStringFunc(text, func(v string) string {
			switch v {
			case "{t}":
				return t
			case "{i}":
				return strconv.Itoa(d.i)
			case "{say}":
				said, _ := json.Marshal(d.text(r)) // JSON is YAML, and a string always has a JSON form
				return string(said)
			}
			return script.Quote(d.text(r)).String()
		})
	}
	d.lines.WriteString(fill(s.lines))
	d.model.WriteString(fill(s.model))
	if s.alone {
		d.threads = slices.DeleteFunc(d.threads, func(other string) bool { return other == t })
	}
}

// text draws a random text. It begins with a number that is unique in the
// session.
func (d *drawnEpisodes) text(r *rand.Rand) string {
	d.n++
	out := fmt.Sprintf("Nr%d", d.n)
	for range r.IntN(6) {
		if word := pickOf(r, Words); !slices.Contains(d.Without, "w") {
			out += " " + word
		}
	}
	return out + "."
}
